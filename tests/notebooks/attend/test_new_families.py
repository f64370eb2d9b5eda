"""The headline on new families: groups, counts and correlations from points by hand."""

import pytest
from scipy.stats import spearmanr

from companion.results.frames import Table
from companion.results.measurements import specs_of
from notebooks.attend.new_families import experiment
from notebooks.attend.new_families.experiment import LEARNED, ORIGIN, POINT, SUITE
from tests.notebooks.figure_builders import tiny


def networks(*points):
    """Networks that have learned, each of an origin and a task, with one number for all its readings."""
    rows = []
    for origin, task, typicality, share in points:
        network = {"task": task, "architecture": "AED", "cell": "gru", "seed": 0, "kind": "AED"}
        numbers = dict.fromkeys(POINT, share) | {"typicality": typicality}
        rows.append(network | {"origin": origin, "learned": True} | numbers)
    return Table.of(rows, SUITE | ORIGIN | LEARNED | POINT, "a trained network")


def estimate(table, **wanted):
    (row,) = (row for row in table.records() if wanted.items() <= row.items())
    return row


POINTS = networks(
    ("new", "lookup", 0.1, 0.2),
    ("new", "sorting", 0.3, 0.1),
    ("new", "addition", 0.9, 0.8),
    ("known", "scan", 0.4, 0.9),
    ("known", "scan_extended", 0.5, 0.3),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("origin", "shares", "typicality"),
    [
        ("new", [0.2, 0.1, 0.8], [0.1, 0.3, 0.9]),
        ("all", [0.2, 0.1, 0.8, 0.9, 0.3], [0.1, 0.3, 0.9, 0.4, 0.5]),
    ],
)
def test_a_correlation_is_over_the_networks_of_its_families(origin, shares, typicality):
    correlations = experiment.over_families(POINTS)
    correlation = estimate(correlations, origin=origin, kind="all", quantity="temporal_own")
    assert correlation["value"] == pytest.approx(spearmanr(typicality, shares).statistic)


@pytest.mark.parametrize(("origin", "families"), [("new", 3), ("known", 1), ("all", 4)])
def test_tasks_of_one_family_count_once(origin, families):
    assert estimate(experiment.counts(POINTS), origin=origin, kind="all")["families"] == families


def test_networks_that_have_not_learned_are_left_out():
    unlearned = POINTS.assign(LEARNED, learned=[False, True, True, True, True])
    assert estimate(experiment.counts(unlearned), origin="new", kind="all")["networks"] == 2


def test_known_tasks_are_measured_as_new_ones_are():
    config = tiny("new_families", known=("one_to_one",))
    tasks = {spec.task for spec in specs_of(experiment.asked(config))}
    assert tasks == {*experiment.FAMILIES, "one_to_one"}
