"""Good and bad heads: how they are told apart, which networks are asked for, and on which data."""

import pytest
import torch

from attnlib.errors import BadInput, NotMeasured
from attnlib.models.copier import copier_loss
from companion.data.synthetic import copy_batch, draw_sources
from companion.results.result import Result
from companion.results.run import run
from companion.runs.multi_head import Settings, new_network
from companion.runs.recipe import RecipeSpec
from companion.runs.store import Store
from notebooks.learn.multi_head import experiment
from notebooks.learn.multi_head.drawing import AWAY, DRAWN, scenarios, weights
from notebooks.learn.multi_head.experiment import (
    UNSEEN,
    Config,
    chances,
    failures_apart,
    good_head,
    standing,
    together,
)
from notebooks.learn.multi_head.sentences import (
    body_sentences,
    bounds_table,
    chances_sentence,
    copied_sentences,
    good_head_sentences,
    outcome_sentences,
    scenarios_table,
    screening_sentence,
    together_table,
)
from notebooks.shared.copying import outcome
from tests.notebooks.learn.given_heads import TINY, computed


def test_heads_are_good_or_bad_on_all_their_data_or_neither():
    ends = {0: 0.97, 1: 0.5, 2: 0.4, (3, 0): 0.99, (3, 1): 0.2}
    config, store, values, _ = computed(ends, candidates=5, trials=2, seeds=4)
    found = values["heads"]
    assert (found["tried"], found["good"], found["bad"]) == (5, 1, 2)
    assert values["all_bad"]["failed"]["value"] == 1
    assert values["one_good"]["failed"]["value"] == 0
    screened = [one for one in store.networks(config) if one.heads[0] < UNSEEN]
    bad = [one for one in screened if 0 not in one.heads]
    mixed = [one for one in screened if 0 in one.heads]
    assert [frozenset(one.heads) for one in bad] == 4 * [frozenset({1, 2})]
    assert all(one.heads[0] == 0 and one.heads[1] in (1, 2) for one in mixed)
    random = [one for one in store.networks(config) if one.heads[0] >= UNSEEN]
    assert sorted(head for one in random for head in one.heads) == list(range(UNSEEN, UNSEEN + 8))


def test_a_head_is_good_by_its_best_look_and_bad_by_its_last():
    courses = {
        0: (0.1, 0.97, 0.8),  # good, though it ends short of 95 %
        1: (0.1, 0.7, 0.5),  # bad, though it was at 70 %
        2: (0.1, 0.5, 0.7),  # neither, though it was at 50 %
        3: (0.1, 0.96, 0.4),  # had learned, and forgot: good, and no bad head
    }
    _, _, values, _ = computed(courses, candidates=4)
    assert (values["heads"]["good"], values["heads"]["bad"]) == (2, 1)
    assert [standing(list(own)) for own in courses.values()] == ["good", "bad", None, "good"]


def test_a_head_that_is_neither_on_some_data_is_not_tried_on_the_next():
    ends = {0: 0.97, 1: 0.7, 2: 0.5, (3, 0): 0.5, (3, 1): 0.7}
    config, store, values, rows = computed(ends, candidates=4, trials=3)
    assert store.trials(config) == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
    assert values["heads"] == {"tried": 4, "runs": 9, "good": 1, "bad": 1, "bad_later": 2}
    # One row a head in the baseline; further trials of the same head are no further heads.
    assert values["single"]["n"] == 4
    assert [row["scenario"] for row in rows["outcomes"]].count("again") == 5


def test_no_network_learns_from_data_that_its_heads_were_judged_on():
    config, store, _, _ = computed({0: 0.97, 1: 0.5, 2: 0.4}, candidates=3, trials=2, seeds=3)
    assert {seed for _, seed in store.trials(config)} == {0, 1}
    assert {one.seed for one in store.networks(config)} == {2, 3, 4}


def test_screened_heads_stand_in_their_body_and_random_ones_each_in_another():
    config, store, _, _ = computed({0: 0.97, 1: 0.5, 2: 0.4}, candidates=3, seeds=3, body=7)
    screened = [one.body for one in store.networks(config) if one.heads[0] < UNSEEN]
    assert set(screened) == {7}
    assert len(screened) == 6
    random = [one for one in store.networks(config) if one.heads[0] >= UNSEEN]
    assert [one.body for one in random] == [7, 8, 9]
    alone = sorted((one for one in store.asked if one.heads[0] >= UNSEEN and len(one.heads) == 1),
                   key=lambda one: one.seed)  # fmt: skip
    assert [(one.heads[0], one.body, one.seed) for one in alone] == [
        (one.heads[0], one.body, one.seed) for one in random
    ]


def test_without_all_trials_no_head_is_good_or_bad():
    with pytest.raises(NotMeasured, match="1 of 2 single heads have no answer yet on data seed 0"):
        computed({0: 0.3, 1: 0.3}, missing=[(1,)])


@pytest.mark.parametrize(
    ("every", "followed", "step"), [(10, 200, 20), (8, 200, 16), (30, 200, 30), (9, 5, 9)]
)
def test_the_early_look_is_one_after_the_beginning(every, followed, step):
    config = Config(**TINY | {"steps": every, "every": every, "followed": followed})
    assert experiment._early(config) == step


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="trials is 0"):
        Config(trials=0)
    with pytest.raises(BadInput, match="moved is -1"):
        Config(moved=-1)
    with pytest.raises(BadInput, match="heads is 0"):
        Settings(heads=())


# Networks of the chapter on several heads: what is fixed and what varies.


def test_networks_of_one_body_differ_in_their_query_maps_alone():
    one, other = (new_network(Settings(heads=(head,), length=4, width=6)) for head in (0, 1))
    for (name, first), second in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second) != name.startswith("queries"), name
    body = new_network(Settings(heads=(0,), body=1, length=4, width=6))
    assert torch.equal(body.queries.weight, one.queries.weight)
    assert not torch.equal(body.hidden.weight, one.hidden.weight)


def test_a_head_starts_alike_alone_and_among_others():
    alone = new_network(Settings(heads=(7,), length=4, width=6))
    among = new_network(Settings(heads=(3, 7), length=4, width=6))
    assert torch.equal(among.queries.weight[6:], alone.queries.weight)
    assert torch.equal(among.queries.bias[6:], alone.queries.bias)
    assert alone.queries.weight.abs().max() <= 6**-0.5


def test_the_recording_has_a_weight_for_each_head(tmp_path):
    spec = RecipeSpec.of("multi_head", heads=(1, 2), length=4, width=8, steps=2, every=2, held_out=3)
    recording = Store(tmp_path).recording(spec)
    assert recording["head_right"].shape == (2, 2)
    torch.testing.assert_close(recording["head_right"].mean(dim=1), recording["attention_right"])
    assert RecipeSpec.from_json(spec.to_json()) == spec


def test_equal_heads_learn_alike():
    """So that copies are one head with a longer context: after updates they attend alike still."""
    settings = Settings(heads=(3, 3), length=4, width=8)
    network = new_network(settings)
    sources = draw_sources("permutation", 4, 16, torch.Generator().manual_seed(0))
    batch = copy_batch(sources, 4)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(20):
        optimiser.zero_grad()
        copier_loss(network, batch).backward()
        optimiser.step()
    attention = network(batch).attention
    assert not torch.allclose(attention, new_network(settings)(batch).attention, atol=0.01)
    torch.testing.assert_close(attention[:, 0], attention[:, 1])


# Networks of several heads by scenario: who stands in them, and what is said, shown and drawn of them.


def test_good_and_bad_heads_are_tried_in_other_bodies():
    ends = {0: 0.97, 1: 0.5, 2: 0.4, 3: 0.3} | {
        (head, 0, 1 + own): 0.99 for own in range(3) for head in range(4)
    }
    _, store, values, rows = computed(ends, candidates=4, elsewhere=3, moved=2)
    moved = [one.heads for one in store.asked if one.body == 1]
    assert sorted(moved) == [(0,), (1,), (2,)]
    assert values["elsewhere_bad"]["accuracy"]["value"] == pytest.approx(0.99)
    assert values["elsewhere_good"]["n"] == 3
    result = Result("multi_head", "quick", TINY | {"elsewhere": 3}, values, rows, {}, {})
    assert body_sentences(result).startswith("* Alone in 3 other bodies, of the runs of heads that are good")
    assert "a bad head is bad in its body, not by itself" in body_sentences(result)
    _, _, values, _ = computed(ends, candidates=4, elsewhere=0)
    assert values["elsewhere_bad"]["n"] == 0


def test_what_more_heads_add_is_compared_in_one_body():
    first = {UNSEEN: 0.5, UNSEEN + 2: 0.6, UNSEEN + 4: 0.7}
    second = {head + 1: end + 0.1 for head, end in first.items()}
    _, _, values, rows = computed(first | second, seeds=3)
    found = values["random_over_alone"]
    assert (found["value"], found["low"], found["n"]) == (pytest.approx(0.1), pytest.approx(0.1), 3)
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert body_sentences(result).endswith("More heads, with a context longer by as much, are ahead.")


@pytest.mark.parametrize(
    ("courses", "all_bad", "one_good", "told"),
    [
        ({0: 0.3, 1: 0.97, 2: 0.98}, 0, 1, "For networks of 2 bad heads these are too few"),
        ({0: 0.3, 1: 0.3}, 1, 0, "Without a good head"),
        ({0: 0.97, 1: 0.97}, 0, 0, "Nor are there networks of one good head"),
    ],
)
def test_a_scenario_of_too_few_heads_has_no_networks(courses, all_bad, one_good, told):
    """None of fewer heads, which would be judged as if they had all of them."""
    config, store, values, rows = computed(courses, candidates=3)
    assert (values["all_bad"]["n"], values["one_good"]["n"]) == (all_bad, one_good)
    assert {len(one.heads) for one in store.asked} == {1, config.heads}
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert told in screening_sentence(result)
    assert ("not_run" in values["all_bad"], "not_run" in values["one_good"]) == (not all_bad, not one_good)
    assert ("not_run" in values["all_bad_less_one_good"]) == (not all_bad or not one_good)
    if not all_bad:
        assert "of 3 heads turned out bad when alone" in values["all_bad"]["not_run"]
        assert values["all_bad"]["failed"]["value"] is None
        assert "all heads bad" not in scenarios_table(result).index


def test_sets_of_heads_are_counted_whatever_their_order():
    _, _, values, rows = computed({0: 0.3, 1: 0.4}, seeds=6)
    assert (values["all_bad"]["n"], values["all_bad"]["head_sets"]) == (6, 1)
    _, _, values, rows = computed({head: 0.3 for head in range(6)}, candidates=6, seeds=6)
    drawn = {frozenset(row["heads"].split()) for row in rows["outcomes"] if row["scenario"] == "all_bad"}
    assert values["all_bad"]["head_sets"] == len(drawn) > 1
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert scenarios_table(result).loc["all heads bad", "sets of heads"] == len(drawn)


def test_copies_are_of_a_bad_head_on_the_same_data_in_the_same_body():
    ends = {0: 0.97, 1: 0.5, 2: 0.4}
    config, store, values, rows = computed(ends, candidates=3, seeds=4, body=7)
    bad = [one for one in store.networks(config) if 0 not in one.heads and one.heads[0] < UNSEEN]
    copied = [one for one in store.asked if len(one.heads) == 2 and len(set(one.heads)) == 1]
    copied.sort(key=lambda one: one.seed)
    assert [(one.heads, one.seed, one.body) for one in copied] == [
        (2 * one.heads[:1], one.seed, 7) for one in bad
    ]
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert "4 of 4 fail" in copied_sentences(result)
    assert copied_sentences(result).endswith("So a longer context alone is not enough to learn in time.")
    _, _, values, rows = computed({0: 0.3, 1: 0.97}, seeds=1)  # copies need no second bad head
    assert (values["all_bad"]["n"], values["copied"]["n"]) == (0, 1)
    assert "not_run" not in values["copied"]


def test_what_came_of_it_follows_the_numbers():
    ends = {0: 0.97, 1: 0.5, 2: 0.4}
    _, _, values, rows = computed(ends, candidates=3, seeds=4)
    told = outcome_sentences(Result("multi_head", "quick", TINY, values, rows, {}, {})).splitlines()
    assert told[0].startswith("* It did not: of networks of bad heads 4 of 4 fail")
    assert told[1] == "* No head was tried on a second set of data."
    # Heads that turn out bad on one set of data and good on the next; those of networks learn on theirs.
    ends |= {(3, 0): 0.97, (3, 1): 0.5} | {(head, seed): 0.99 for head in (1, 2) for seed in range(2, 22)}
    _, _, values, rows = computed(ends, candidates=4, trials=2, seeds=20)
    told = outcome_sentences(Result("multi_head", "quick", TINY, values, rows, {}, {})).splitlines()
    assert told[0].startswith("* It happened: of networks of bad heads 0 of 20 fail")
    assert told[1] == "* It happened to 1 of 4 heads that were tried on more than one set of data."


def test_failures_are_compared_in_pairs_of_one_seed():
    ends = {0: 0.97, 1: 0.5, 2: 0.4}
    _, _, values, rows = computed(ends, candidates=3, seeds=4)
    apart = values["all_bad_less_one_good"]
    assert (apart["value"], apart["n"]) == (1, 4)
    assert 0 < apart["low"] < 1  # four pairs alike are no certainty
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert "One good head makes failures rarer." in good_head_sentences(result)
    # Bad heads that learn together with the good one, on the data of two networks, are as good.
    ends |= {(head, seed): 0.99 for head in (1, 2) for seed in (1, 2)}
    _, _, values, rows = computed(ends, candidates=3, seeds=4)
    assert values["all_bad_less_one_good"]["value"] == 0.5
    result = Result("multi_head", "quick", TINY, values, rows, {}, {})
    assert "cannot be told" in good_head_sentences(result)


def test_the_result_is_drawn_and_told(tmp_path):
    result = run("multi_head", out=tmp_path, models=tmp_path / "models", overrides=TINY)
    assert len(result.models) == 2 + 1 + 1
    assert len(scenarios(result).axes[0].get_lines()) == 2 + 1  # and the bound
    drawn = [line.get_color() for axes in weights(result).axes for line in axes.get_lines()[1:]]
    assert len(drawn) == 2 + 1
    assert set(drawn) <= {DRAWN, AWAY}
    assert "one head, one body" in scenarios_table(result).index
    assert screening_sentence(result).startswith("Of 2 heads tried alone on one set of data")


def test_later_updates_are_followed_and_judge_nothing():
    """Judged at 1 of 2 updates: heads 0 and 2 learn late, head 1 at once, and forgets."""
    late, early = (0.1, 0.5, 0.97), (0.1, 0.96, 0.5)
    _, store, values, rows = computed(
        {0: late, 1: early, 2: late}, candidates=3, steps=1, every=1, followed=2
    )
    assert {one.steps for one in store.asked} == {2}
    assert (values["heads"]["good"], values["heads"]["bad"]) == (1, 2)
    single = values["single"]
    failed = [found["failed"]["value"] for found in (single, single["followed"])]
    assert failed == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert (single["followed"]["late"], single["followed"]["steps"]) == (2, 2)
    assert single["turned"]["drawn"]["n"] + single["turned"]["away"]["n"] == 2
    assert (values["sides"]["step"], values["sides"]["end"]) == (2, 2)
    assert values["together"]["single"]["n"] == 3
    assert values["heads"]["bad_later"] == 0  # head 1 forgets, and has been good
    assert {row["steps"] for row in rows["courses"]} == {0, 1, 2}
    own = {row["heads"]: row["accuracy"] for row in rows["outcomes"] if row["scenario"] == "single"}
    assert own == {"0": 0.5, "1": 0.96, "2": 0.5}
    config = TINY | {"steps": 1, "followed": 2}
    result = Result("multi_head", "quick", config, values, rows, {}, {})
    table = bounds_table(result)
    assert list(table.columns) == ["after 1", "after 2"]
    assert list(table.loc["one head, one body"]) == ["2 of 3", "1 of 3"]
    assert scenarios_table(result).loc["one head, one body", "accuracy after 2"] == "0.50 to 0.97"
    assert "judged after 1 updates; after 2, none of the 3 would be bad" in screening_sentence(result)
    assert 1 in [line.get_xdata()[0] for line in scenarios(result).axes[0].get_lines()]


def test_curves_are_coloured_by_the_side_on_which_they_end():
    rows = [
        {
            "scenario": "single",
            "heads": str(head),
            "body": 0,
            "seed": 0,
            "steps": step,
            "attention_right": right,
        }
        for head, ends in ((0, (0.1, 0.9)), (1, (0.9, 0.1)))
        for step, right in enumerate(ends)
    ]
    result = Result("multi_head", "quick", {"length": 4}, {}, {"courses": rows}, {}, {})
    _, *runs = weights(result).axes[0].get_lines()
    assert [line.get_color() for line in runs] == [DRAWN, AWAY]
    assert list(runs[0].get_ydata()) == pytest.approx([0.4, 3.6])


# One good head among bad ones: failures in pairs, which head attends, and what is said of both.


def learned(*weights):
    looks = {"steps": [0, 10], "accuracy": [0.1, 0.97], "attention_accuracy": [0.0, 1.0]}
    return looks | {"head_right": [[0.5] * len(weights), list(weights)]}


def points(*courses):
    return [({"seed": seed}, course) for seed, course in enumerate(courses)]


def ends(*accuracies):
    course = {"steps": [0, 10], "head_right": [[1.0, 0.0]] * 2, "attention_accuracy": [0.0, 1.0]}
    return points(*(course | {"accuracy": [0.97, end]} for end in accuracies))


def told(all_bad, one_good):
    values = {"all_bad": outcome(all_bad, 10), "one_good": outcome(one_good, 10)}
    values["good_head"] = good_head(one_good, ends(0.99), 10)
    values["all_bad_less_one_good"] = failures_apart(all_bad, one_good)
    config = {"heads": 2, "length": 4, "steps": 10}
    return good_head_sentences(Result("multi_head", "quick", config, values, {}, {}, {}))


def test_which_head_attends_is_read_where_the_network_has_learned():
    failed_in_the_end = learned(0.1, 0.9, 0.2) | {"accuracy": [0.97, 0.5]}
    networks = points(learned(0.9, 0.2, 0.1), learned(0.3, 0.2, 0.8), failed_in_the_end)
    found = good_head(networks, ends(0.99, 0.5), 10)
    assert (found["alone"]["n"], found["alone"]["failed"]["value"]) == (2, 0.5)
    assert (found["n"], found["wins"]["value"], found["wins"]["n"]) == (2, 0.5, 2)
    assert found["weight"]["value"] == pytest.approx(0.6)
    assert found["best_other"]["value"] == pytest.approx(0.5)
    assert good_head([], [], 10)["wins"] == {"value": None, "low": None, "high": None, "n": 0}


def test_failures_are_those_of_the_last_look_in_pairs_of_one_seed():
    found = failures_apart(ends(0.5, 0.6, 0.99, 0.94), ends(0.96, 0.5, 0.3))
    assert (found["value"], found["n"]) == (0, 3)  # 1, 0 and −1; the fourth has no partner
    assert failures_apart(ends(0.5), []) == {"value": None, "low": None, "high": None, "n": 0}


@pytest.mark.parametrize(
    ("wins", "words"),
    [(6, "It is the good head that comes to attend"), (0, "one of the bad heads"), (2, "is not shown")],
)
def test_what_is_said_of_the_good_head_follows_the_interval(wins, words):
    one_good = points(*[learned(0.9, 0.2)] * wins, *[learned(0.2, 0.9)] * (6 - wins))
    assert f"in {wins} of the 6 networks" in told(ends(0.5), one_good)
    assert words in told(ends(0.5), one_good)


def test_heads_below_uniform_attention_do_not_attend():
    """Where all are driven away from a word, the one that is least so wins nothing."""
    words = "No head comes to attend to it: at uniform attention each gives it 0.2500. These"
    assert words in told(ends(0.5), points(*[learned(0.02, 0.01)] * 6))
    assert words not in told(ends(0.5), points(*[learned(0.3, 0.01)] * 6))


@pytest.mark.parametrize(
    ("all_bad", "one_good", "words"),
    [
        ([0.5] * 4, [0.99] * 4, "One good head makes failures rarer."),
        ([0.99] * 4, [0.5] * 4, "One good head makes failures more frequent."),
        ([0.5] * 4, [0.99, 0.99, 0.5, 0.5], "cannot be told"),
    ],
)
def test_what_is_said_of_failures_follows_the_interval(all_bad, one_good, words):
    assert words in told(ends(*all_bad), ends(*one_good)).splitlines()[0]


def test_a_good_head_is_asked_of_no_network_where_none_learned():
    assert told([], ends(0.5)).endswith("so none tells which head comes to attend.")
    assert told(ends(0.5), []) == ""


# Heads of one network: which way each goes, whether together, and whether more of them are more chances.


def network(*looks):
    return {"steps": list(range(len(looks))), "head_right": [list(weights) for weights in looks]}


def result_of(**values):
    return Result("multi_head", "quick", {"heads": 2, "length": 4}, values, {}, {}, {})


def test_a_head_is_drawn_at_or_above_uniform_attention():
    start = (0.25, 0.25)
    found = together(
        points(
            network(start, (0.3, 0.4), (0.9, 0.25)),  # 1/length is drawn
            network(start, (0.3, 0.2), (0.1, 0.24)),  # one head turned after the early look
            network(start, (0.9, 0.1), (0.9, 0.1)),
        ),
        4,
        1,
    )
    assert (found["n"], found["all_drawn"], found["none_drawn"], found["mixed"]) == (3, 1, 1, 1)
    assert found["same"]["value"] == pytest.approx(2 / 3)
    row = together_table(result_of(together={"random": found})).iloc[0]
    assert list(row) == [3, 1, 1, 1, "2 of 3"]


def test_without_networks_nothing_is_said():
    found = together([], 4, 1)
    assert (found["n"], found["same"]["value"]) == (0, None)
    assert together_table(result_of(together={"all_bad": found})).empty
    assert chances_sentence(result_of(chances=chances([], [], 4))) == ""


def test_more_heads_are_held_against_the_first_of_them_alone():
    drawn, away = network((0.9,)), network((0.1,))
    both_drawn, both_away = network((0.9, 0.8)), network((0.1, 0.2))
    alone = points(*[drawn] * 10, *[away] * 10)
    found = chances(alone, points(*[both_drawn] * 10, *[both_away] * 10), 4)
    assert (found["alone"]["value"], found["several"]["value"]) == (0.5, 0.5)
    assert found["several_less_alone"]["value"] == 0
    assert [found[name] for name in ("both", "neither", "several_only", "alone_only")] == [10, 10, 0, 0]
    told = chances_sentence(result_of(chances=found))
    assert told.endswith("That more heads make it likelier is not shown.")
    # One drawn head is enough: a network with one of each counts as drawn.
    found = chances(alone, points(*[network((0.1, 0.9))] * 20), 4)
    assert found["several"]["value"] == 1
    assert (found["both"], found["several_only"]) == (10, 10)
    assert chances_sentence(result_of(chances=found)).endswith("More heads make it likelier.")


def test_networks_are_compared_by_seed():
    alone = points(network((0.9,)), network((0.1,)))
    found = chances(alone, points(network((0.1, 0.1)))[:1], 4)
    assert (found["several_less_alone"]["value"], found["several_less_alone"]["n"]) == (-1, 1)
