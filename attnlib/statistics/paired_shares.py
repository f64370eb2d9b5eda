"""The difference of two shares of the same runs: how much more often one of two things happens."""

import math
from collections.abc import Sequence

from attnlib.errors import BadInput
from attnlib.statistics.proportion import share_interval
from attnlib.statistics.student import Interval


def share_difference(pairs: Sequence[tuple[bool, bool]], *, level: float = 0.95) -> Interval:
    """The share of the first less that of the second, with Newcombe's interval for pairs.

    It adds the squares of how far Wilson's bounds stand from each share, less twice their product times φ,
    the correlation of both in the pairs: method 10 of Newcombe (1998, Statistics in Medicine 17(22),
    2635-2650). φ is corrected for continuity where it is positive, and 0 where one of the two always or never
    happens. Unlike an interval of the mean of the differences it stays inside [-1, 1], and is not a point
    where all pairs are alike.

    >>> share_difference([(True, False)] * 3).value, round(share_difference([(True, False)] * 3).low, 2)
    (1.0, 0.21)

    Raises:
        BadInput: no pairs, or a level other than 0.9, 0.95 and 0.99.
    """
    if not pairs:
        raise BadInput("no pairs; expected at least one")
    n = len(pairs)
    one, other = (share_interval(sum(own), n, level=level) for own in zip(*pairs, strict=True))
    correlation = _correlation(pairs)

    def apart(first: float, second: float) -> float:
        return math.sqrt(max(0.0, first**2 - 2 * correlation * first * second + second**2))

    value = sum(first - second for first, second in pairs) / n
    low = value - apart(one.value - one.low, other.high - other.value)
    high = value + apart(one.high - one.value, other.value - other.low)
    return Interval(value, low, high, n)


def _correlation(pairs: Sequence[tuple[bool, bool]]) -> float:
    """φ of the two, from counts of pairs with both, with one alone and with neither."""
    n = len(pairs)
    both, neither = sum(a and b for a, b in pairs), sum(not (a or b) for a, b in pairs)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    spread = first * (n - first) * second * (n - second)
    if not spread:
        return 0.0
    excess = both * neither - (first - both) * (second - both)
    return (max(excess - n / 2, 0.0) if excess > 0 else excess) / math.sqrt(spread)
