"""Average attention of sentences of a rare size, from sentences of the nearest sizes.

A cell is a size, (source length, target length). Matrices of other sizes are resized in each of
:data:`RESIZINGS`, summed, and normalised to distributions again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from jaxtyping import Float

from attnlib.arrays import ShowsShapes

Cell = tuple[int, int]  # (source length, target length)
Resizing = tuple[int, int] | None

# Ways to resize a matrix: positions correspond if the same share of the sentence is before them (None), or if
# they have the same number counted from the first (1) or from the last (-1), for queries and for keys.
RESIZINGS: tuple[Resizing, ...] = (None, (1, 1), (-1, -1), (1, -1), (-1, 1))


@dataclass(frozen=True, eq=False, repr=False)
class SummedMatrices(ShowsShapes):
    """Sums over attention matrices of one size.

    Attributes:
        total: sum of the matrices of every head.
        count: number of samples summed.
    """

    total: Float[np.ndarray, "heads target source"]
    count: int


def nearest_cells(cell: Cell, counts: Mapping[Cell, int], minimum: int) -> list[Cell]:
    """Return the cells nearest to a cell that together have a minimum of samples; ties are included.

    Args:
        cell: (source length, target length).
        counts: number of samples of each cell, at least the minimum in all.
        minimum: number of samples that the cells must have together.

    Example:
        >>> nearest_cells((3, 3), {(3, 3): 1, (3, 4): 1, (4, 3): 1, (9, 9): 5}, minimum=2)
        [(3, 3), (3, 4), (4, 3)]
    """
    cells = list(counts)
    samples = np.array(list(counts.values()))  # (cells,)
    distances = np.abs(np.array(cells, dtype=np.float64) - cell).sum(1)  # (cells,)
    nearest_first = np.argsort(distances, kind="stable")  # (cells,)
    samples_so_far = np.cumsum(samples[nearest_first])  # (cells,)
    farthest_needed = nearest_first[np.searchsorted(samples_so_far, minimum)]
    is_near = distances <= distances[farthest_needed]
    return [cells[number] for number in np.flatnonzero(is_near)]


def average_of_sizes(
    matrices: list[SummedMatrices], target: int, source: int
) -> Float[np.ndarray, "heads target source"]:
    """Return the average of matrices of several sizes, resized for sentences of another size.

    For each head that way of :data:`RESIZINGS` is chosen whose average, resized back, is nearest in total
    variation to the averages of the original sizes: any other way would blur a head that always attends to
    the third word. A row that no size has is uniform.

    Args:
        matrices: sums for each size.
        target: target length of the result.
        source: source length of the result.
    """
    heads = len(matrices[0].total)
    nearest = np.zeros((heads, target, source))
    least_distance = np.full(heads, np.inf)
    for way in RESIZINGS:
        average = _average_one_way(matrices, target, source, way=way)
        distance = sum(_distance_resized_back(average, summed, way) for summed in matrices)  # (heads,)
        is_nearer = distance < least_distance  # (heads,)
        nearest = np.where(is_nearer[:, None, None], average, nearest)
        least_distance = np.where(is_nearer, distance, least_distance)
    return nearest


def _average_one_way(
    matrices: list[SummedMatrices], target: int, source: int, *, way: Resizing
) -> Float[np.ndarray, "heads target source"]:
    """Return the average of all matrices, resized in one way."""
    resized = [laid_on(summed.total, target, source, way=way) for summed in matrices]
    total = reduce(np.add, resized)  # (heads, target, source)
    mass = total.sum(-1, keepdims=True)  # (heads, target, 1)
    has_mass = mass > 0
    return np.where(has_mass, total / np.where(has_mass, mass, 1), 1 / source)


def _distance_resized_back(
    average: Float[np.ndarray, "heads target source"], summed: SummedMatrices, way: Resizing
) -> Float[np.ndarray, " heads"]:
    """Return twice the total variation from the average of the original size, times its samples."""
    rows, columns = summed.total.shape[1:]
    resized_back = laid_on(average, rows, columns, way=way)  # (heads, rows, columns)
    original = summed.total / summed.count  # (heads, rows, columns)
    difference = np.abs(resized_back - original).sum(-1)  # (heads, rows)
    return summed.count * difference.mean(-1)


def laid_on(
    matrices: Float[np.ndarray, "heads rows columns"], target: int, source: int, *, way: Resizing
) -> Float[np.ndarray, "heads target source"]:
    """Return matrices resized in one of :data:`RESIZINGS`."""
    rows, columns = matrices.shape[1:]
    if way is None:
        return _row_means(target, rows) @ matrices @ _column_sums(source, columns).T
    row_step, column_step = way
    n_rows, n_columns = min(target, rows), min(source, columns)  # that both sizes have
    resized = np.zeros((len(matrices), target, source))
    view = resized[:, ::row_step, ::column_step]  # counted from the ends that the way counts from
    view[:, :n_rows, :n_columns] = matrices[:, ::row_step, ::column_step][:, :n_rows, :n_columns]
    return resized


@lru_cache(maxsize=4096)
def _row_means(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return the matrix that averages, for each of equal pieces, the places that it overlaps."""
    if pieces == places:
        return np.eye(pieces)
    return _overlap(pieces, places) * pieces


@lru_cache(maxsize=4096)
def _column_sums(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return the matrix that divides the weight of each place among the pieces that it overlaps."""
    if pieces == places:
        return np.eye(pieces)
    return _overlap(pieces, places) * places


def _overlap(pieces: int, places: int) -> Float[np.ndarray, "pieces places"]:
    """Return the overlap of equal pieces of a sentence with its places, as shares of the sentence."""
    piece_bounds = np.arange(pieces + 1)[:, None] / pieces  # (pieces + 1, 1)
    place_bounds = np.arange(places + 1)[None] / places  # (1, places + 1)
    piece_starts, piece_ends = piece_bounds[:-1], piece_bounds[1:]
    place_starts, place_ends = place_bounds[:, :-1], place_bounds[:, 1:]
    starts = np.maximum(piece_starts, place_starts)  # of the overlaps, (pieces, places)
    ends = np.minimum(piece_ends, place_ends)  # (pieces, places)
    return np.clip(ends - starts, 0, None)
