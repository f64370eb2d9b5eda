"""Sums of rows by token and by position: the only pass over the data that `Components` makes.

Rows are gathered in bags of at most `BAG` and each bag is added up in the precision of the states (float32 at
least); bags are then added in float64. The first step runs at the speed of memory, and it is short enough
that its rounding stays under BAG/2 * 6e-8 = 1e-6 of the largest state whatever the data, mean >> spread
included.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

BAG = 32


def sums_by_token(
    states: Float[Tensor, "batch length width"],
    tokens: Int[np.ndarray, "batch length"],
    mask: Bool[np.ndarray, "batch length"],
) -> tuple[Int[Tensor, "groups"], Float[Tensor, "groups width"]]:
    """The distinct valid tokens, ascending, and for each the float64 sum of its valid rows of `states`."""
    rows = np.flatnonzero(mask)
    keys = tokens.ravel()[rows]
    order = _stable_order(keys)
    rows, keys = rows[order], keys[order]

    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])  # first row of every token
    rank = np.arange(len(keys)) - np.repeat(first, np.diff(np.r_[first, len(keys)]))
    bags = np.flatnonzero(rank % BAG == 0)  # first row of every bag
    sums = _bag_sums(states.reshape(-1, states.shape[-1]), rows, bags).double()
    if len(bags) > len(first):
        sums = _bag_sums(sums, np.arange(len(bags)), np.searchsorted(bags, first))
    return torch.from_numpy(keys[first]).to(states.device), sums


def sums_by_position(
    states: Float[Tensor, "batch length width"], mask: Bool[np.ndarray, "batch length"]
) -> Float[Tensor, "length width"]:
    """The float64 sum over the batch of the valid rows at every position."""
    batch, length = mask.shape
    blocks = -(-batch // BAG)
    extra = blocks * BAG - batch

    def by_block(array):  # (batch, length) -> (blocks, length, BAG): a bag is BAG neighbours at one position
        padded = np.pad(array, ((0, extra), (0, 0)))
        return padded.reshape(blocks, BAG, length).transpose(0, 2, 1)

    valid = by_block(mask)
    rows = by_block(np.arange(batch * length).reshape(batch, length))[valid]
    ends = np.cumsum(valid.sum(-1).ravel())
    sums = _bag_sums(states.reshape(-1, states.shape[-1]), rows, np.r_[0, ends[:-1]])
    return sums.view(blocks, length, -1).sum(0, dtype=torch.float64)


def _bag_sums(flat: Tensor, rows: np.ndarray, offsets: np.ndarray) -> Tensor:
    """Sum of flat[rows[offsets[i]:offsets[i + 1]]] for every i; an empty bag sums to zero."""
    as_index = lambda array: torch.from_numpy(array).to(flat.device)  # noqa: E731
    return F.embedding_bag(as_index(rows), flat, as_index(offsets), mode="sum")


def _stable_order(keys: Int[np.ndarray, "rows"]) -> Int[np.ndarray, "rows"]:
    # numpy's stable sort of 16-bit integers is a radix sort, several times faster than any other
    small = keys.astype(np.uint16) if len(keys) and keys.max() < 1 << 16 else keys
    return np.argsort(small, kind="stable")
