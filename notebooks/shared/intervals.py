"""Intervals of means, shares and correlations over few runs.

Means over seeds, of which there are three to ten, use Student's t interval, exact for normal values at any n:
a percentile bootstrap of three values covers the mean about 60 to 75 % of the time.

scipy is imported where it is used: a bare node reads from the experiments what they measure, and has none.
"""

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput

LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
ROUNDING = 1e-6  # by which a number in single precision may be past its bounds


# An estimate from ``n`` values; the bounds are NaN where n is too small to say, None where there is no value.
Interval = dict[str, float | int | None]


def interval(value: float, low: float, high: float, n: int) -> Interval:
    return {"value": value, "low": low, "high": high, "n": n}


def mean_interval(values: Sequence[float] | Float[np.ndarray, " n"]) -> Interval:
    """Mean with Student's t interval: mean ± t(n - 1) s / sqrt(n), s with n - 1 in the denominator.

    One value has no interval (NaN bounds). Raises BadInput for no values, or values that are not finite.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        shown = " ".join(np.array2string(values, threshold=10).split())
        raise BadInput(f"Values {shown}: expected a list of at least one finite number.")
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return interval(mean, math.nan, math.nan, 1)
    half = _student(n) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return interval(mean, mean - half, mean + half, n)


def bounded(interval: Interval, low: float = 0.0, high: float = 100.0) -> Interval:
    """An interval of a number that has bounds, cut there: by default of a percentage.

    No truth lies outside, so it covers the truth as often as before. The logit, which has bounds of its own,
    does worse so close to them: by it 99.96 with a half length of 7.7 ends at 0, and is no interval.

    >>> bounded({"value": 90.0, "low": 75.0, "high": 105.0, "n": 3})
    {'value': 90.0, 'low': 75.0, 'high': 100.0, 'n': 3}

    Raises BadInput: the number itself lies outside, so that these are not its bounds.
    """
    if interval["low"] is None or math.isnan(interval["low"]):
        return interval
    if not low - ROUNDING <= interval["value"] <= high + ROUNDING:
        raise BadInput(f"{interval['value']} is said to lie between {low} and {high}, and does not")
    return interval | {"low": max(interval["low"], low), "high": min(interval["high"], high)}


def _student(n: int) -> float:
    from scipy.special import (
        stdtrit,
    )  # scipy.stats has this quantile as well, and takes a second or two to import

    return float(stdtrit(n - 1, TAILS[1]))


Groups = Sequence[Sequence] | Mapping[str, Sequence]


def hierarchical_bootstrap(
    groups: Groups, generator: np.random.Generator, *, statistic: Callable = np.mean, resamples: int = 2000,
    nested: bool = True,
) -> Interval:  # fmt: skip
    """Percentile interval where seeds are nested in tasks: draw tasks, and then seeds within each.

    `groups` holds for each task its rows, one a seed: numbers, or vectors such as (x, y) points. Seeds of
    one task are alike, so drawing all rows as one bag would make the interval too narrow (Davison and Hinkley
    1997, section 3.8). Where groups are set by design, as the marks of a dial are, ``nested=False`` keeps
    every group and draws rows within each. The statistic sees all drawn rows; resamples where it is NaN (a
    constant column under a correlation) are left out; `n` counts the rows.

    Raises BadInput for no groups, a group without rows, or rows of different widths.
    """
    named = groups.items() if isinstance(groups, Mapping) else enumerate(groups)
    arrays = {name: np.asarray(rows, dtype=np.float64) for name, rows in named}
    for name, rows in arrays.items():
        if rows.ndim == 0 or not len(rows):
            raise BadInput(f"Group {name!r} has no rows: leave it out or give it a row for each seed.")
    rows = list(arrays.values())
    if len({group.shape[1:] for group in rows}) != 1:
        shapes = {name: group.shape for name, group in arrays.items()}
        raise BadInput(f"Groups of shapes {shapes}: expected at least one, and rows of one width.")

    samples = (drawn_rows(rows, generator, nested=nested) for _ in range(resamples))
    drawn = np.array([statistic(sample) for sample in samples], dtype=np.float64)
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, TAILS) if len(drawn) else (math.nan, math.nan)
    everything = np.concatenate(rows)
    return interval(float(statistic(everything)), float(low), float(high), len(everything))


def drawn_rows(
    groups: Sequence[np.ndarray], generator: np.random.Generator, *, nested: bool = True
) -> np.ndarray:
    """One sample of :func:`hierarchical_bootstrap`: as many groups with replacement, then rows of each."""
    chosen = [groups[i] for i in generator.integers(len(groups), size=len(groups))] if nested else groups
    return np.concatenate([group[generator.integers(len(group), size=len(group))] for group in chosen])


def jackknife_interval(units: Sequence, statistic: Callable[[Sequence], float]) -> Interval:
    """``statistic`` of all units together, say a mean over their pairs, and its interval by the jackknife.

    With θ the number of all n units and θ_i that of all but unit i (Tukey 1958; for means over pairs,
    Arvesen 1969),

        θ ± t(n − 1) √( (n − 1)/n · Σ_i (θ_i − mean of θ_i)² ).

    Of a mean over the units this is Student's interval. Pairs share their units, and an interval over them
    would be too narrow; here a unit is left out with all its pairs. The bounds are NaN where the number does
    not exist (is NaN) without one of the units: a mean over pairs needs three. Raises BadInput for no unit.
    """
    n = len(units)
    if not n:
        raise BadInput("the jackknife of no units; give at least one")
    value = statistic(units)
    left = np.array([statistic([*units[:i], *units[i + 1 :]]) for i in range(n)] if n > 1 else [math.nan])
    if np.isnan(left).any():
        return interval(value, math.nan, math.nan, n)
    half = _student(n) * math.sqrt((n - 1) / n * float(((left - left.mean()) ** 2).sum()))
    return interval(value, value - half, value + half, n)


def share_interval(successes: int, n: int) -> Interval:
    """Share with Wilson's score interval (Wilson 1927): never empty, and inside [0, 1], at 0 and n as well.

    >>> share_interval(0, 20)["low"], round(share_interval(0, 20)["high"], 3)
    (0.0, 0.161)

    Raises BadInput for no runs, or more successes than runs.
    """
    if not 0 <= successes <= n or n < 1:
        raise BadInput(f"{successes} of {n}: expected at least one run, and no more successes than runs")
    from scipy.special import ndtri

    share = successes / n
    z = float(ndtri(TAILS[1]))
    scale = 2 * (n + z**2)
    centre = (2 * n * share + z**2) / scale
    half = z / scale * math.sqrt(4 * n * share * (1 - share) + z**2)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return interval(share, low, high, n)


# Spearman's rank correlation, ties given their average rank.


def average_ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks from 1, tied values share the mean of their ranks."""
    ordered = np.sort(values)
    smaller = ordered.searchsorted(values, "left")  # how many are; tied values have the ranks after these
    smaller_or_equal = ordered.searchsorted(values, "right")
    return (smaller + 1 + smaller_or_equal) / 2


def spearman(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """Pearson's correlation of the average ranks; NaN where either side is constant.

    Raises BadInput where the two are not vectors of one length, have fewer than two values, or hold NaN.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise BadInput(
            f"spearman of shapes {x.shape} and {y.shape}: expected two vectors of one length, 2 or more."
        )
    if np.isnan(x).any() or np.isnan(y).any():
        raise BadInput("spearman of values with NaN: leave out the pairs where either side is undefined.")
    a, b = (average_ranks(side) - (len(x) + 1) / 2 for side in (x, y))
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0 else math.nan


def spearman_of_points(points: Float[np.ndarray, "n 2"]) -> float:
    """For rows of (x, y), as the bootstrap resamples them."""
    return spearman(points[:, 0], points[:, 1])


def last_minus_first(points: Float[np.ndarray, "n 2"]) -> float:
    """For rows of (mark, y): the mean of y at the largest mark minus that at the smallest.

    >>> last_minus_first(np.array([[0.0, 1.0], [0.0, 3.0], [1.0, 9.0], [2.0, 5.0]]))
    3.0
    """
    mark, value = points.T
    return float(value[mark == mark.max()].mean() - value[mark == mark.min()].mean())


def stratified_spearman(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], strata: Sequence[Hashable], *, minimum: int = 30
) -> float:
    """Correlation of ranks within strata, pooled: what the strata differ in does not count.

    Ranks run from −1/2 to 1/2 within each stratum of at least ``minimum`` pairs; others are left out. NaN
    where nothing is left or a side is constant.
    """
    members: dict[Hashable, list[int]] = {}
    for index, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(index)
    large = [np.array(indices) for indices in members.values() if len(indices) >= minimum]
    if not large:
        return math.nan
    x, y = (np.concatenate([_relative_ranks(side[indices]) for indices in large]) for side in (x, y))
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _relative_ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return (average_ranks(values) - (len(values) + 1) / 2) / max(len(values) - 1, 1)


def interval_of(numbers: Iterable[float | None] = ()) -> Interval:
    """:func:`mean_interval` of the numbers that are defined; None where none is."""
    values = [value for value in numbers if value is not None and not math.isnan(value)]
    return mean_interval(values) if values else interval(None, None, None, 0)


def over_pairs(numbers: Mapping[tuple, float]) -> Interval:
    """The mean of numbers by pair of units, with :func:`jackknife_interval` over the units."""

    def mean(units: Sequence) -> float:
        among_units = [number for pair, number in numbers.items() if set(pair) <= set(units)]
        return statistics.fmean(among_units) if among_units else math.nan

    return jackknife_interval(sorted(set().union(*numbers)), mean) if numbers else interval_of()


def kind(name: dict[str, object]) -> str:
    """Architecture and cell in one label: ``AO``, ``AED`` (with a GRU), ``AED-lstm``."""
    usual = name["cell"] in ("gru", "none")
    return str(name["architecture"]) if usual else f"{name['architecture']}-{name['cell']}"


def less(first, second):
    """The difference of two numbers, or of two nested mappings number by number; None where either is.

    >>> less({"x": {"y": 3, "z": None}}, {"x": {"y": 1, "z": 2}})
    {'x': {'y': 2, 'z': None}}
    """
    if isinstance(first, Mapping):
        return {name: less(number, second[name]) for name, number in first.items()}
    return None if first is None or second is None else first - second
