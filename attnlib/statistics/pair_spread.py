"""How much a number of pairs varies from pair to pair, where one unit stands in many pairs."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from attnlib.statistics.jackknife import jackknife_interval
from attnlib.statistics.student import Interval


def pair_spread(numbers: Mapping[tuple[int, int], float]) -> Interval:
    """Standard deviation of a number over pairs of units drawn at random, with an interval over units.

    All pairs of n units are no sample of pairs: they share their units, and their plain variance v_n is too
    small. Where the number of units i and j is s_i + s_j it is so by the factor 1 − 2/n in expectation: half
    is left with 4 units, five sixths with 12, so that sets of few units would seem steadier than they are.
    Quenouille's correction takes out what falls with 1/n,

        v = n v_n − (n − 1) · mean over i of v without unit i,

    which in that model is right in expectation. With what a pair has for itself, of variance τ², v is too
    large by 2 τ² / ((n − 1)(n − 2)). The interval is the jackknife's of √v, cut at 0. With four units and
    normal s it covers the truth in nine cases of ten rather than in 95 %.

    Args:
        numbers: of ordered pairs of two different units, by pair.

    Returns:
        NaN for the value with fewer than three units, for the bounds with fewer than four.
    """
    units = sorted({unit for pair in numbers for unit in pair})
    table = np.array([[numbers.get((one, other), math.nan) for other in units] for one in units])

    def variance(some: Sequence[int]) -> float:
        among = table[np.ix_(some, some)]
        known = among[~np.isnan(among)]
        return float(np.var(known)) if known.size else math.nan

    def deviation(some: Sequence[int]) -> float:
        n = len(some)
        if n < 3:
            return math.nan
        without = fmean(variance([*some[:i], *some[i + 1 :]]) for i in range(n))
        corrected = n * variance(some) - (n - 1) * without
        return math.nan if math.isnan(corrected) else math.sqrt(max(corrected, 0.0))

    found = jackknife_interval(range(len(units)), deviation)
    low = found.low if math.isnan(found.low) else max(found.low, 0.0)
    return Interval(found.value, low, found.high, found.n)
