"""Newcombe's interval of a difference of shares in pairs."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from notebooks.learn.multi_head.experiment import share_difference


def pairs_of(both, first, second, neither):
    one, other = [(True, False)] * first, [(False, True)] * second
    return [(True, True)] * both + one + other + [(False, False)] * neither


def wilson(successes, n):
    found = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return found.low, found.high


@pytest.mark.parametrize("counts", [(20, 12, 2, 16), (3, 9, 7, 1), (6, 0, 4, 10), (0, 5, 0, 5), (1, 1, 1, 1)])
def test_it_is_newcombes(counts):
    both, first, second, neither = counts
    n, pairs = sum(counts), pairs_of(*counts)
    (low, high), (other_low, other_high) = wilson(both + first, n), wilson(both + second, n)
    one, other = (both + first) / n, (both + second) / n
    phi = 0.0
    if 0 < one < 1 and 0 < other < 1:
        phi = float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])
        if phi > 0:  # corrected for continuity
            excess = both * neither - first * second
            phi *= max(excess - n / 2, 0) / excess
    found = share_difference(pairs)
    below = (one - low) ** 2 - 2 * phi * (one - low) * (other_high - other) + (other_high - other) ** 2
    above = (high - one) ** 2 - 2 * phi * (high - one) * (other - other_low) + (other - other_low) ** 2
    assert found.value == pytest.approx((first - second) / n)
    assert found.low == pytest.approx(found.value - math.sqrt(below), abs=1e-12)
    assert found.high == pytest.approx(found.value + math.sqrt(above), abs=1e-12)
    assert found.n == n


def test_it_stays_inside_its_bounds_and_turns_round_with_its_shares():
    for counts in product(range(4), repeat=4):
        if sum(counts):
            found = share_difference(pairs_of(*counts))
            assert -1 <= found.low <= found.value <= found.high <= 1
            turned = share_difference([(other, one) for one, other in pairs_of(*counts)])
            assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


def test_pairs_that_are_all_alike_are_no_certainty():
    found = share_difference([(True, False)] * 20)
    assert 0.7 < found.low < found.value == found.high == 1
    assert share_difference([(True, False)]).low < 0  # one pair decides nothing
