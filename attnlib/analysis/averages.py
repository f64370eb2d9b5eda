"""The average attention of samples of one size, in bounded memory, and how typical it is of others."""

from collections import defaultdict

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.decomposition.rows import total_variation
from attnlib.decomposition.typicality import MINIMUM_CELL, AttentionCells, Cell

ENTRIES = 40_000  # of all average matrices of a head together: 320 kB


class AverageAttention:
    """Average matrices by (source length, target length), as many as fit, first come first kept.

    Samples are judged by the average of others, those summed: the judged ones are not among them. That is
    :mod:`attnlib.decomposition.typicality` for a corpus read once.
    """

    def __init__(self) -> None:
        self.cells = AttentionCells()

    def update(
        self,
        attention: Float[Tensor, "batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "AverageAttention":
        """Add samples whose cell is kept."""
        used = sum(matrix.numel() for matrix in self.cells.sums.values())
        chosen = torch.zeros(len(attention), dtype=torch.bool)
        known = set(self.cells.counts)
        for index, cell in enumerate(_cells(target_mask, source_mask)):
            size = cell[0] * cell[1]
            if cell not in known and used + size <= ENTRIES:
                known.add(cell)
                used += size
            chosen[index] = cell in known
        here = chosen.to(attention.device)
        self.cells.update(attention[here], target_mask[here], source_mask[here])
        return self

    def typicality(
        self,
        attention: Float[Tensor, "batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
        *,
        minimum: int = MINIMUM_CELL,
    ) -> Float[Tensor, " batch"]:
        """1 − mean total variation from the average; NaN where fewer than ``minimum`` were summed."""
        values = torch.full((len(attention),), torch.nan, dtype=torch.float64)
        members: dict[Cell, list[int]] = defaultdict(list)
        for index, cell in enumerate(_cells(target_mask, source_mask)):
            if self.cells.counts.get(cell, 0) >= minimum:
                members[cell].append(index)
        both = target_mask[:, :, None] & source_mask[:, None, :]
        for (source, target), own in members.items():
            matrices = attention[own][both[own]].view(len(own), target, source).double().cpu()
            average = self.cells.average_attention((source, target))
            values[own] = 1 - total_variation(matrices, average).mean(-1)
        return values

    def merge(self, other: "AverageAttention") -> "AverageAttention":
        """New averages of both; cells of the first come first."""
        merged = AverageAttention()
        together = self.cells + other.cells
        used = 0
        for cell, total in together.sums.items():
            if used + total.numel() <= ENTRIES:
                used += total.numel()
                merged.cells.sums[cell], merged.cells.counts[cell] = total, together.counts[cell]
        return merged

    __add__ = merge

    def tensors(self) -> dict[str, Tensor]:
        """What :meth:`of_tensors` makes the same averages of."""
        cells = list(self.cells.counts)
        return {
            "cells": torch.tensor(cells, dtype=torch.int64).view(len(cells), 2),
            "counts": torch.tensor([self.cells.counts[cell] for cell in cells], dtype=torch.int64),
            "sums": torch.cat(
                [torch.empty(0, dtype=torch.float64)] + [self.cells.sums[c].flatten() for c in cells]
            ),
        }

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "AverageAttention":
        """The averages that :meth:`tensors` was called on."""
        found, used = cls(), 0
        for (source, target), count in zip(
            tensors["cells"].tolist(), tensors["counts"].tolist(), strict=True
        ):
            size = source * target
            found.cells.sums[source, target] = (
                tensors["sums"][used : used + size].view(target, source).clone()
            )
            found.cells.counts[source, target] = count
            used += size
        return found


def _cells(target_mask: Tensor, source_mask: Tensor) -> list[Cell]:
    return list(zip(source_mask.sum(1).tolist(), target_mask.sum(1).tolist(), strict=True))
