"""Which way attention goes, when, and what networks that never attend know of words by then."""

import pytest

from attnlib.companion.sentences.copying_answers import what_changed
from attnlib.companion.sentences.knowledge_first import order_sentences, ways_table
from attnlib.experiments.knowledge_first import knowledge_first, way
from attnlib.experiments.result import Result
from attnlib.plotting.knowledge_first import first_updates
from attnlib.rounding import rounded

LENGTH = 10
STEPS = [0, 10, 20, 30]


def course(weights, attended=(0, 0, 0, 0), known=(0, 0, 0, 0), accuracy=(0, 0, 0, 0.5)):
    return {
        "steps": STEPS,
        "attention_right": list(weights),
        "attention_accuracy": list(attended),
        "probe_agreement": list(known),
        "accuracy": list(accuracy),
    }


DRAWN = course((0.1, 0.19, 0.2, 0.9), (0, 0.2, 0.5, 1), (0.1, 0.5, 0.8, 0.9), (0, 0.2, 0.95, 1))
AWAY = course((0.1, 0.06, 0.04, 0.5))  # it comes back; where it went first counts
STAYS = course((0.1, 0.12, 0.08, 0.19))
HELD = [course((0.1,) * 4, known=(0, 0.1, known, 0.9)) for known in (0.2, 0.3)]


def points(*courses):
    return [({"seed": seed}, own) for seed, own in enumerate(courses)]


def test_attention_has_left_at_twice_or_half_of_its_equal_share():
    assert (way(DRAWN, LENGTH), way(AWAY, LENGTH), way(STAYS, LENGTH)) == ("drawn", "away", None)
    found = knowledge_first(points(DRAWN, AWAY, STAYS), points(*HELD), LENGTH)
    assert (found["stays"], found["drawn"]["n"], found["away"]["n"]) == (1, 1, 1)
    assert found["drawn"]["left"]["value"] == found["away"]["left"]["value"] == 20


def test_words_and_attention_are_there_from_half_of_the_words_on():
    found = knowledge_first(points(DRAWN, AWAY), points(*HELD), LENGTH)
    drawn, away = found["drawn"], found["away"]
    assert (drawn["known"]["value"], drawn["there"]["value"], drawn["lead"]["value"]) == (10, 20, 10)
    assert (drawn["first"], away["first"]) == (1, 0)
    assert away["known"]["value"] is away["there"]["value"] is away["held"]["value"] is None
    assert (drawn["soonest"], drawn["latest"], away["soonest"]) == (20, 20, None)


def test_networks_held_at_uniform_attention_are_asked_after_as_many_updates():
    held = knowledge_first(points(DRAWN, AWAY), points(*HELD), LENGTH)["drawn"]["held"]
    assert (held["value"], held["n"]) == (pytest.approx(0.25), 2)


def test_at_the_same_look_neither_comes_first_and_words_that_never_come_do_not():
    together = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1), (0, 0.2, 0.5, 0.9))
    without = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1))
    drawn = knowledge_first(points(together, without), points(*HELD), LENGTH)["drawn"]
    assert (drawn["first"], drawn["lead"]["n"], drawn["there"]["n"]) == (0, 1, 2)
    told = what_changed(result([together, without], HELD)).splitlines()[0]
    assert told.endswith("words came first in 0 of 2 networks whose attention got there, and not in 2.")


def test_networks_that_get_there_later_than_the_others_were_followed_are_held_against_nothing():
    short = [{name: values[:2] for name, values in held.items()} for held in HELD]
    drawn = knowledge_first(points(DRAWN), points(*short), LENGTH)["drawn"]
    assert drawn["held"] == {"value": None, "low": None, "high": None, "n": 0}
    assert (drawn["n_held"], drawn["there"]["value"]) == (0, 20)


def test_no_networks_is_no_error():
    found = knowledge_first([], [], LENGTH)
    assert found["stays"] == 0
    assert all(found[side]["n"] == 0 and found[side]["lead"]["value"] is None for side in ("drawn", "away"))


def result(learned, held, kind="permutation"):
    ways = knowledge_first(points(*learned), points(*held), LENGTH)
    values = {kind: {"ways": ways, "followed": {"steps": 30}, "failed": {"value": 0}, "n": len(learned)}}
    rows, outcomes = [], []
    for network, courses in (("learned", learned), ("uniform", held)):
        for seed, own in enumerate(courses):
            name = {"kind": kind, "network": network, "seed": seed}
            rows += [
                name | {column: values[place] for column, values in own.items()}
                for place in range(len(STEPS))
            ]
            outcomes.append(name | {"way": way(own, LENGTH) if network == "learned" else None})
    config = {"kind": [kind], "length": LENGTH, "steps": 30}
    tables = {"courses": rows, "outcomes": outcomes}
    return Result("permutation_copying", "quick", config, rounded(values), tables, {}, {})


def test_a_row_a_way_says_when_words_are_known_and_attention_is_there():
    table = ways_table(result([DRAWN, DRAWN, AWAY, STAYS], HELD))
    ways = ("drawn", "driven away", "near uniform attention")
    drawn, away, stays = (table.loc[f"permutations of 10 words, {way}"] for way in ways)
    assert (drawn["networks"], away["networks"], stays["networks"]) == ("2", "1", "1")
    assert (drawn["leaves after"], drawn["β right after"]) == ("20 ± 0", "10 ± 0")
    assert drawn["β of held ones"].startswith("0.25 ± ")
    assert (drawn["copies after"], away["copies after"]) == ("20", "none does")
    assert (away["β right after"], stays["leaves after"]) == ("–", "–")


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ((0.20, 0.21), "words come first here, too, but not while attention is uniform"),
        ((0.80, 0.81), "these words can be learned while attention is uniform"),
        ((0.20, 0.81), None),
    ],
)
def test_what_others_know_by_then_is_said_by_the_whole_interval(held, told):
    others = [course((0.1,) * 4, known=(0, 0.1, share, 0.9)) for share in held]
    words = order_sentences(result([DRAWN], others))
    assert "words come first in 1 of 1 networks" in words
    assert told in words if told else "So " not in words


def test_nothing_is_said_where_attention_never_gets_there():
    assert order_sentences(result([AWAY, STAYS], HELD)) == ""


def test_what_would_change_our_mind_is_answered_without_samples():
    told = what_changed(result([DRAWN], HELD)).splitlines()
    assert len(told) == 3
    assert told[0].endswith("In all of 1 networks whose attention got there, words came first.")
    assert told[1] == "* Of the second point: it takes networks on samples and on permutations to tell."


def test_a_curve_a_network_and_held_networks_in_the_middle_alone():
    figure = first_updates(result([DRAWN, AWAY, STAYS], HELD))
    above, below, attended = figure.axes
    drawn = [line for line in above.lines if len(line.get_xdata()) == len(STEPS)]
    assert len(drawn) == 3
    assert sum(len(line.get_xdata()) == len(STEPS) for line in below.lines) == 3 + len(HELD)
    assert sum(len(line.get_xdata()) == len(STEPS) for line in attended.lines) == 3
    assert max(drawn[0].get_ydata()) == pytest.approx(9)
