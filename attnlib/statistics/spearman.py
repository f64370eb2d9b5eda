"""Spearman's rank correlation, ties given their average rank."""

import math

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput


def average_ranks(values: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Ranks from 1, tied values share the mean of their ranks.

    >>> average_ranks(np.array([10.0, 30.0, 10.0, 20.0])).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


def spearman(x: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"]) -> float:
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
    """The same for rows of (x, y): the form that the bootstrap resamples."""
    return spearman(points[:, 0], points[:, 1])
