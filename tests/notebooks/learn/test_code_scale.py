"""Codes of several scales: the ends of the scale are other trainings, and gaps are worked by hand."""

import pytest
import torch

from notebooks.learn.code_scale.trainings import scaled_codes
from notebooks.shared.trainings import permutation_copying, place_codes
from tests.notebooks.figure_builders import computed, tiny
from tests.notebooks.worked import store_of

SMALL = {"length": 4, "width": 8, "batch_size": 4, "steps": 4, "every": 2, "held_out": 6, "seed": 1}


def assert_same_bits(recorded, other):
    assert {name for name, values in recorded.items() if not torch.equal(values, other[name])} == set()


@pytest.mark.parametrize("order", ["copy", "permuted"])
def test_at_scale_0_a_network_is_trained_as_one_without_codes(tmp_path, order):
    with_codes = scaled_codes.Settings(order=order, scale=0.0, **SMALL)
    without = permutation_copying.Settings(kind="sample", order=order, **SMALL)
    recorded = scaled_codes.record(with_codes, tmp_path / "with")
    assert_same_bits(recorded, permutation_copying.record(without, tmp_path / "without"))


def test_at_scale_1_a_network_is_trained_as_one_with_codes_of_places(tmp_path):
    scaled = scaled_codes.Settings(order="permuted", scale=1.0, **SMALL)
    placed = place_codes.Settings(order="permuted", recurrent=True, **SMALL)
    recorded = scaled_codes.record(scaled, tmp_path / "scaled")
    assert_same_bits(recorded, place_codes.record(placed, tmp_path / "placed"))


def test_another_scale_is_another_training(tmp_path):
    scales = {scale: scaled_codes.Settings(scale=scale, **SMALL) for scale in (0.5, 1.0)}
    losses = [
        scaled_codes.record(settings, tmp_path / str(scale))["loss"].tolist()
        for scale, settings in scales.items()
    ]
    assert losses[0] != losses[1]


def course(attention, words):
    """Return a course that is looked at after each update."""
    return {"steps": list(range(len(words))), "attention_accuracy": attention, "accuracy": words}


def values_of(courses):
    """Return the values of pairs with equal courses, by scale and order."""
    entries = [
        {"of": {"scale": scale, "order": order}, "is": of_order}
        for (scale, order), of_order in courses.items()
    ]
    config = tiny("code_scale", scales=(0.0, 1.0), permuted_steps=(8, 8), copy_steps=8)
    return computed(config, store_of(entries)).values


AT_2, AT_4, AT_8 = ([0.0] * updates + [1.0] * (9 - updates) for updates in (2, 4, 8))
NEVER = [0.0] * 9


@pytest.fixture(scope="module")
def values():
    return values_of(
        {
            (0.0, "copy"): course(AT_2, AT_4),
            (0.0, "permuted"): course(AT_8, NEVER),
            (1.0, "copy"): course(AT_2, AT_4),
            (1.0, "permuted"): course(AT_4, AT_4),
        }
    )


@pytest.mark.parametrize(
    ("key", "doublings"),
    [
        pytest.param(("gap", "0", "attention"), 2, id="attention-without-codes"),
        pytest.param(("gap", "1", "attention"), 1, id="attention-with-codes"),
        pytest.param(("fall", "1", "attention"), 1, id="what-codes-take-off"),
        pytest.param(("gap", "1", "words"), 0, id="words-with-codes"),
        pytest.param(("gap", "0", "words"), 1, id="words-that-are-never-learned-count-with-all-updates"),
    ],
)
def test_gaps_are_in_doublings_of_updates(values, key, doublings):
    quantity, scale, reached = key
    assert values[quantity][scale][reached]["value"] == doublings


def test_a_gap_with_a_network_that_never_gets_there_is_a_lower_bound(values):
    assert values["gap"]["0"]["words"]["at_least"]


def test_networks_that_never_attend_are_counted(values):
    assert (values["never"]["0"]["permuted"], values["never"]["1"]["permuted"]) == (0, 0)
