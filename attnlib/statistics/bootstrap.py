"""Bootstrap intervals over runs, flat and in two levels (tasks, then the seeds of each)."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput
from attnlib.statistics.student import Interval, check_level

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
