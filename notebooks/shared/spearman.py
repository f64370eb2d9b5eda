"""Spearman's rank correlation, ties given their average rank."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput


def average_ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks from 1, tied values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


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
