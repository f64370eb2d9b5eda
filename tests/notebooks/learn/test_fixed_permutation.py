"""A fixed order against copying: the same words and parameters, in pairs by seed."""

import pytest
import torch

from companion.runs.keys import model_key
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.fixed_permutation.experiment import NETWORKS, _late_rise, compute, furthest, measurements
from notebooks.shared.copying import PROBES
from tests.notebooks.figure_builders import TINY, tiny
from tests.notebooks.given import Given


def computed(ends, missing=(), **changes):
    """Of a store that knows, of every network but some, a course that ends in given numbers."""

    def answer(spec, measure):
        name = (spec.resolved.order, spec.resolved.network, spec.seed)
        course = {column: [0.1, 0.1] for column in ("loss", "accuracy", "attention_accuracy", *PROBES)}
        course |= {column: [0.1, end] for column, end in ends.get(name, {}).items()}
        return None if name in missing else course | {"steps": [0, 4]}

    return compute(tiny("fixed_permutation", **changes), Given(answer))


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


def test_probes_are_compared_within_seeds():
    ends = {("copy", "uniform", 0): {"probe_right": 0.5}, ("permuted", "uniform", 0): {"probe_right": 0.3}}
    ends |= {("copy", "uniform", 1): {"probe_right": 0.9}, ("permuted", "uniform", 1): {"probe_right": 0.7}}
    values, _ = computed(ends, controls=2)
    found = values["copy_less_permuted"]["probe_right"]
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.2, 0.2, 0.2))
    assert values["copy_less_permuted"]["furthest"]["value"] == pytest.approx(0.2)
    values, _ = computed(ends, [("permuted", "uniform", 1)], controls=2)
    assert values["copy_less_permuted"]["probe_right"]["n"] == 1


def test_what_is_not_measured_leaves_no_number():
    missing = [("permuted", network, seed) for network in NETWORKS for seed in range(2)]
    values, tables = computed({}, missing)
    assert values["permuted"]["lowest_accuracy"] is None
    assert values["copy_less_permuted"]["probe_right"]["n"] == 0
    assert {row["order"] for row in tables["outcomes"]} == {"copy"}


def test_the_widest_gap_on_the_way_is_found_and_held_against_one_order():
    course = {"steps": [0, 10, 20]}
    copied, permuted = (
        [({"seed": seed}, course | {"probe_right": probe}) for seed, probe in enumerate(probes)]
        for probes in (([0.0, 0.5, 0.9], [0.0, 0.6, 1.0]), ([0.0, 0.8, 1.0], [0.0, 0.9, 1.0]))
    )
    found = furthest(copied, permuted)
    assert (found["value"], found["steps"], found["looks"], found["n"]) == (pytest.approx(-0.3), 10, 3, 2)
    assert found["among"] == pytest.approx(0.1)
    assert furthest([], permuted)["n"] == 0


def test_networks_with_more_updates_are_judged_apart():
    changes = {"longer_steps": 8, "longer_seeds": 2}
    asked = [one.spec.resolved for one in measurements(tiny("fixed_permutation", **changes))]
    longer = {(own.order, own.network, own.every) for own in asked if own.steps == 8}
    assert longer == {("permuted", "learned", 10)}
    values, _ = computed({("permuted", "learned", 0): {"accuracy": 0.99}}, **changes)
    assert (values["longer"]["n"], values["longer"]["never"], values["permuted"]["n"]) == (2, 1, 2)
    assert values["longer"]["peak"]["value"] == pytest.approx((0.99 + 0.1) / 2)


def test_a_rise_at_the_end_is_of_the_last_quarter():
    course = {"accuracy": [0.0, 0.1, 0.2, 0.3, 0.9]}
    assert _late_rise(course) == pytest.approx(0.6)
