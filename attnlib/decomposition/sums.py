"""Sums of states by position and by token: the only pass over the data that components make.

States are gathered in bags of at most :data:`BAG`. Each bag is summed in the precision of the states (float32
at least), and bags are then summed in float64. The first step runs at the speed of memory, and it is so short
that its rounding error stays below ``BAG * 6e-8 = 2e-6`` of the largest state, whatever the data are; also if
their mean is far larger than their spread.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput

BAG = 32
NUMBERS_AT_ONCE = 1 << 18  # of the sums of bags: a block of memory that the allocator uses again
LARGEST = {
    torch.float32: torch.finfo(torch.float32).max / (2 * BAG),  # no bag of these overflows
    torch.float64: 1e290,  # nor does a corpus of these
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TwoReadings(ShowsShapes):
    """The states of a batch, which are read once by position and once by token.

    Attributes:
        rows: the states, in a precision in which their sums cannot overflow.
        row_of_place: the row in the table of tokens of each valid place.
        valid: True at places that are not padding.
        position_sums: the float64 sum over the batch of the valid states at every position.
        square_sum: the sum of the squares of the valid states, if it was requested.
    """

    rows: Float[Tensor, "batch length width"]
    row_of_place: Int[np.ndarray, "batch length"]
    valid: Bool[np.ndarray, "batch length"]
    position_sums: Float[Tensor, "length width"]
    square_sum: Float[Tensor, ""] | None

    def add_by_row(self, table: Float[Tensor, "rows width"]) -> None:
        """Add the states to the rows of the float64 table that belong to their tokens."""
        add_by_row(table, self.rows, row_of_place=self.row_of_place, valid=self.valid)

    def count_pairs(self, counts: Int[Tensor, "rows positions"]) -> None:
        """Count each valid place in the row of its token, at its position."""
        n_positions = counts.shape[1]
        position = np.arange(self.valid.shape[1])  # (length,)
        cell_of_place = self.row_of_place * n_positions + position  # in the flat table, (batch, length)
        cells = torch.from_numpy(cell_of_place[self.valid]).to(counts.device)
        counts.view(-1).index_add_(0, cells, torch.ones_like(cells))


def read_twice(
    states: Float[Tensor, "batch length width"],
    row_of_place: Int[np.ndarray, "batch length"],
    valid: Bool[np.ndarray, "batch length"],
    *,
    exact: bool,
) -> TwoReadings:
    """Sum the valid states by position, in float32 if that is enough, and refuse what cannot be summed.

    A state that is not finite makes the sum of its position not finite. So it is the sums that are looked at,
    which are far fewer than the states.

    Args:
        states: in any floating-point precision, without gradient.
        row_of_place: the row in the table of tokens of each valid place.
        valid: True at the positions that are summed; states elsewhere are not read.
        exact: whether to sum in float64 from the first step on, and the squares as well.

    Raises:
        BadInput: a valid state is not finite, or so large that float64 overflows; the message names the
            first.
    """
    square_sum = None
    if exact:
        rows = states.double()
        square_sum = _square_sum(rows, valid)
    elif states.dtype == torch.float64:
        rows = states
        _refuse_overflow(rows, valid)
    else:
        rows = states.float()
    position_sums = sums_by_position(rows, valid)
    if not bool(position_sums.isfinite().all()):
        _refuse_overflow(rows, valid)
        rows = rows.double()  # sums of float32 numbers cannot overflow there
        position_sums = sums_by_position(rows, valid)
    return TwoReadings(
        rows=rows, row_of_place=row_of_place, valid=valid, position_sums=position_sums, square_sum=square_sum
    )


def _square_sum(rows: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"]) -> Tensor:
    """Return the sum of the squares of the valid states; raise BadInput if it overflows."""
    is_valid = torch.from_numpy(valid).to(rows.device)  # (batch, length)
    squares = rows[is_valid].square().sum()
    if not bool(squares.isfinite()):
        _refuse_overflow(rows, valid)
        raise BadInput("States whose squares overflow: nothing was added. Has the training diverged?")
    return squares


def _refuse_overflow(
    states: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"]
) -> None:
    """Raise BadInput if a valid state is not finite, or so large that sums overflow in float64."""
    low, high = states.aminmax()
    if torch.maximum(-low, high) < LARGEST[torch.float64]:
        return
    # The large value may be at padding: look again, in a copy without padding.
    is_valid = torch.from_numpy(valid).to(states.device)  # (batch, length)
    largest = states[is_valid].abs().amax()
    if largest < LARGEST[torch.float64]:
        return
    not_finite = (~states.isfinite().all(-1)).cpu().numpy()  # (batch, length)
    places = np.argwhere(not_finite & valid)
    where = "their sum overflows"
    if len(places):
        sample, position = places[0]
        where = f"first at sample {sample}, position {position}"
    raise BadInput(f"States that are not finite ({where}): nothing was added. Has the training diverged?")


def sums_by_position(
    states: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "batch length"]
) -> Float[Tensor, "length width"]:
    """Return the float64 sum over the batch of the valid states at every position."""
    batch, length = valid.shape
    if valid.all():
        # Without padding whole samples are the rows, read in their order, which takes half the time.
        bag_starts = np.arange(0, batch, BAG)
        sums = bag_sums(states.flatten(1), np.arange(batch), bag_starts)  # (bags, length * width)
        return sums.sum(0, dtype=torch.float64).view(length, -1)

    # A bag is one position in BAG neighbouring samples, which are close in memory.
    n_blocks = -(-batch // BAG)
    missing = n_blocks * BAG - batch

    def by_block(array: np.ndarray) -> np.ndarray:  # (batch, length) → (blocks, length, BAG)
        padded = np.pad(array, ((0, missing), (0, 0)))
        return padded.reshape(n_blocks, BAG, length).transpose(0, 2, 1)

    is_valid = by_block(valid)  # (blocks, length, BAG)
    place = np.arange(batch * length).reshape(batch, length)
    places = by_block(place)[is_valid]  # bag after bag
    bag_sizes = is_valid.sum(-1).ravel()  # (blocks * length,)
    bag_starts = np.cumsum(bag_sizes) - bag_sizes
    sums = bag_sums(states, places, bag_starts)  # (blocks * length, width)
    return sums.view(n_blocks, length, -1).sum(0, dtype=torch.float64)


def add_by_row(
    table: Float[Tensor, "rows width"],
    states: Float[Tensor, "batch length width"],
    *,
    row_of_place: Int[np.ndarray, "batch length"],
    valid: Bool[np.ndarray, "batch length"],
) -> None:
    """Add each valid state, all of them finite, to the row of a float64 table that belongs to its place.

    Places are sorted by their rows, and each run of places of one row is cut into bags. With bags of 2,
    places of the rows (5, 3, 5, 5) are sorted to (3, 5, 5, 5), and the bags have the rows 3, 5 and 5.
    """
    places = np.flatnonzero(valid)
    rows = row_of_place.ravel()[places]
    if rows.max() < 1 << 16:
        rows = rows.astype(np.uint16)  # numpy sorts these by radix, several times faster
    order = np.argsort(rows, kind="stable")
    places = places[order]
    rows = rows[order].astype(np.int64)

    is_first = np.concatenate(([True], rows[1:] != rows[:-1]))  # of its run
    run_starts = np.flatnonzero(is_first)  # (runs,)
    run_lengths = np.diff(run_starts, append=len(rows))
    bags_of_run = -(-run_lengths // BAG)
    bags_before_run = np.cumsum(bags_of_run) - bags_of_run
    bag_within_run = np.arange(bags_of_run.sum()) - np.repeat(bags_before_run, bags_of_run)  # (bags,)
    bag_starts = np.repeat(run_starts, bags_of_run) + BAG * bag_within_run
    bag_ends = np.append(bag_starts[1:], len(places))
    row_of_bag = torch.from_numpy(rows[bag_starts]).to(table.device)

    bags_at_once = max(1, NUMBERS_AT_ONCE // states.shape[-1])
    for first in range(0, len(bag_starts), bags_at_once):
        block = slice(first, first + bags_at_once)
        begin, end = bag_starts[first], bag_ends[block][-1]
        sums = bag_sums(states, places[begin:end], bag_starts[block] - begin).double()
        if not bool(sums.sum().isfinite()):  # a bag overflows, in float32
            rows_of_block = states.reshape(-1, states.shape[-1])[places[begin:end]].double()
            sums = bag_sums(rows_of_block, np.arange(end - begin), bag_starts[block] - begin)
        table.index_add_(0, row_of_bag[block], sums.to(table.device))


def bag_sums(
    states: Float[Tensor, "*leading width"], rows: Int[np.ndarray, " rows"], starts: Int[np.ndarray, " bags"]
) -> Float[Tensor, "bags width"]:
    """Sum the states ``rows[starts[i]:starts[i + 1]]`` for every i; an empty bag sums to zero."""
    flat = states.reshape(-1, states.shape[-1])
    indices = torch.from_numpy(rows).to(flat.device)
    offsets = torch.from_numpy(starts).to(flat.device)
    return F.embedding_bag(indices, flat, offsets, mode="sum")
