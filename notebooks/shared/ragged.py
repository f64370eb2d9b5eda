"""Values by position of texts of different lengths: flat as they are kept, padded as they are compared."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attnlib.errors import BadInput

Offsets = Int[Tensor, " texts_and_one"]
SourceMask, TargetMask = Bool[Tensor, "samples source"], Bool[Tensor, "samples target"]
PaddedTexts = tuple[Float[Tensor, "*leading texts longest"], Bool[Tensor, "texts longest"]]


def padded(flat: Float[Tensor, "*leading positions"], offsets: Offsets) -> PaddedTexts:
    """Rows of equal length, zero where a text has ended, and the mask of what is valid.

    >>> values, mask = padded(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    >>> values.tolist(), mask.tolist()
    ([[3.0, 0.0], [1.0, 2.0]], [[True, False], [True, True]])
    """
    if int(offsets[-1]) != flat.shape[-1]:
        raise BadInput(f"{flat.shape[-1]} positions, but the offsets end at {int(offsets[-1])}")
    lengths = offsets.diff()
    mask = torch.arange(int(lengths.max()), device=flat.device) < lengths[:, None]
    values = flat.new_zeros(*flat.shape[:-1], *mask.shape)
    values[..., mask] = flat
    return values, mask


@dataclass(frozen=True, eq=False)
class RaggedRows:
    """Rows of different lengths in one flat tensor, met in batches of like length."""

    starts: Int[Tensor, " rows"]
    lengths: Int[Tensor, " rows"]  # the values of a row are ``flat[start : start + length]``
    samples: Int[Tensor, " rows"]  # that each row belongs to

    @classmethod
    def of_texts(cls, offsets: Offsets) -> "RaggedRows":
        """A row a text, as :func:`padded` has them."""
        lengths = offsets.diff()
        return cls(offsets[:-1], lengths, torch.arange(len(lengths), device=lengths.device))

    @classmethod
    def of_pairs(cls, source_mask: SourceMask, target_mask: TargetMask) -> "RaggedRows":
        """A row a target position, sample by sample, as valid cells lie when padding is taken out."""
        targets = target_mask.sum(1)
        samples = torch.arange(len(targets), device=targets.device).repeat_interleave(targets)
        lengths = source_mask.sum(1)[samples]
        return cls(lengths.cumsum(0) - lengths, lengths, samples)

    def batches(self, cells: int = 1 << 20) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Places of rows of like length (rows, longest), their mask and sample, at most ``cells`` at once."""
        order = self.lengths.argsort(stable=True)
        begin = 0
        while begin < len(order):
            # Longer rows come later, so what fits is found from the end of a first guess.
            end = min(len(order), begin + max(1, cells // max(1, int(self.lengths[order[begin]]))))
            while end > begin + 1 and (end - begin) * int(self.lengths[order[end - 1]]) > cells:
                end = begin + max(1, cells // int(self.lengths[order[end - 1]]))
            rows = order[begin:end]
            steps = torch.arange(int(self.lengths[rows].max()), device=rows.device)
            mask = steps < self.lengths[rows, None]
            yield (self.starts[rows, None] + steps) * mask, mask, self.samples[rows]
            begin = end


# What is known of every pair of positions is kept without its padding (seven cells in eight of Multi30k's
# validation set), by sample, target position and source position.


def valid_cells(source_mask: SourceMask, target_mask: TargetMask) -> Bool[Tensor, "samples target source"]:
    """True where both positions are words or end marks."""
    return target_mask[:, :, None] & source_mask[:, None, :]


def padded_cells(
    cells: Shaped[Tensor, "*checkpoints cells"], source_mask: SourceMask, target_mask: TargetMask, *, fill=0.0
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

    A batch is (index of each sample, its padded cells, which of them are valid).
    """
    found = {}
    for indices, padded, valid in batches:
        for row, index in enumerate(indices.tolist()):
            found[index] = padded[row][valid[row]]
    return torch.cat([found[index] for index in sorted(found)])
