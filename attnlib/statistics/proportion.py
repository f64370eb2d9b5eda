"""The interval of a share: how many of so many runs did something."""

import math

from attnlib.errors import BadInput
from attnlib.statistics.student import Interval, check_level

STANDARD_NORMAL_TWO_SIDED = {0.9: 1.6448536269514722, 0.95: 1.959963984540054, 0.99: 2.5758293035489004}


def share_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Share with Wilson's score interval (Wilson 1927): never empty, and inside [0, 1], at 0 and n as well.

    With p = successes / n and z the normal quantile, the bounds are

        (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n).

    >>> share_interval(0, 20).low, round(share_interval(0, 20).high, 3)
    (0.0, 0.161)

    Raises:
        BadInput: no runs, more successes than runs, or a level other than 0.9, 0.95 and 0.99.
    """
    check_level(level)
    if level not in STANDARD_NORMAL_TWO_SIDED:
        raise BadInput(f"level={level}: expected one of {', '.join(map(str, STANDARD_NORMAL_TWO_SIDED))}")
    if not 0 <= successes <= n or n < 1:
        raise BadInput(f"{successes} of {n}: expected at least one run, and no more successes than runs")
    z, share = STANDARD_NORMAL_TWO_SIDED[level], successes / n
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    # At 0 and n one bound is the share itself, up to rounding.
    return Interval(share, 0.0 if successes == 0 else low, 1.0 if successes == n else high, n)
