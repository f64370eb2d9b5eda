"""The spread over pairs of networks, in where attention rests, and its interval."""

import math
from itertools import permutations
from statistics import fmean, stdev

import numpy as np
import pytest

from notebooks.learn.resting_attention.experiment import pair_spread


def sums(values):
    return {(i, j): values[i] + values[j] for i, j in permutations(range(len(values)), 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0, 5.0), (3.0, -1.0, 4.0, 1.0), (0.0, 0.0, 2.0, 7.0, 1.0)])
def test_the_spread_of_sums_is_root_two_times_the_deviation_of_the_units(values):
    """Two units drawn at random have twice the variance of one, which ``stdev`` squared estimates."""
    assert pair_spread(sums(values))["value"] == pytest.approx(math.sqrt(2) * stdev(values))


def test_the_interval_of_four_units_covers_in_some_nine_cases_of_ten():
    generator = np.random.default_rng(1)
    found = [pair_spread(sums(generator.normal(size=4).tolist())) for _ in range(1_000)]
    assert fmean(one["low"] <= math.sqrt(2) <= one["high"] for one in found) == pytest.approx(0.89, abs=0.03)


def test_the_interval_is_not_below_zero_and_takes_four_units():
    one_apart = pair_spread(sums([0.0, 0.0, 0.0, 6.0]))
    assert 0 == one_apart["low"] < one_apart["value"] < one_apart["high"]
    assert one_apart["value"] == pytest.approx(math.sqrt(2) * 3)
    three, two = pair_spread(sums([0.0, 1.0, 5.0])), pair_spread(sums([0.0, 1.0]))
    assert (math.isnan(three["low"]), math.isnan(three["value"]), three["n"]) == (True, False, 3)
    assert (math.isnan(two["value"]), two["n"]) == (True, 2)
    alike = pair_spread(dict.fromkeys(permutations(range(5), 2), 0.1))
    assert (alike["value"], alike["low"], alike["high"]) == pytest.approx((0, 0, 0), abs=1e-7)
    some = sums([0.0, 1.0, 5.0, 2.0])
    del some[0, 1]
    assert pair_spread(some)["value"] > 0  # a pair that is missing is left out
