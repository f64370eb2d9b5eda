"""Intervals that one figure each has: of a spread over pairs of seeds, and of a difference of shares."""

import math
from itertools import permutations, product
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.stats import binomtest

from attnlib.errors import BadInput
from notebooks.learn.multi_head.experiment import share_difference
from notebooks.learn.resting_attention.experiment import pair_spread


def sums(values):
    return {(i, j): values[i] + values[j] for i, j in permutations(range(len(values)), 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0, 5.0), (3.0, -1.0, 4.0, 1.0), (0.0, 0.0, 2.0, 7.0, 1.0)])
def test_the_spread_of_sums_is_root_two_times_the_deviation_of_the_units(values):
    """Two units drawn at random have twice the variance of one, which ``stdev`` squared estimates."""
    assert pair_spread(sums(values)).value == pytest.approx(math.sqrt(2) * stdev(values))


def test_the_interval_of_four_units_covers_in_some_nine_cases_of_ten():
    generator = np.random.default_rng(1)
    found = [pair_spread(sums(generator.normal(size=4).tolist())) for _ in range(1_000)]
    assert fmean(one.low <= math.sqrt(2) <= one.high for one in found) == pytest.approx(0.89, abs=0.03)


def test_the_interval_is_not_below_zero_and_takes_four_units():
    one_apart = pair_spread(sums([0.0, 0.0, 0.0, 6.0]))
    assert 0 == one_apart.low < one_apart.value < one_apart.high
    assert one_apart.value == pytest.approx(math.sqrt(2) * 3)
    three, two = pair_spread(sums([0.0, 1.0, 5.0])), pair_spread(sums([0.0, 1.0]))
    assert (math.isnan(three.low), math.isnan(three.value), three.n) == (True, False, 3)
    assert (math.isnan(two.value), two.n) == (True, 2)
    alike = pair_spread(dict.fromkeys(permutations(range(5), 2), 0.1))
    assert (alike.value, alike.low, alike.high) == pytest.approx((0, 0, 0), abs=1e-7)


def test_pairs_that_are_missing_are_left_out_and_none_at_all_is_refused():
    some = {pair: number for pair, number in sums([0.0, 1.0, 5.0, 2.0]).items() if pair != (0, 1)}
    assert pair_spread(some).value > 0
    with pytest.raises(BadInput, match="no units"):
        pair_spread({})


def pairs_of(both, first, second, neither):
    return (
        [(True, True)] * both
        + [(True, False)] * first
        + [(False, True)] * second
        + [(False, False)] * neither
    )


def wilson(successes, n):
    return tuple(binomtest(successes, n).proportion_ci(0.95, method="wilson"))


@pytest.mark.parametrize("counts", [(20, 12, 2, 16), (3, 9, 7, 1), (6, 0, 4, 10), (0, 5, 0, 5), (1, 1, 1, 1)])
def test_a_difference_of_shares_has_newcombes_interval(counts):
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
