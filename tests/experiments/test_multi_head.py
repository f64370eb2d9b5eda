"""Good and bad heads: what is fixed and what varies, how they are told apart, and who stands in a network."""

import pytest
import torch

from attnlib.companion.sentences.multi_head import (
    body_sentences,
    copied_sentences,
    good_head_sentences,
    outcome_sentences,
    screening_sentence,
)
from attnlib.companion.sentences.multi_head_tables import bounds_table, scenarios_table
from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments import multi_head as experiment
from attnlib.experiments.copying_courses import ATTENTION, PROBES
from attnlib.experiments.head_scenarios import UNSEEN, standing
from attnlib.experiments.multi_head import Config
from attnlib.experiments.result import Result
from attnlib.experiments.run import run
from attnlib.models.copier import copier_loss
from attnlib.plotting.multi_head import AWAY, DRAWN, scenarios, weights
from attnlib.recipes.multi_head import Settings, new_network
from attnlib.recipes.recipe import RecipeSpec
from attnlib.tasks.copying import copy_batch, draw_sources
from attnlib.training.store import Store

TINY = {"candidates": 2, "trials": 1, "seeds": 1, "heads": 2, "elsewhere": 1}
TINY |= {"length": 4, "width": 8, "steps": 2, "every": 2, "followed": 2}
PAST = (0.0, 0.7, 0.7)  # accuracies of a course that was never good and does not end badly


class Given:
    """A store in which single heads have given courses, and a network that of the best of its heads.

    Args:
        courses: accuracies by (head, seed), by (head, seed, body), or by head.
        missing: sets of heads that were never trained.
    """

    def __init__(self, courses, missing=()):
        self.courses, self.missing, self.asked = courses, missing, []

    def kept(self, spec, measure):
        settings = spec.resolved
        self.asked.append(settings)
        if settings.heads in self.missing:
            raise NotMeasured(spec.setting)
        accuracy = max((self._of(head, settings) for head in settings.heads), key=lambda own: own[-1])
        columns = ("loss", *ATTENTION, *PROBES)
        # What a head is worth, it attends.
        weights = [self._of(head, settings)[-1] for head in settings.heads]
        still = {column: [0.5] * 3 for column in columns} | {
            "head_right": [[0.1] * len(weights), weights, weights]
        }
        return {"steps": [0, 1, 2], "accuracy": list(accuracy)} | still

    def _of(self, head, settings):
        names = ((head, settings.seed, settings.body), (head, settings.seed), head)
        found = next((self.courses[name] for name in names if name in self.courses), PAST)
        return found if isinstance(found, tuple) else (0.1, found, found)

    def trials(self, config):
        """(head, seed) of the runs of single candidates in the body of the chapter, in order."""
        return sorted(
            (one.heads[0], one.seed)
            for one in self.asked
            if len(one.heads) == 1 and one.heads[0] < UNSEEN and one.body == config.body
        )

    def networks(self, config):
        """Settings of the networks of several different heads, seeds in order."""
        several = [one for one in self.asked if len(set(one.heads)) == config.heads]
        return sorted(several, key=lambda one: (one.seed, one.heads))


def computed(courses, missing=(), **changes):
    config, store = Config(**TINY | changes), Given(courses, missing)
    values, rows = experiment.compute(config, store)
    return config, store, values, rows


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


def test_without_all_trials_no_head_is_good_or_bad():
    with pytest.raises(NotMeasured, match="1 of 2 single heads have no answer yet on data seed 0"):
        computed({0: 0.3, 1: 0.3}, missing=[(1,)])


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
    assert (values["sides"]["single"]["step"], values["sides"]["single"]["end"]) == (2, 2)
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


@pytest.mark.parametrize(
    ("every", "followed", "step"), [(10, 200, 20), (8, 200, 16), (30, 200, 30), (9, 5, 9)]
)
def test_the_early_look_is_one_after_the_beginning(every, followed, step):
    config = Config(**TINY | {"steps": every, "every": every, "followed": followed})
    assert experiment._early(config) == step


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


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="trials is 0"):
        Config(trials=0)
    with pytest.raises(BadInput, match="moved is -1"):
        Config(moved=-1)
    with pytest.raises(BadInput, match="heads is 0"):
        Settings(heads=())
