"""Which way attention goes, when, and what networks that never attend know of words by then."""

import pytest

from attnlib.companion.sentences.copying_answers import what_changed
from attnlib.companion.sentences.knowledge_first import order_outcome, ways_table
from attnlib.experiments.knowledge_first import knowledge_first, way
from attnlib.experiments.result import Result
from attnlib.plotting.knowledge_first import first_updates
from attnlib.rounding import rounded

LENGTH = 10
STEPS = [0, 10, 20, 30]


def course(weights, attended=(0, 0, 0, 0), right=(0.1, 0.1, 0.1, 0.1), accuracy=(0, 0, 0, 0.5)):
    return {
        "steps": STEPS,
        "attention_right": list(weights),
        "attention_accuracy": list(attended),
        "accuracy": list(accuracy),
        "probe_right": list(right),
        "probe_elsewhere": [0.1] * 4,
    }


DRAWN = course((0.1, 0.19, 0.2, 0.9), (0, 0.2, 0.5, 1), (0.1, 0.1, 0.3, 0.9), (0, 0.2, 0.95, 1))
AWAY = course(
    (0.1, 0.06, 0.04, 0.5), right=(0.1, 0.1, 0.05, 0.01)
)  # it comes back; where it went first counts
STAYS = course((0.1, 0.12, 0.08, 0.19))
HELD = [course((0.1,) * 4, right=(0.1, 0.1, known, 0.2)) for known in (0.1, 0.12)]


def points(*courses):
    return [({"seed": seed}, own) for seed, own in enumerate(courses)]


def test_attention_has_left_at_twice_or_half_of_its_equal_share():
    assert (way(DRAWN, LENGTH), way(AWAY, LENGTH), way(STAYS, LENGTH)) == ("drawn", "away", None)
    found = knowledge_first(points(DRAWN, AWAY, STAYS), points(*HELD), LENGTH)
    assert (found["stays"], found["drawn"]["n"], found["away"]["n"]) == (1, 1, 1)
    assert found["drawn"]["left"]["value"] == found["away"]["left"]["value"] == 20


def test_the_probe_is_the_networks_own_and_that_of_networks_held_after_as_many_updates():
    found = knowledge_first(points(DRAWN, AWAY), points(*HELD), LENGTH)
    assert found["drawn"]["own"]["value"] == pytest.approx(3)
    assert found["away"]["own"]["value"] == pytest.approx(0.5)
    known = found["drawn"]["known"]
    assert (known["value"], known["n"]) == (pytest.approx(1.1), 2)
    assert found["drawn"]["half"]["value"] == 20
    assert (found["drawn"]["n_half"], found["away"]["n_half"]) == (1, 0)
    assert found["away"]["known_at_half"]["value"] is None
    assert (found["drawn"]["soonest"], found["drawn"]["latest"], found["away"]["soonest"]) == (20, 20, None)


def test_networks_that_leave_later_than_the_others_were_followed_are_held_against_nothing():
    short = [{name: values[:2] for name, values in held.items()} for held in HELD]
    found = knowledge_first(points(DRAWN), points(*short), LENGTH)
    assert found["drawn"]["known"] == {"value": None, "low": None, "high": None, "n": 0}
    assert found["drawn"]["left"]["value"] == 20


def test_no_networks_is_no_error():
    found = knowledge_first([], [], LENGTH)
    assert found["stays"] == 0
    assert all(found[side]["n"] == 0 and found[side]["own"]["value"] is None for side in ("drawn", "away"))


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


def test_a_row_a_way_says_when_and_what_is_known():
    table = ways_table(result([DRAWN, DRAWN, AWAY, STAYS], HELD))
    drawn, away, stays = (
        table.loc[f"permutations of 10 words, {way}"]
        for way in ("drawn", "driven away", "near uniform attention")
    )
    assert (drawn["networks"], away["networks"], stays["networks"]) == ("2", "1", "1")
    assert (drawn["leaves after"], drawn["its ratio then"]) == ("20 ± 0", "3.00 ± 0.00")
    assert drawn["held: ratio at half"].startswith("1.10 ± ")
    assert (drawn["copies after"], away["copies after"]) == ("20", "none does")
    assert (away["half after"], stays["leaves after"]) == ("–", "")


@pytest.mark.parametrize(("known", "comes_before"), [((0.1, 0.101), True), ((0.1, 0.12), False)])
def test_attention_comes_before_knowledge_only_by_the_whole_interval(known, comes_before):
    held = [course((0.1,) * 4, right=(0.1, 0.1, right, 0.2)) for right in known]
    assert bool(order_outcome(result([DRAWN], held))) == comes_before


def test_what_would_change_our_mind_is_answered_without_samples():
    told = what_changed(result([DRAWN], HELD)).splitlines()
    assert len(told) == 3
    assert told[0] == "* Of the first point: it takes networks on samples and on permutations to tell."


def test_a_curve_a_network_and_held_networks_below_alone():
    figure = first_updates(result([DRAWN, AWAY, STAYS], HELD))
    above, below = figure.axes
    drawn = [line for line in above.lines if len(line.get_xdata()) == len(STEPS)]
    assert len(drawn) == 3
    assert sum(len(line.get_xdata()) == len(STEPS) for line in below.lines) == 3 + len(HELD)
    assert max(drawn[0].get_ydata()) == pytest.approx(9)
