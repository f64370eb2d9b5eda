"""Good and bad heads: how they are told apart, which networks they make, on which data, and who attends."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from attnlib.errors import NotMeasured
from companion.results.frames import Table
from companion.runs.procedure import RunSpec
from notebooks.learn.multi_head import experiment
from notebooks.learn.multi_head.experiment import first_head, heads_drawn, shares_apart, some_good
from notebooks.learn.multi_head.trainings.multi_head import Settings, new_network
from notebooks.shared.copying import ATTENTION, PROBES
from tests.notebooks import figure_builders
from tests.notebooks.figure_builders import Given, tiny
from tests.notebooks.worked import assert_answer

ENDS = {0: 0.97, 1: 0.5, 2: 0.4}  # one good head and two bad ones


def computed(ends, missing=(), **changes):
    """Settings that were asked for, values, and rows, where accuracies of single heads are given in the end.

    By (head, seed) or by head; one without is neither good nor bad. A network has that of the best of its
    heads; ``missing`` heads are never trained.
    """

    def answer(spec, measure):
        heads, seed = spec.resolved.heads, spec.resolved.seed
        accuracies = [ends.get((head, seed), ends.get(head, 0.7)) for head in heads]
        others = {column: [0.5] * 3 for column in ("loss", *ATTENTION, *PROBES)}
        weights = [[0.1] * len(accuracies), accuracies, accuracies]  # what a head is worth, it attends
        course = {
            "steps": [0, 1, 2],
            "accuracy": [0.1, max(accuracies), max(accuracies)],
            "head_right": weights,
        }
        return None if heads in missing else course | others

    store = Given(answer)
    outcome = figure_builders.computed(tiny("multi_head", **changes), store)
    return store.measured, outcome.values, outcome.tables


def test_heads_are_good_or_bad_on_all_their_data_or_neither():
    _, values, rows = computed(ENDS | {(3, 0): 0.99, (3, 1): 0.2}, candidates=5, trials=2, seeds=4)
    counts, heads = values["heads"], defaultdict(list)
    for row in rows["outcomes"]:
        heads[row["scenario"]].append(tuple(map(int, row["heads"].split())))
    assert (counts["tried"], counts["good"], counts["bad"]) == (5, 1, 2)
    assert (values["all_bad"]["failed"]["value"], values["one_good"]["failed"]["value"]) == (1, 0)
    assert [set(members) for members in heads["all_bad"]] == 4 * [{1, 2}]
    assert set(heads["one_good"]) <= {(0, 1), (0, 2)}
    assert sorted(sum(heads["random"], ())) == list(range(experiment.UNSEEN, experiment.UNSEEN + 8))


def test_without_all_trials_no_head_is_good_or_bad():
    with pytest.raises(NotMeasured, match="1 of 2 single heads have no answer yet on data seed 0"):
        computed({0: 0.3, 1: 0.3}, missing=[(1,)])


def test_the_early_snapshot_is_one_after_the_beginning():
    for every, followed, step in ((10, 200, 20), (8, 200, 16), (30, 200, 30), (9, 5, 9)):
        assert experiment.Config(steps=every, every=every, followed=followed).early == step


# What networks of the chapter have in common, and what varies.


def test_networks_of_one_body_differ_in_their_query_maps_alone():
    network, other = (new_network(Settings(heads=(head,), length=4, width=6)) for head in (0, 1))
    for (name, first), second in zip(network.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second) != name.startswith("queries"), name
    body = new_network(Settings(heads=(0,), body=1, length=4, width=6))
    assert torch.equal(body.queries.weight, network.queries.weight)
    assert not torch.equal(body.hidden.weight, network.hidden.weight)
    among = new_network(Settings(heads=(1, 0), length=4, width=6))  # a head starts alike among others
    assert torch.equal(among.queries.weight[6:], network.queries.weight)
    assert torch.equal(among.queries.bias[6:], network.queries.bias)
    assert network.queries.weight.abs().max() <= 6**-0.5


@pytest.fixture
def three_heads(store):
    """Of a network with two equal heads and another."""
    return store.recording(
        RunSpec.of("multi_head", heads=(3, 3, 1), length=4, width=8, steps=20, every=20, learning_rate=0.01)
    )


def test_attention_on_the_right_word_is_the_mean_over_heads(three_heads):
    torch.testing.assert_close(three_heads["head_right"].mean(dim=1), three_heads["attention_right"])


def test_equal_heads_learn_alike(three_heads):
    """So that copies are one head with a longer context."""
    head, equal, _ = three_heads["head_right"].T
    torch.testing.assert_close(head, equal)
    assert not torch.allclose(head[1:], head[:1], atol=1e-3)  # the network has learned


def test_different_heads_learn_otherwise(three_heads):
    head, _, other = three_heads["head_right"].T
    assert not torch.allclose(head, other, atol=1e-3)


# Which heads each scenario has, and what is compared.


@pytest.mark.parametrize(
    ("courses", "all_bad", "one_good", "copied"),
    [({0: 0.3, 1: 0.97, 2: 0.98}, 0, 1, 1), ({0: 0.3, 1: 0.3}, 1, 0, 1), ({0: 0.97, 1: 0.97}, 0, 0, 0)],
)
def test_a_scenario_of_too_few_heads_has_no_networks(courses, all_bad, one_good, copied):
    """None of fewer heads, which would be judged as if they had all of them."""
    asked, values, _ = computed(courses, candidates=3)
    assert [values[name]["n"] for name in experiment.SCREENED] == [all_bad, copied, one_good]
    assert ["not_run" not in values[name] for name in experiment.SCREENED] == [all_bad, copied, one_good]
    assert {len(spec.heads) for spec in asked} == {1, 2}
    assert ("not_run" in values["all_bad_less_one_good"]) == (not all_bad or not one_good)
    if not all_bad:
        assert values["all_bad"]["not_run"] == "too few of the heads that were tried alone turned out bad"
        assert values["all_bad"]["failed"]["value"] is None


def test_a_good_head_is_read_in_networks_that_did_not_fail():
    _, values, _ = computed(ENDS, candidates=3, seeds=4)
    good_head = values["good_head"]
    assert (good_head["n"], good_head["wins"]["value"], good_head["weight"]["value"]) == (4, 1, 0.97)
    assert (good_head["alone"]["n"], good_head["alone"]["failed"]["value"]) == (1, 0)


def test_pairs_are_of_networks_of_one_seed():
    def drawn(by_seed):
        records = [{"seed": seed, "none_drawn": not drawn} for seed, drawn in by_seed.items()]
        return Table.of(records, experiment.NAMES | experiment.HEADS, "a trained network")

    alone, several = drawn({0: True, 1: True, 2: False}), drawn({0: True, 1: False, 2: False, 3: True})
    (pairs,) = experiment.paired_counts(alone, several).records()
    assert pairs == {"both": 1, "several_only": 0, "alone_only": 1, "neither": 1}


# A difference of shares over pairs.


def pairs_of(*counts):
    """Pairs of which both hold, the first alone, the second alone, or neither."""
    kinds = product((True, False), repeat=2)
    return [pair for pair, count in zip(kinds, counts, strict=True) for _ in range(count)]


def wilson(successes, n):
    return tuple(binomtest(successes, n).proportion_ci(0.95, method="wilson"))


@pytest.mark.parametrize(
    "counts", [(20, 12, 2, 16), (3, 9, 7, 1), (6, 0, 4, 10), (0, 5, 0, 5), (1, 1, 1, 1), (0, 20, 0, 0)]
)
def test_a_difference_of_shares_has_newcombes_interval(counts):
    both, first, second, neither = counts
    n, pairs = sum(counts), pairs_of(*counts)
    (low, high), (other_low, other_high) = wilson(both + first, n), wilson(both + second, n)
    first_share, other = (both + first) / n, (both + second) / n
    phi = 0.0
    if 0 < first_share < 1 and 0 < other < 1:
        phi = float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])
        if phi > 0:  # corrected for continuity
            excess = both * neither - first * second
            phi *= max(excess - n / 2, 0) / excess
    interval = experiment.share_difference(pairs)
    below = (
        (first_share - low) ** 2
        - 2 * phi * (first_share - low) * (other_high - other)
        + (other_high - other) ** 2
    )
    above = (
        (high - first_share) ** 2
        - 2 * phi * (high - first_share) * (other - other_low)
        + (other - other_low) ** 2
    )
    assert interval["value"] == pytest.approx((first - second) / n)
    assert interval["low"] == pytest.approx(interval["value"] - math.sqrt(below), abs=1e-12)
    assert interval["high"] == pytest.approx(interval["value"] + math.sqrt(above), abs=1e-12)
    assert interval["n"] == n


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            ({"head_right": [[0.5, 0.5, 0.5], [0.9, 0.2, 0.1]]},),
            {"weight": 0.9, "best_other": 0.2, "wins": True},
            id="it_wins",
        ),
        pytest.param(
            ({"head_right": [[0.5, 0.5, 0.5], [0.3, 0.2, 0.8]]},),
            {"weight": 0.3, "best_other": 0.8, "wins": False},
            id="another_wins",
        ),
        pytest.param(({"head_right": [[0.5]]},), {"weight": 0.5, "best_other": 0, "wins": True}, id="alone"),
    ],
)
def test_first_head_by_hand(given, expected):
    assert_answer(first_head(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # At 1/length a head is drawn; one head of the second network turned after the early snapshot.
        pytest.param(
            ({"steps": [0, 1, 2], "head_right": [[0.25, 0.25], [0.3, 0.4], [0.9, 0.25]]}, 4, 1),
            {"all_drawn": True, "none_drawn": False, "mixed": False, "all_same": True},
            id="all",
        ),
        pytest.param(
            ({"steps": [0, 1, 2], "head_right": [[0.25, 0.25], [0.3, 0.2], [0.1, 0.24]]}, 4, 1),
            {"all_drawn": False, "none_drawn": True, "mixed": False, "all_same": False},
            id="none",
        ),
        pytest.param(
            ({"steps": [0, 1, 2], "head_right": [[0.25, 0.25], [0.9, 0.1], [0.9, 0.1]]}, 4, 1),
            {"all_drawn": False, "none_drawn": False, "mixed": True, "all_same": True},
            id="some",
        ),
    ],
)
def test_heads_drawn_by_hand(given, expected):
    assert_answer(heads_drawn(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Half of the single heads are good, so that two hold one with 1 − 1/4.
        pytest.param(
            ({"value": 0.5, "low": 0.0, "high": 1.0, "n": 2}, 2),
            {"value": 0.75, "low": 0, "high": 1, "n": 2},
            id="two_of_which_half_are_good",
        )
    ],
)
def test_some_good_by_hand(given, expected):
    assert_answer(some_good(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Seed 3 has no partner.
        pytest.param(
            ({0: True, 1: False, 2: False, 3: True}, {0: True, 1: True, 2: False}),
            {"value": -1 / 3, "n": 3},
            id="a_seed_without_a_partner",
        ),
        pytest.param(({}, {}), {"value": None, "low": None, "high": None, "n": 0}, id="no_seeds"),
    ],
)
def test_shares_apart_by_hand(given, expected):
    assert_answer(shares_apart(*given), expected)
