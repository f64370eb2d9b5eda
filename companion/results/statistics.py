"""Intervals of means, shares and correlations over few runs.

Experiments here have three to ten seeds. A percentile bootstrap of three values can only return means of
three of those values, and its 95 % interval covers the mean about 60 to 75 % of the time; Student's t
interval is exact for normal values at any n, so means over seeds use it.

scipy is imported where it is used: a bare node reads from the experiments what they measure, and has none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput


@dataclass(frozen=True)
class Interval:
    """An estimate from `n` values; `low` and `high` are NaN where n is too small to say."""

    value: float
    low: float
    high: float
    n: int

    def as_dict(self) -> dict[str, float | int]:
        """The form that stands in results."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def mean_interval(values: Sequence[float] | Float[np.ndarray, "n"], *, level: float = 0.95) -> Interval:
    """Mean with Student's t interval: mean ± t(n - 1) s / sqrt(n), s with n - 1 in the denominator.

    One value has no interval (NaN bounds). Raises BadInput for no values, values that are not finite, a level
    outside (0, 1).
    """
    values = finite_values(values)
    check_level(level)
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return Interval(mean, math.nan, math.nan, 1)
    from scipy import stats

    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def finite_values(values: Sequence[float] | Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise BadInput(
            f"Values {np.array2string(array, threshold=10)}: expected a list of at least one finite number."
        )
    return array


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise BadInput(f"level={level}: expected a share between 0 and 1, such as 0.95.")


# Bootstrap intervals over runs, flat and in two levels (tasks, then the seeds of each).

Statistic = Callable[[Float[np.ndarray, "n ..."]], float]


def percentile_bootstrap(
    values: Sequence | Float[np.ndarray, "n ..."],
    generator: np.random.Generator,
    *,
    statistic: Statistic = np.mean,
    resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of `statistic` over rows drawn with replacement (Efron 1979).

    `values` holds a row for each seed (a number, or a vector such as an (x, y) point). Too narrow below about
    ten rows: for means of few seeds use `mean_interval`. Resamples where the statistic is NaN (a constant
    column under a correlation) are left out.

    Raises BadInput for no rows, a level outside (0, 1), fewer than one resample.
    """
    return hierarchical_bootstrap([values], generator, statistic=statistic, resamples=resamples, level=level)


def hierarchical_bootstrap(
    groups: Sequence | Mapping[str, Sequence],
    generator: np.random.Generator,
    *,
    statistic: Statistic = np.mean,
    resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval where seeds are nested in tasks: draw tasks with replacement, then seeds within
    each.

    `groups` holds for each task its rows, one a seed. Seeds of one task are alike, so drawing all rows as one
    bag would make the interval too narrow (Davison and Hinkley 1997, section 3.8). The statistic sees the
    drawn rows of all drawn tasks, concatenated; `n` counts the rows.

    Raises BadInput as `percentile_bootstrap`, and for a group without rows or rows of different widths.
    """
    rows = _checked(groups, resamples, level)
    return _interval(rows, generator, _draw, statistic, resamples, level)


def stratified_bootstrap(
    groups: Sequence | Mapping[str, Sequence],
    generator: np.random.Generator,
    *,
    statistic: Statistic = np.mean,
    resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval where the groups are set by design, as the marks of a dial are.

    Every group is kept, and rows are drawn within each. Arguments and errors are those of
    :func:`hierarchical_bootstrap`.
    """
    rows = _checked(groups, resamples, level)
    return _interval(rows, generator, _draw_within, statistic, resamples, level)


def _checked(groups: Sequence | Mapping[str, Sequence], resamples: int, level: float) -> list[np.ndarray]:
    check_level(level)
    named = groups.items() if isinstance(groups, Mapping) else enumerate(groups)
    arrays = {name: np.asarray(rows, dtype=np.float64) for name, rows in named}
    if resamples < 1 or not arrays:
        raise BadInput(f"{len(arrays)} groups, resamples={resamples}: expected at least one of each.")
    for name, rows in arrays.items():
        if rows.ndim == 0 or not len(rows):
            raise BadInput(f"Group {name!r} has no rows: leave it out or give it a row for each seed.")
    rows = list(arrays.values())
    if len({group.shape[1:] for group in rows}) > 1:
        shapes = {name: group.shape for name, group in arrays.items()}
        raise BadInput(f"Groups of shapes {shapes}: expected rows of one width.")
    return rows


def _interval(
    rows: list[np.ndarray],
    generator: np.random.Generator,
    draw: Callable[[list[np.ndarray], np.random.Generator], np.ndarray],
    statistic: Statistic,
    resamples: int,
    level: float,
) -> Interval:
    drawn = np.array([statistic(draw(rows, generator)) for _ in range(resamples)], dtype=np.float64)
    drawn = drawn[~np.isnan(drawn)]
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(drawn, tails) if len(drawn) else (math.nan, math.nan)
    everything = np.concatenate(rows)
    return Interval(float(statistic(everything)), float(low), float(high), len(everything))


def _draw_within(groups: list[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    return np.concatenate([group[generator.integers(len(group), size=len(group))] for group in groups])


def _draw(groups: list[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    chosen = [groups[i] for i in generator.integers(len(groups), size=len(groups))]
    return _draw_within(chosen, generator)


# The jackknife: an interval for a number that takes all units together, such as a mean over their pairs.

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
    from scipy import stats

    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * math.sqrt(
        (n - 1) / n * float(((left - left.mean()) ** 2).sum())
    )
    return Interval(value, value - half, value + half, n)


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


# The interval of a share: how many of so many runs did something.


def share_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Share with Wilson's score interval (Wilson 1927): never empty, and inside [0, 1], at 0 and n as well.

    >>> share_interval(0, 20).low, round(share_interval(0, 20).high, 3)
    (0.0, 0.161)

    Raises:
        BadInput: no runs, more successes than runs, or a level outside (0, 1).
    """
    check_level(level)
    if not 0 <= successes <= n or n < 1:
        raise BadInput(f"{successes} of {n}: expected at least one run, and no more successes than runs")
    from scipy import stats

    found = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    return Interval(successes / n, float(found.low), float(found.high), n)


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
        BadInput: no pairs, or a level outside (0, 1).
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


def takeover_step(steps: Sequence[int], values: Sequence[float], *, least: float) -> float | None:
    """The step at which a quantity first reaches the middle between its first and its last value.

    Between two looks it is taken to change in a straight line over log2(1 + step), the axis on which looks
    are about evenly spaced.

    >>> takeover_step([0, 1, 3, 7], [0.0, 0.0, 0.0, 1.0], least=0.05)  # halfway from log2(4) to log2(8)
    4.656854249492381
    >>> takeover_step([0, 1], [0.0, 0.01], least=0.05) is None
    True

    Args:
        steps: ascending, from 0 on; values: of the quantity at each.
        least: the smallest rise from first to last that counts as taking over; one that rises less, or falls,
            has no such step.

    Returns:
        a positive number, None where the quantity does not rise enough.

    Raises:
        BadInput: fewer than two looks, lists of different lengths, or steps that do not ascend.
    """
    if len(steps) != len(values) or len(steps) < 2 or any(b <= a for a, b in pairwise(steps)):
        raise BadInput(f"{len(steps)} steps and {len(values)} values; expected as many, 2 or more, ascending")
    first, last = values[0], values[-1]
    if not last - first >= least:  # NaN among them
        return None
    middle = (first + last) / 2
    place = next(i for i, value in enumerate(values) if value >= middle)
    low, high = (math.log2(1 + steps[i]) for i in (place - 1, place))
    part = (middle - values[place - 1]) / (values[place] - values[place - 1])
    return 2 ** (low + part * (high - low)) - 1
