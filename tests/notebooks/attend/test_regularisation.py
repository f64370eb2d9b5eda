"""Levels of weight decay: which is the strongest that networks learn with, and what decay changes."""

import math

import pytest

from companion.results.frames import Table
from notebooks.attend.regularisation import experiment

KIND = {"task": "scan", "architecture": "AED"}


def networks(**numbers_by_level):
    """Return networks of one kind, from their numbers by seed at each level of weight decay."""
    records = [
        {
            **KIND,
            "weight_decay": float(level.removeprefix("decay_").replace("p", ".")),
            "seed": seed,
            **numbers,
        }
        for level, by_seed in numbers_by_level.items()
        for seed, numbers in enumerate(by_seed)
    ]
    return Table.of(records, experiment.NAMES | experiment.NUMBERS, "a trained network")


def accuracies(*numbers):
    return [{"accuracy": accuracy} for accuracy in numbers]


def estimate(table, quantity):
    (row,) = table.query("quantity == @quantity", quantity=quantity).records()
    return row


@pytest.mark.parametrize(
    ("levels", "strongest"),
    [
        pytest.param({"decay_0": (1.0, 0.96), "decay_0p1": (1.0, 0.95)}, 0.1, id="all-have-learned"),
        pytest.param(
            {"decay_0": (1.0, 0.96), "decay_0p1": (1.0,), "decay_1": (1.0, 0.9)}, 0.1, id="one-has-not"
        ),
        pytest.param(
            {"decay_0": (1.0,), "decay_0p1": (1.0,), "decay_1": (1.0,)}, 1.0, id="the-strongest-of-two"
        ),
        pytest.param({"decay_0": (1.0,), "decay_0p1": (0.9,)}, math.nan, id="with-no-decay"),
        pytest.param({"decay_0": (0.9,), "decay_0p1": (1.0,)}, math.nan, id="not-without-decay"),
        pytest.param({"decay_0p1": (1.0,)}, math.nan, id="none-without-decay"),
    ],
)
def test_the_strongest_level_is_one_that_every_network_has_learned_at(levels, strongest):
    table = networks(**{level: accuracies(*by_seed) for level, by_seed in levels.items()})
    (level,) = experiment.strongest_learned(table).frame["weight_decay"]
    assert level == pytest.approx(strongest, nan_ok=True)


def test_effects_of_decay_are_differences_of_networks_that_share_a_seed():
    table = networks(
        decay_0=[{"accuracy": 1.0, "temporal_share": 0.5}, {"accuracy": 1.0, "temporal_share": 1.5}],
        decay_0p1=[{"accuracy": 1.0, "temporal_share": 0.2}, {"accuracy": 1.0, "temporal_share": 1.2}],
    )
    effects = experiment.decay_effects(table, experiment.strongest_learned(table))
    effect = estimate(effects, "temporal_share")
    assert (effect["value"], effect["low"], effect["n"]) == pytest.approx((-0.3, -0.3, 2))


def test_decay_has_no_effects_where_there_is_no_strongest_level():
    table = networks(decay_0=accuracies(0.9), decay_0p1=accuracies(1.0))
    assert experiment.decay_effects(table, experiment.strongest_learned(table)).records() == []


@pytest.fixture(scope="module")
def levels():
    along = networks(decay_0=[{"temporal_share": 0.5, "scale_scores": 0.25}] * 2, decay_0p1=accuracies(1.0))
    planned = networks(decay_0=[{"temporal_share": 0.125 * seed} for seed in range(5)])
    return experiment.by_level(along, planned)


def test_without_decay_outcomes_are_of_all_networks_that_the_plan_has(levels):
    estimated = estimate(levels.query("weight_decay == 0"), "temporal_share")
    assert (estimated["n"], estimated["value"]) == (5, 0.25)


def test_without_decay_contents_of_residuals_are_of_the_networks_along_the_axis(levels):
    estimated = estimate(levels.query("weight_decay == 0"), "scale_scores")
    assert (estimated["n"], estimated["value"]) == (2, 0.25)


def test_with_decay_outcomes_are_of_the_networks_along_the_axis(levels):
    assert estimate(levels.query("weight_decay == 0.1"), "accuracy")["value"] == 1.0
