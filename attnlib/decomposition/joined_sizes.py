"""Average attention for sentences of a size that is too rare, from sentences of the nearest sizes.

A cell is a size, (source length, target length). Matrices of several sizes are laid on the wanted one in each
of :data:`WAYS`, summed, and made distributions again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from jaxtyping import Float

from attnlib.arrays import ShowsShapes

Cell = tuple[int, int]  # (source length, target length)
Way = tuple[int, int] | None

# How a matrix is laid on one of another size. A place is where the same share of the sentence lies before it
# (None), or it is counted from the first (1) or from the last (-1), queries and keys each their own way.
WAYS: tuple[Way, ...] = (None, (1, 1), (-1, -1), (1, -1), (-1, 1))


@dataclass(frozen=True, eq=False, repr=False)
class SummedMatrices(ShowsShapes):
    """The sum of so many matrices of one size, of every head."""

    total: Float[np.ndarray, "heads target source"]
    count: int


def nearest_cells(cell: Cell, counts: Mapping[Cell, int], minimum: int) -> list[Cell]:
    """Return the cells nearest to one that together have a minimum of samples, ties included.

    Args:
        cell: (source length, target length).
        counts: samples by cell, at least the minimum in all.
        minimum: how many samples the cells must have together.

    >>> nearest_cells((3, 3), {(3, 3): 1, (3, 4): 1, (4, 3): 1, (9, 9): 5}, minimum=2)
    [(3, 3), (3, 4), (4, 3)]
    """
    cells = list(counts)
    distances = np.abs(np.array(cells, dtype=np.float64) - cell).sum(1)  # (cells,)
    nearest_first = np.argsort(distances, kind="stable")  # (cells,)
    samples_so_far = np.cumsum(np.array(list(counts.values()))[nearest_first])  # (cells,)
    last = nearest_first[np.searchsorted(samples_so_far, minimum)]
    return [cells[place] for place in np.flatnonzero(distances <= distances[last])]


def average_of_sizes(
    matrices: list[SummedMatrices], target: int, source: int
) -> Float[np.ndarray, "heads target source"]:
    """Return one average of matrices of several sizes, for sentences of another size.

    Each head has the way of :data:`WAYS` whose average, laid back, is nearest to the averages of the sizes
    themselves in total variation: a head that always sees the third word is blurred by any other. A row that
    no size has is uniform.
    """
    heads = len(matrices[0].total)
    nearest = np.zeros((heads, target, source))
    least_distance = np.full(heads, np.inf)
    for way in WAYS:
        average = _average_one_way(matrices, target, source, way=way)
        distance = sum(_distance_laid_back(average, summed, way) for summed in matrices)  # (heads,)
        is_nearer = distance < least_distance
        nearest = np.where(is_nearer[:, None, None], average, nearest)
        least_distance = np.where(is_nearer, distance, least_distance)
    return nearest


def _average_one_way(
    matrices: list[SummedMatrices], target: int, source: int, *, way: Way
) -> Float[np.ndarray, "heads target source"]:
    laid_out = [laid_on(summed.total, target, source, way=way) for summed in matrices]
    total = reduce(np.add, laid_out)  # (heads, target, source)
    mass = total.sum(-1, keepdims=True)  # (heads, target, 1)
    has_mass = mass > 0
    return np.where(has_mass, total / np.where(has_mass, mass, 1), 1 / source)


def _distance_laid_back(
    average: Float[np.ndarray, "heads target source"], summed: SummedMatrices, way: Way
) -> Float[np.ndarray, " heads"]:
    """Return twice the total variation from the average of one size, times its samples."""
    rows, columns = summed.total.shape[1:]
    laid_back = laid_on(average, rows, columns, way=way)  # (heads, rows, columns)
    return summed.count * np.abs(laid_back - summed.total / summed.count).sum(-1).mean(-1)


def laid_on(
    matrices: Float[np.ndarray, "heads rows columns"], target: int, source: int, *, way: Way
) -> Float[np.ndarray, "heads target source"]:
    """Return matrices laid on another size in one of :data:`WAYS`."""
    rows, columns = matrices.shape[1:]
    if way is None:
        return _means(target, rows) @ matrices @ _dealt_out(source, columns).T
    laid = np.zeros((len(matrices), target, source))
    from_ends = (slice(None), slice(None, None, way[0]), slice(None, None, way[1]))
    common = (slice(None), slice(min(target, rows)), slice(min(source, columns)))
    laid[from_ends][common] = matrices[from_ends][common]
    return laid


@lru_cache(maxsize=4096)
def _means(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return what takes values at places to pieces, each the mean of the places that it overlaps."""
    if pieces == places:
        return np.eye(pieces)
    return _overlap(pieces, places) * pieces


@lru_cache(maxsize=4096)
def _dealt_out(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return what deals the weight of each place out over the pieces that it overlaps; sums stay."""
    if pieces == places:
        return np.eye(pieces)
    return _overlap(pieces, places) * places


def _overlap(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return the overlap of equal pieces of a sentence with its places, as shares of the sentence."""
    piece_ends = np.arange(pieces + 1)[:, None] / pieces
    place_ends = np.arange(places + 1)[None] / places
    ends = np.minimum(piece_ends[1:], place_ends[:, 1:])  # (pieces, places)
    starts = np.maximum(piece_ends[:-1], place_ends[:, :-1])  # (pieces, places)
    return np.clip(ends - starts, 0, None)
