"""Sums of states by position and by token: the one pass over the data that components make.

Rows are gathered in bags of at most :data:`BAG`. Each bag is added up in the precision of the states (float32
at least), and bags are then added in float64. The first step runs at the speed of memory, and it is short
enough that its rounding stays under ``BAG * 6e-8 = 2e-6`` of the largest state whatever the data are, a mean
far above the spread included.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput

BAG = 32
NUMBERS_AT_ONCE = 1 << 18  # of the sums of bags: a block of memory that the allocator uses again
LARGEST = {
    torch.float32: torch.finfo(torch.float32).max / (2 * BAG),  # a bag of these does not overflow
    torch.float64: 1e290,  # nor does a corpus of these
}


def in_summable_precision(
    states: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"], *, exact: bool
) -> Float[Tensor, "batch length width"]:
    """Return the states in a precision in which their sums cannot overflow: float32 where it will do.

    Args:
        states: in any floating-point precision.
        valid: True at the positions that are summed; what is elsewhere is not looked at.
        exact: sum in float64 from the first step on.

    Raises:
        BadInput: a valid state is not finite, or so large that float64 overflows; names the first.
    """
    dtype = torch.float64 if exact else torch.promote_types(states.dtype, torch.float32)
    rows = states.to(dtype)
    largest = _largest(rows, valid)
    if not largest < LARGEST[dtype] and dtype == torch.float32:
        rows = rows.double()
    if not largest < LARGEST[torch.float64]:
        _refuse_not_finite(rows, valid)
    return rows


def _largest(rows: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"]) -> float:
    """The largest absolute value of a valid state; NaN where one is NaN."""
    low, high = rows.aminmax()
    largest = float(torch.maximum(-low, high))
    if largest < LARGEST[rows.dtype]:
        return largest
    # Padding may hold anything, so only now is it worth a copy without it.
    return float(rows[torch.from_numpy(valid).to(rows.device)].abs().amax())


def _refuse_not_finite(states: Tensor, valid: Bool[np.ndarray, "batch length"]) -> None:
    not_finite = (~states.isfinite().all(-1)).cpu().numpy()  # (batch, length)
    places = np.argwhere(not_finite & valid)
    where = "their sum overflows"
    if len(places):
        sample, position = places[0]
        where = f"first at sample {sample}, position {position}"
    raise BadInput(f"States that are not finite ({where}): nothing was added. Has the training diverged?")


@dataclass(frozen=True, eq=False)
class TwoReadings:
    """The states of a batch, to be read once by position and once by token.

    Attributes:
        rows: the states, in a precision in which their sums cannot overflow.
        row_of_place: row of the table of tokens of each valid place.
        valid: True at places that are not padding.
    """

    rows: Float[Tensor, "batch length width"]
    row_of_place: Int[np.ndarray, "batch length"]
    valid: Bool[np.ndarray, "batch length"]

    def square_sum(self) -> Float[Tensor, ""]:
        """Return the sum of the squares of the valid states; BadInput where it overflows."""
        is_valid = torch.from_numpy(self.valid).to(self.rows.device)
        squares = self.rows[is_valid].square().sum()
        if not bool(squares.isfinite()):
            raise BadInput("States whose squares overflow: nothing was added. Has the training diverged?")
        return squares

    def sums_by_position(self) -> Float[Tensor, "length width"]:
        """Return the float64 sum over the batch of the valid states at every position."""
        return sums_by_position(self.rows, self.valid)

    def add_by_row(self, table: Float[Tensor, "rows width"]) -> None:
        """Add the states to the rows of the float64 table that belong to their tokens."""
        add_by_row(table, self.rows, row_of_place=self.row_of_place, valid=self.valid)

    def count_pairs(self, counts: Int[Tensor, "rows positions"]) -> None:
        """Count each valid place in the row of its token, at its position."""
        n_positions = counts.shape[1]
        cell_of_place = self.row_of_place * n_positions + np.arange(self.valid.shape[1])
        cells = torch.from_numpy(cell_of_place[self.valid]).to(counts.device)
        counts.view(-1).index_add_(0, cells, torch.ones_like(cells))


def sums_by_position(
    states: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"]
) -> Float[Tensor, "length width"]:
    """Return the float64 sum over the batch of the valid states at every position."""
    batch, length = valid.shape
    if valid.all():
        # Nothing to leave out: whole samples are the rows, read in their order, in half the time.
        sums = bag_sums(states.flatten(1), np.arange(batch), np.arange(0, batch, BAG))
        return sums.sum(0, dtype=torch.float64).view(length, -1)

    # A bag is one position in BAG neighbouring samples, which lie close in memory.
    n_blocks = -(-batch // BAG)
    missing = n_blocks * BAG - batch

    def by_block(array: np.ndarray) -> np.ndarray:  # (batch, length) → (blocks, length, BAG)
        padded = np.pad(array, ((0, missing), (0, 0)))
        return padded.reshape(n_blocks, BAG, length).transpose(0, 2, 1)

    is_valid = by_block(valid)
    rows = by_block(np.arange(batch * length).reshape(batch, length))[is_valid]
    ends = np.cumsum(is_valid.sum(-1).ravel())
    sums = bag_sums(states, rows, np.concatenate(([0], ends[:-1])))  # (blocks * length, width)
    return sums.view(n_blocks, length, -1).sum(0, dtype=torch.float64)


def add_by_row(
    table: Float[Tensor, "rows width"],
    states: Float[Tensor, "batch length width"],
    *,
    row_of_place: Int[np.ndarray, "batch length"],
    valid: Bool[np.ndarray, "batch length"],
) -> None:
    """Add each valid state to the row of a float64 table that belongs to its place."""
    places = np.flatnonzero(valid)
    rows = row_of_place.ravel()[places]
    if rows.max() < 1 << 16:
        rows = rows.astype(np.uint16)  # numpy sorts these by radix, several times faster
    order = np.argsort(rows, kind="stable")
    places, rows = places[order], rows[order].astype(np.int64)

    # Places of one row are neighbours now. Cut each run of them into bags.
    is_first = np.concatenate(([True], rows[1:] != rows[:-1]))
    run_starts = np.flatnonzero(is_first)
    run_lengths = np.diff(run_starts, append=len(rows))
    bags_of_run = -(-run_lengths // BAG)
    bags_before_run = np.cumsum(bags_of_run) - bags_of_run
    bag_within_run = np.arange(bags_of_run.sum()) - np.repeat(bags_before_run, bags_of_run)
    bag_starts = np.repeat(run_starts, bags_of_run) + BAG * bag_within_run
    bag_ends = np.append(bag_starts[1:], len(places))
    row_of_bag = torch.from_numpy(rows[bag_starts]).to(table.device)

    bags_at_once = max(1, NUMBERS_AT_ONCE // states.shape[-1])
    for first in range(0, len(bag_starts), bags_at_once):
        block = slice(first, first + bags_at_once)
        begin, end = bag_starts[first], bag_ends[block][-1]
        sums = bag_sums(states, places[begin:end], bag_starts[block] - begin)
        table.index_add_(0, row_of_bag[block], sums.to(table.device).double())


def bag_sums(
    states: Float[Tensor, "*leading width"], rows: Int[np.ndarray, " rows"], starts: Int[np.ndarray, " bags"]
) -> Float[Tensor, "bags width"]:
    """Sum the states ``rows[starts[i]:starts[i + 1]]`` for every i; an empty bag sums to zero."""
    flat = states.reshape(-1, states.shape[-1])
    indices = torch.from_numpy(rows).to(flat.device)
    offsets = torch.from_numpy(starts).to(flat.device)
    return F.embedding_bag(indices, flat, offsets, mode="sum")
