"""Components of large batches in one reading of the states, compiled by numba if it is installed.

:mod:`attnlib.decomposition.sums` reads the states twice, grouped by position and grouped by token, because no
call of torch groups both ways at once, and checks them on the way. The kernel here reads each state once; it
adds the state to its two bags and checks it while it is in the cache. Another kernel writes the three parts
of a state at once.

**The digits are the same.** A bag is the same states in the same order and the same precision as in ``sums``,
and bags are added to float64 tables in the same order, so both ways agree bit for bit (a test checks it). No
number depends on which of them ran, and kernels run whenever they are faster:

* numba is installed (``pip install "attnlib[fast]"``);
* states and sums are on the CPU, and torch has at most :data:`MOST_THREADS` threads, since a kernel has one;
* the batch has at least :data:`FEWEST_NUMBERS` numbers. Only then are numba and the kernels loaded, which
  takes a second; the first time they are compiled, which takes several seconds, and saved on disk. A batch
  of that size saves a few milliseconds, so that a hundred of them pay for the start.

The functions at the end of this file are ordinary Python that numba compiles without changes.
``no_type_check`` keeps checkers of annotations from wrapping them, because numba cannot compile a wrapper.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.decomposition.sums import BAG, LARGEST

FEWEST_NUMBERS = 1 << 22  # of a batch, positions times width: 16 MB of float32, see benchmarks/kernels.py
MOST_THREADS = 2  # of torch: more threads make two readings faster than one reading by a single thread


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OneReading(ShowsShapes):
    """A batch in bags, the sums of up to ``BAG`` states each, with the methods of ``sums.TwoReadings``.

    Attributes:
        position_sums: the sum over the batch of the valid states at every position.
        row_bags: sums for the rows of the table of tokens, in the precision of the states.
        row_of_bag: the row that each of ``row_bags`` belongs to, ascending.
        row_of_place: row of the table of tokens of each valid place.
        valid: True at places that are not padding.
    """

    position_sums: Float64[Tensor, "length width"]
    row_bags: Float[np.ndarray, "bags width"]
    row_of_bag: Int[np.ndarray, " bags"]
    row_of_place: Int[np.ndarray, "batch length"]
    valid: Bool[np.ndarray, "batch length"]

    def add_by_row(self, table: Float64[Tensor, "rows width"]) -> None:
        """Add the states to the rows of the table that belong to their tokens."""
        _compiled(_add_bags)(table.numpy(), self.row_bags, self.row_of_bag)

    def count_pairs(self, counts: Int64[Tensor, "rows positions"]) -> None:
        """Count each valid place in the row of its token, at its position."""
        _compiled(_count_pairs)(counts.numpy(), self.row_of_place, self.valid)


def read_once(
    states: Float[Tensor, "batch length width"],
    row_of_place: Int[np.ndarray, "batch length"],
    valid: Bool[np.ndarray, "batch length"],
    *,
    n_rows: int,
) -> OneReading | None:
    """Sum the valid states into bags in one reading.

    Args:
        states: of any floating-point precision, without gradient.
        row_of_place: row of the table of tokens of each valid place.
        valid: True at places that are not padding.
        n_rows: how many rows the table of tokens has.

    Returns:
        The bags; None if :func:`serves` returns False, or if a valid state is not finite or so large that a
        bag may overflow: ``sums`` handles such states.
    """
    if not serves(states):
        return None
    dtype = torch.promote_types(states.dtype, torch.float32)
    rows = states.to(dtype).contiguous().numpy()  # (batch, length, width)
    row_of_place = np.ascontiguousarray(row_of_place)
    valid = np.ascontiguousarray(valid)
    bag_of_place, row_of_bag = _compiled(_bags_of_places)(row_of_place, valid, n_rows, BAG)

    batch, length, width = rows.shape
    position_bags = np.empty((-(-batch // BAG), length, width))
    row_bags = np.zeros((len(row_of_bag), width), rows.dtype)
    limit = rows.dtype.type(LARGEST[dtype])
    are_summed = _compiled(_fill_bags)(rows, valid, bag_of_place, limit, BAG, position_bags, row_bags)
    if not are_summed:
        return None
    return OneReading(
        position_sums=torch.from_numpy(position_bags).sum(0),
        row_bags=row_bags,
        row_of_bag=row_of_bag,
        row_of_place=row_of_place,
        valid=valid,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaceRows(ShowsShapes):
    """The rows of the two tables of a fit that belong to the places of a batch.

    Attributes:
        temporal: by position, with a last row of zeros.
        input: by token, with a last row of zeros.
        position_of_place: row of ``temporal``; the last at padding.
        row_of_place: row of ``input``; the last at padding.
        is_padding: True where all parts are zero.
    """

    temporal: Float[Tensor, "positions width"]
    input: Float[Tensor, "rows width"]
    position_of_place: Int64[Tensor, " places"]
    row_of_place: Int64[Tensor, " places"]
    is_padding: Bool[Tensor, " places"]


def split_once(
    states: Float[Tensor, "places width"], rows: PlaceRows, parts: tuple[Float[Tensor, "places width"], ...]
) -> bool:
    """Write the temporal, input and residual parts of states in one reading of them.

    Returns:
        True; False, with nothing written, if :func:`serves` returns False or states are in half precision.
    """
    temporal, inputs, residual = parts
    if states.dtype != residual.dtype or not serves(states):
        return False
    _compiled(_split)(
        states.numpy(),
        rows.temporal.numpy(),
        rows.input.numpy(),
        rows.position_of_place.numpy(),
        rows.row_of_place.numpy(),
        rows.is_padding.numpy(),
        temporal.numpy(),
        inputs.numpy(),
        residual.numpy(),
    )
    return True


def serves(states: Float[Tensor, "... width"]) -> bool:
    """Return True if kernels can read a batch, and are faster for it."""
    return (
        states.device.type == "cpu"
        and not states.is_neg()  # a lazy minus sign, of which numpy knows nothing
        and states.numel() >= FEWEST_NUMBERS
        and torch.get_num_threads() <= MOST_THREADS
        and is_available()
    )


@functools.cache
def is_available() -> bool:
    """Import numba, and return True if that is possible."""
    try:
        import numba  # noqa: F401  # pyright: ignore[reportMissingImports]  # an optional package
    except ImportError:  # not installed, or for another release of numpy
        return False
    return True


@functools.cache
def _compiled(function: Callable) -> Callable:
    """Return a function of this module compiled by numba, read from disk if it was compiled before."""
    import numba  # pyright: ignore[reportMissingImports]  # an optional package

    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # there is no folder to save it in
        return numba.njit(function, nogil=True)


# -- what numba compiles --


@no_type_check
def _bags_of_places(row_of_place, valid, n_rows, bag_size):
    """Number the bags row by row, and give each valid place its bag, in the order of the places.

    Args:
        row_of_place: (batch, length), int64.
        valid: (batch, length).
        n_rows: how many rows the table of tokens has.
        bag_size: how many places a bag holds.

    Returns:
        The bag of each place, (batch, length), undefined at padding; the row of each bag, (bags,).
    """
    batch, length = valid.shape
    places_of_row = np.zeros(n_rows, np.int64)
    for sample in range(batch):
        for position in range(length):
            if valid[sample, position]:
                places_of_row[row_of_place[sample, position]] += 1

    bags_of_row = (places_of_row + bag_size - 1) // bag_size  # (rows,)
    first_bag_of_row = np.cumsum(bags_of_row) - bags_of_row
    row_of_bag = np.repeat(np.arange(n_rows), bags_of_row)

    bag_of_place = np.empty((batch, length), np.int64)
    places_before = np.zeros(n_rows, np.int64)  # of each row, in the samples and positions before
    for sample in range(batch):
        for position in range(length):
            if valid[sample, position]:
                row = row_of_place[sample, position]
                bag_of_place[sample, position] = first_bag_of_row[row] + places_before[row] // bag_size
                places_before[row] += 1
    return bag_of_place, row_of_bag


@no_type_check
def _fill_bags(states, valid, bag_of_place, limit, bag_size, position_bags, row_bags):
    """Add every valid state to its two bags; return True if all of them are below the limit.

    Args:
        states: (batch, length, width).
        valid: (batch, length).
        bag_of_place: (batch, length), which of ``row_bags``.
        limit: upper bound of absolute values; NaN is not below it.
        bag_size: how many samples a block has.
        position_bags: (blocks, length, width), float64, filled here.
        row_bags: (bags, width), zero, filled here.
    """
    batch, length, width = states.shape
    are_below = True
    block_bags = np.empty((length, width), states.dtype)  # of this block of samples; stays in the cache
    for block in range(len(position_bags)):
        block_bags[:] = 0
        for sample in range(block * bag_size, min(batch, (block + 1) * bag_size)):
            for position in range(length):
                if not valid[sample, position]:
                    continue
                state = states[sample, position]
                position_bag = block_bags[position]
                row_bag = row_bags[bag_of_place[sample, position]]
                for unit in range(width):
                    number = state[unit]
                    position_bag[unit] += number
                    row_bag[unit] += number
                    are_below &= abs(number) < limit
        position_bags[block] = block_bags
        if not are_below:
            break
    return are_below


@no_type_check
def _add_bags(table, bags, row_of_bag):
    """Add bags, (bags, width), to the rows of a float64 table, one after another."""
    for bag in range(len(bags)):
        row_sums = table[row_of_bag[bag]]
        bag_sums = bags[bag]
        for unit in range(len(bag_sums)):
            row_sums[unit] += bag_sums[unit]


@no_type_check
def _count_pairs(counts, row_of_place, valid):
    """Add 1 to the row and position, (rows, positions), of every valid place, (batch, length)."""
    batch, length = valid.shape
    for sample in range(batch):
        for position in range(length):
            if valid[sample, position]:
                counts[row_of_place[sample, position], position] += 1


@no_type_check
def _split(states, temporal_table, input_table, positions, rows, is_padding, temporal, inputs, residual):
    """Write the three parts, (places, width), of states; their tables have (rows, width)."""
    places, width = states.shape
    for place in range(places):
        if is_padding[place]:
            temporal[place] = 0
            inputs[place] = 0
            residual[place] = 0
            continue
        state = states[place]
        position_mean = temporal_table[positions[place]]
        token_mean = input_table[rows[place]]
        temporal_part, input_part, residual_part = temporal[place], inputs[place], residual[place]
        for unit in range(width):
            temporal_part[unit] = position_mean[unit]
        for unit in range(width):
            input_part[unit] = token_mean[unit]
        for unit in range(width):
            residual_part[unit] = (state[unit] - position_mean[unit]) - token_mean[unit]
