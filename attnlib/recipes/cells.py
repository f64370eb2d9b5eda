"""What is known of every pair of positions, kept without its padding, and padded again.

Sentences differ in length: of Multi30k's validation set padded to its longest pair, seven cells in eight are
padding. Kept are the valid cells alone, by sample, target position and source position.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor


def valid_cells(
    source_mask: Bool[Tensor, "samples source"], target_mask: Bool[Tensor, "samples target"]
) -> Bool[Tensor, "samples target source"]:
    """True where both positions are words or end marks."""
    return target_mask[:, :, None] & source_mask[:, None, :]


def padded_cells(
    cells: Shaped[Tensor, "*checkpoints cells"],
    source_mask: Bool[Tensor, "samples source"],
    target_mask: Bool[Tensor, "samples target"],
    *,
    fill: float = 0.0,
) -> Shaped[Tensor, "*checkpoints samples target source"]:
    """Cells in their places, ``fill`` at padding.

    >>> cells, one = torch.arange(1.0, 4.0), torch.tensor([[True], [True]])
    >>> padded_cells(cells, torch.tensor([[True, False], [True, True]]), one).tolist()
    [[[1.0, 0.0]], [[2.0, 3.0]]]
    """
    valid = valid_cells(source_mask, target_mask)
    result = cells.new_full((*cells.shape[:-1], *valid.shape), fill)
    result[..., valid] = cells
    return result


def joined_cells(batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Shaped[Tensor, " cells"]:
    """Valid cells in the order of the samples, from padded batches in any order.

    Args:
        batches: (index of each sample, its padded cells, which of them are valid), batch by batch.
    """
    found = {}
    for indices, padded, valid in batches:
        for row, index in enumerate(indices.tolist()):
            found[index] = padded[row][valid[row]]
    return torch.cat([found[index] for index in sorted(found)])
