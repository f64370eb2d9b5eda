"""Networks of several heads by scenario: who stands in them, and what is said, shown and drawn of them."""

import pytest
from given_heads import TINY, computed

from attnlib.companion.sentences.multi_head import (
    body_sentences,
    copied_sentences,
    good_head_sentences,
    outcome_sentences,
    screening_sentence,
)
from attnlib.companion.sentences.multi_head_tables import bounds_table, scenarios_table
from attnlib.experiments.head_scenarios import UNSEEN
from attnlib.experiments.result import Result
from attnlib.experiments.run import run
from attnlib.plotting.multi_head import AWAY, DRAWN, scenarios, weights


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
