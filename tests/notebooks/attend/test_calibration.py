"""Attributions against effects: what a replaced part does, and how well a share predicts it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.analysis.interventions import ATTRIBUTIONS, WAYS, Donors
from attnlib.analysis.part_shares import FACTOR_SIDES
from attnlib.decomposition import STATE_PARTS
from companion.results.frames import Table
from companion.runs.evaluate import traces
from companion.runs.suite import task_name_of
from notebooks.attend.calibration import experiment
from notebooks.attend.calibration.experiment import (
    AXES,
    EFFECTS,
    FAMILIES_DRAWN,
    OUTCOME_MEANINGS,
    OUTCOMES,
    by_family,
    measure_calibration,
    networks,
)
from notebooks.shared import suite
from notebooks.shared.attribution_ranks import ATTRIBUTED, POINT, SETS, Calibrations, calibrated, statistics
from notebooks.shared.measure import fit_components
from tests.notebooks.figure_builders import Given, computed, tiny

OPTIONS = {"n_train": 600, "n_held_out": 40, "min_length": 5, "max_length": 8}
SPEC = suite.each_planned(
    suite.SuiteConfig(width=8, steps=4, embedding_scale=2.0), "one_to_one", "AED", 1, task_options=OPTIONS
)[0]


# The measure, of a tiny network.


@pytest.fixture(scope="module")
def trained(store):
    return store.model(SPEC)


@pytest.fixture(scope="module")
def measured(trained):
    return measure_calibration(trained, fit_samples=600, samples=40)


def by_plain_loop(trained, way, side, part):
    """The three outcomes of one replacement, step by step."""
    model, held_out = trained.model, trained.task.held_out
    fitted = fit_components(trained, 600)
    (trace,) = traces(model, held_out)  # one batch
    decoder, encoder = fitted.split(trace)
    draw = torch.Generator().manual_seed(experiment.SEED)
    order = torch.randperm(len(trace.target_mask), generator=draw)
    donors = {
        "query": Donors.drawn(decoder.mask, order, draw),
        "keys": Donors.drawn(encoder.mask, order, draw),
    }
    states = {"query": trace.decoder_states, "keys": trace.encoder_states}
    parts = {"query": getattr(decoder, part), "keys": getattr(encoder, part)}
    replaced = {name: values.clone() for name, values in states.items()}
    for name in ("query", "keys") if side == "both" else (side,):
        origin = donors[name].origin(way, part)
        for sample in range(states[name].shape[0]):
            for position in range(states[name].shape[1]):
                donor_sample, donor_position = (
                    origin.sample[sample, position],
                    origin.position[sample, position],
                )
                donor = parts[name][donor_sample, donor_position]
                replaced[name][sample, position] += donor - parts[name][sample, position]

    def one_step(query, keys, sample, step):
        valid = trace.source_mask[sample]
        attention = (keys[sample][valid] @ query[sample, step]).softmax(0)  # (source,)
        context = attention @ trace.encoder_states[sample][valid]
        logits = model.readout(torch.cat([trace.decoder_states[sample, step], context]))
        return attention, logits.softmax(0), -logits.log_softmax(0)[trace.target_outputs[sample, step]]

    total, steps = np.zeros(3), 0
    with torch.no_grad():
        for sample, step in trace.target_mask.nonzero().tolist():
            before = one_step(states["query"], states["keys"], sample, step)
            after = one_step(replaced["query"], replaced["keys"], sample, step)
            moved, changed = (
                (new - old).abs().sum() / 2 for new, old in zip(after[:2], before[:2], strict=True)
            )
            total += float(moved), float(changed), float(after[2] - before[2])
            steps += 1
    return total / steps


@pytest.mark.parametrize(
    ("way", "side", "part"),
    [
        ("exchange", "query", "residual"),
        ("exchange", "both", "input"),
        ("resample", "keys", "residual"),
        ("resample", "both", "temporal"),
    ],
)
def test_effects_are_those_of_a_plain_loop_over_steps(trained, measured, way, side, part):
    effects = measured["effects"][way][side][part]
    expected = by_plain_loop(trained, way, side, part)
    assert [effects[outcome] for outcome in OUTCOMES] == pytest.approx(expected.tolist(), abs=1e-5)
    assert expected[0] > 1e-3


def test_temporal_parts_have_the_same_donors_either_way(measured):
    for side in FACTOR_SIDES:
        assert (
            measured["effects"]["exchange"][side]["temporal"]
            == measured["effects"]["resample"][side]["temporal"]
        )


def test_split_shares_of_the_three_parts_sum_to_one(measured):
    shares = measured["attributions"]["both"]
    assert sum(shares[part]["split"] for part in STATE_PARTS) == pytest.approx(1)


def test_the_split_share_of_one_side_is_half_of_its_any_term_share(measured):
    for part in STATE_PARTS:
        keys = measured["attributions"]["keys"][part]
        assert keys["split"] == pytest.approx(keys["any_term"] / 2)


def test_the_loss_alone_is_that_of_the_training_record(trained, measured):
    assert measured["loss"] == pytest.approx(trained.history["held_out"]["loss"], abs=1e-5)


# How well attributions predict effects, by hand.


def calibration(shares, moved, accuracy=1.0):
    """A network whose attributions of (temporal, input, residual) are ``shares`` and whose effects ``moved``.

    Args:
        shares: by attribution; the others are zero for all parts.
    """
    attributions = {
        part: {name: shares.get(name, (0, 0, 0))[place] for name in ATTRIBUTIONS}
        for place, part in enumerate(STATE_PARTS)
    }
    effects = {part: dict.fromkeys(OUTCOMES, moved[place]) for place, part in enumerate(STATE_PARTS)}
    return {
        "quality": {"token_accuracy": accuracy},
        "attributions": dict.fromkeys(FACTOR_SIDES, attributions),
        "effects": {way: dict.fromkeys(FACTOR_SIDES, effects) for way in WAYS},
    }


NETWORKS = [  # by own terms the temporal part leads in all, by split shares the residual in the second
    calibration({"own": (0.6, 0.1, 0.2), "split": (0.5, 0.2, 0.3)}, (0.8, 0.1, 0.4)),
    calibration({"own": (0.5, 0.0, 0.4), "split": (0.4, 0.1, 0.5)}, (0.5, 0.2, 0.9)),
    calibration({"own": (0.4, 0.3, 0.2), "split": (0.6, 0.3, 0.1)}, (0.3, 0.7, 0.0)),
]


def points_of(*measured, families="aaa"):
    """Return the table of these networks, each of a family of this name."""
    records = []
    for seed, (network, family) in enumerate(zip(measured, families, strict=False)):
        names = {"task": "scan", "architecture": "AED", "cell": "gru", "seed": seed, "family": family}
        records += [names | point for point in experiment._points(network)]
    return Table.of(records, suite.SUITE | suite.FAMILY | POINT | ATTRIBUTED | EFFECTS, "a point")


def once(*measured):
    """Statistics of networks that are each taken once."""
    calibrations = Calibrations.of(points_of(*measured), OUTCOMES)
    return {name: values[0] for name, values in statistics(calibrations, np.ones((1, len(measured)))).items()}


def of(values, way="exchange", side="both", outcome="attention"):
    """Numbers at one way, side and outcome."""
    return values[WAYS.index(way), FACTOR_SIDES.index(side), OUTCOMES.index(outcome)]


def test_hits_count_the_networks_whose_most_effective_part_is_named():
    hits = of(once(*NETWORKS)["hits"])
    by_name = dict(zip(ATTRIBUTIONS, hits.tolist(), strict=True))
    assert by_name["own"] == pytest.approx(1 / 3)
    assert by_name["split"] == pytest.approx(2 / 3)


def test_a_network_is_missed_if_no_attribution_names_its_most_effective_part():
    assert of(once(*NETWORKS)["missed"]) == pytest.approx(1 / 3)  # the third


def test_ranks_within_a_part_are_over_networks():
    # Temporal parts: own terms 0.6, 0.5, 0.4 fall as effects 0.8, 0.5, 0.3 do; split shares do not.
    rank = of(once(*NETWORKS)["rank"])
    temporal = dict(zip(ATTRIBUTIONS, rank[0].tolist(), strict=True))
    assert temporal["own"] == pytest.approx(1)
    assert temporal["split"] == pytest.approx(-0.5)  # ranks (2, 1, 3) and (3, 2, 1): 1 − 6 · 6 / 24


def test_ranks_over_every_part_take_each_part_of_each_network_as_a_point():
    # Pairs of split share and effect, network after network.
    points = [(0.5, 0.8), (0.2, 0.1), (0.3, 0.4), (0.4, 0.5), (0.1, 0.2), (0.5, 0.9)]
    from scipy.stats import spearmanr

    rank = of(once(*NETWORKS[:2])["rank"])[3, ATTRIBUTIONS.index("split")]
    assert rank == pytest.approx(spearmanr(points).statistic)


def test_a_network_drawn_twice_counts_as_two_that_are_alike():
    twice = statistics(Calibrations.of(points_of(*NETWORKS), OUTCOMES), np.array([[2.0, 0, 1]]))
    listed = once(NETWORKS[0], NETWORKS[0], NETWORKS[2])
    for name, values in twice.items():
        np.testing.assert_allclose(values[0], listed[name])


def test_shares_that_are_the_same_everywhere_have_no_rank_correlation():
    assert np.isnan(of(once(*NETWORKS)["rank"])[3, ATTRIBUTIONS.index("substitution")])  # all zero


def estimate(estimates, part, **names):
    """The row of attention where both sides are exchanged."""
    names |= {"way": "exchange", "side": "both", "outcome": "attention", "part": part}
    (row,) = (row for row in estimates.records() if names.items() <= row.items())
    return row


def over_these_families(families):
    """Return estimates of the three networks, of families of these names."""
    points = points_of(*NETWORKS, families=families)
    return calibrated(points, unit=["seed"], outcomes=OUTCOME_MEANINGS, resampled=FAMILIES_DRAWN)


def test_the_gain_of_split_shares_is_the_difference_of_both_ranks():
    differences = over_these_families("abc")["differences"]
    gain = estimate(differences, "temporal", difference="split_minus_own")
    assert gain["value"] == pytest.approx(-1.5)
    assert gain["low"] <= gain["value"] <= gain["high"]


def test_two_families_are_too_few_for_a_number_over_families():
    ranks = over_these_families("abb")["rank"]
    rank = estimate(ranks, "temporal", attribution="own")
    assert (rank["value"], rank["low"], rank["high"], rank["n"]) == (None, None, None, 3)


@pytest.mark.parametrize(
    ("axis", "names"),
    [
        ("way", WAYS),
        ("side", FACTOR_SIDES),
        ("outcome", OUTCOMES),
        ("part", SETS),
        ("attribution", ATTRIBUTIONS),
    ],
)
def test_names_of_an_axis_are_in_the_order_of_its_numbers(axis, names):
    assert tuple(AXES["rank"][axis].categories) == names


def test_networks_that_have_not_learned_do_not_count():
    config = tiny("calibration")
    accuracy = {spec: 1.0 for spec in networks(config)}
    accuracy[networks(config)[0]] = 0.5
    store = Given(lambda spec, *_, **__: calibration({"own": (1, 0, 0)}, (1, 0, 0), accuracy[spec]))
    outcome = computed(config, store)
    assert outcome.values["networks"] == len(accuracy) - 1
    points = outcome.tables["points"]
    assert sum(not row["learned"] for row in points) == len(FACTOR_SIDES) * len(STATE_PARTS)


def test_a_network_without_shares_does_not_count():
    config = tiny("calibration")
    shares = {spec: {"own": (1, 0, 0)} for spec in networks(config)}
    shares[networks(config)[0]] = {"own": (1, 0, None)}
    store = Given(lambda spec, *_, **__: calibration(shares[spec], (1, 0, 0)))
    assert computed(config, store).values["networks"] == len(shares) - 1


def test_a_family_in_which_every_share_misleads_has_none_that_does_well():
    wrong = calibration({"own": (0.1, 0.2, 0.3), "split": (0.1, 0.2, 0.3)}, (0.9, 0.5, 0.1))
    right = calibration({"own": (0.3, 0.2, 0.1), "split": (0.3, 0.2, 0.1)}, (0.9, 0.5, 0.1))
    families = by_family(points_of(wrong, right, families=["misled", "led"])).records()
    assert {row["family"]: row["does_well"] for row in families} == {"misled": False, "led": True}


def test_attention_only_is_left_out_where_it_does_not_learn():
    config = replace(tiny("calibration"), task=("one_to_one", "scan"))
    assert {(spec.task, spec.architecture) for spec in networks(config)} == {
        ("one_to_one", "AED"),
        ("one_to_one", "AO"),
        ("scan", "AED"),
    }


def test_a_change_along_the_dial_is_the_last_mark_minus_the_first():
    config = replace(tiny("calibration"), task=("reordering_0", "reordering_50", "reordering_100"), seeds=2)
    moved = {"reordering_0": 0.1, "reordering_50": 0.3, "reordering_100": 0.6}
    store = Given(lambda spec, *_, **__: calibration({"own": (1, 0, 0)}, (moved[task_name_of(spec)], 0.5, 0)))
    dial = computed(config, store).values["dial"]
    assert dial["ends"]["both"]["temporal"]["exchange_attention"]["value"] == pytest.approx(0.5)
    assert dial["along"]["both"]["temporal"]["exchange_attention"]["value"] == pytest.approx(1)
    assert dial["ends"]["both"]["input"]["exchange_attention"]["value"] == pytest.approx(0)


def test_the_lead_of_memory_is_its_effect_minus_that_of_position_at_the_same_mark():
    config = replace(tiny("calibration"), task=("reordering_0", "reordering_100"), seeds=2)
    moved = {"reordering_0": (0.5, 0.3, 0.1), "reordering_100": (0.2, 0.3, 0.6)}
    store = Given(lambda spec, *_, **__: calibration({"own": (1, 0, 0)}, moved[task_name_of(spec)]))
    leads = computed(config, store).values["dial"]["leads"]
    assert leads["reordering_0"]["keys"]["exchange_attention"]["value"] == pytest.approx(-0.4)
    assert leads["reordering_100"]["keys"]["exchange_attention"]["value"] == pytest.approx(0.4)
