"""Sums of rows by token and by position: the only pass over the data that `Components` makes.

Rows are gathered in bags of at most `BAG`, each bag is added up in the precision of the states (float32 at
least), and bags are then added in float64. The first step runs at the speed of memory, and it is short enough
that its rounding stays under BAG * 6e-8 = 2e-6 of the largest state whatever the data, mean >> spread
included.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

BAG = 32
HEAPS = 16  # of bags; a number of its own, so that sums do not depend on the number of threads


def sums_by_token(
    states: Float[Tensor, "batch length width"],
    tokens: Integer[np.ndarray, "batch length"],
    mask: Bool[np.ndarray, "batch length"],
) -> tuple[Int[Tensor, " bags"], Float[Tensor, "bags width"]]:
    """Bags of valid rows of one token: the token (again for every further bag) and the sum, in no order."""
    full = mask.all()
    keys = tokens.ravel() if full else tokens[mask]
    if keys.max() < 1 << 16:  # numpy sorts 16-bit integers by radix, several times faster than any other way
        keys = keys.astype(np.uint16)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    rows = order if full else np.flatnonzero(mask)[order]

    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))  # the first row of each token
    counts = np.diff(starts, append=len(keys))
    bags = -(-counts // BAG)  # of each token
    rank = np.arange(bags.sum()) - np.repeat(np.cumsum(bags) - bags, bags)  # of a bag within its token
    offsets = np.repeat(starts, bags) + BAG * rank
    tokens_of_bags = keys[offsets].astype(np.int64)
    rows, offsets, dealt = _dealt_out(rows, offsets)
    sums = _bag_sums(states, rows, offsets)
    return torch.from_numpy(tokens_of_bags[dealt]).to(sums.device), sums


def _dealt_out(
    rows: Int[np.ndarray, " rows"], offsets: Int[np.ndarray, " bags"]
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " bags"], Int[np.ndarray, " bags"]]:
    """The same bags in another order, dealt into heaps like cards, and that order.

    Threads take equal numbers of neighbouring bags. Frequent words have full bags, rare ones a row or two: as
    sorted, one thread would get most of the rows.
    """
    dealt = np.concatenate([np.arange(heap, len(offsets), HEAPS) for heap in range(HEAPS)])
    lengths = np.diff(offsets, append=len(rows))[dealt]
    dealt_offsets = np.cumsum(lengths) - lengths
    return (
        rows[np.repeat(offsets[dealt] - dealt_offsets, lengths) + np.arange(len(rows))],
        dealt_offsets,
        dealt,
    )


def sums_by_position(
    states: Float[Tensor, "batch length width"], mask: Bool[np.ndarray, "batch length"]
) -> Float[Tensor, "length width"]:
    """The float64 sum over the batch of the valid rows at every position."""
    batch, length = mask.shape
    if mask.all():
        # Nothing to leave out: whole samples are the rows, read in their order, in half the time.
        sums = _bag_sums(states.flatten(1), np.arange(batch), np.arange(0, batch, BAG))
        return sums.sum(0, dtype=torch.float64).view(length, -1)

    n_blocks = -(-batch // BAG)
    extra = n_blocks * BAG - batch

    def by_block(array: np.ndarray) -> np.ndarray:  # (batch, length) -> (blocks, length, BAG)
        padded = np.pad(array, ((0, extra), (0, 0)))
        return padded.reshape(n_blocks, BAG, length).transpose(0, 2, 1)

    valid = by_block(mask)  # a bag is one position in BAG neighbours, which lie close in memory
    rows = by_block(np.arange(batch * length).reshape(batch, length))[valid]
    ends = np.cumsum(valid.sum(-1).ravel())
    sums = _bag_sums(states, rows, np.concatenate(([0], ends[:-1])))
    return sums.view(n_blocks, length, -1).sum(0, dtype=torch.float64)


def _bag_sums(states: Tensor, rows: np.ndarray, offsets: np.ndarray) -> Tensor:
    """Sum of rows[offsets[i]:offsets[i + 1]] of the states for every i; an empty bag sums to zero."""
    flat = states.reshape(-1, states.shape[-1])
    indices, starts = (torch.from_numpy(array).to(flat.device) for array in (rows, offsets))
    return F.embedding_bag(indices, flat, starts, mode="sum")
