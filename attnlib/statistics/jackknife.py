"""The jackknife: an interval for a number that takes all units together, such as a mean over their pairs."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from attnlib.errors import BadInput
from attnlib.statistics.student import Interval, check_level, t_quantile

Unit = TypeVar("Unit")


def jackknife_interval(
    units: Sequence[Unit], statistic: Callable[[Sequence[Unit]], float], *, level: float = 0.95
) -> Interval:
    """``statistic`` of all units, and an interval from what it is without each of them.

    With θ the number of all n units and θ_i the number of all but unit i (Tukey 1958; for means over pairs,
    Arvesen 1969),

        θ ± t(n − 1) √( (n − 1)/n · Σ_i (θ_i − mean of θ_i)² ).

    Of a mean over the units this is Student's interval. Of a mean over pairs it does not take the n(n − 1)
    pairs, in which every unit comes back, for that many units: a unit that stands out moves all of its pairs.

    >>> jackknife_interval([1.0, 2.0, 6.0], lambda some: sum(some) / len(some)).as_dict()["value"]
    3.0

    Returns:
        NaN for the bounds where the number does not exist (is NaN) without one of the units: a mean over
        pairs needs three of them.

    Raises:
        BadInput: no unit, or a level outside (0, 1).
    """
    check_level(level)
    n = len(units)
    if not n:
        raise BadInput("the jackknife of no units; give at least one")
    value = statistic(units)
    left = np.array([statistic([*units[:i], *units[i + 1 :]]) for i in range(n)] if n > 1 else [math.nan])
    if np.isnan(left).any():
        return Interval(value, math.nan, math.nan, n)
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(
        (n - 1) / n * float(((left - left.mean()) ** 2).sum())
    )
    return Interval(value, value - half, value + half, n)
