"""A fixed order against copying: the same words and parameters, in pairs by seed."""

import pytest
import torch

from companion.runs.keys import model_key
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.fixed_permutation.experiment import _late_rise, furthest
from tests.notebooks.figure_builders import TINY
from tests.notebooks.given import by_seed


def test_networks_of_one_seed_differ_in_the_order_of_their_targets_alone(tmp_path):
    settings = {name: TINY["fixed_permutation"][name] for name in ("length", "width", "steps", "every")}
    specs = [
        RunSpec.of("permutation_copying", kind="sample", network="proxy", order=order, **settings)
        for order in ("copy", "permuted")
    ]
    copied, permuted = (Store(tmp_path).recording(spec) for spec in specs)
    assert model_key(specs[0]) != model_key(specs[1])
    # A bag of words does not see the order, so its course is the same.
    torch.testing.assert_close(copied["loss"], permuted["loss"])
    torch.testing.assert_close(copied["probe_right"], permuted["probe_right"])


def test_the_widest_gap_on_the_way_is_found_and_held_against_one_order():
    course = {"steps": [0, 10, 20]}
    copied, permuted = (
        by_seed(*(course | {"probe_right": probe} for probe in probes))
        for probes in (([0.0, 0.5, 0.9], [0.0, 0.6, 1.0]), ([0.0, 0.8, 1.0], [0.0, 0.9, 1.0]))
    )
    found = furthest(copied, permuted)
    assert (found["value"], found["steps"], found["looks"], found["n"]) == (pytest.approx(-0.3), 10, 3, 2)
    assert found["among"] == pytest.approx(0.1)


def test_a_rise_at_the_end_is_of_the_last_quarter():
    course = {"accuracy": [0.0, 0.1, 0.2, 0.3, 0.9]}
    assert _late_rise(course) == pytest.approx(0.6)
