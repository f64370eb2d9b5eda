"""The average attention of samples of one size, in bounded memory, and how typical it is of others."""

from collections import defaultdict

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.decomposition.substitution import total_variation
from attnlib.decomposition.typicality import MINIMUM_CELL, AttentionCells, Cell

ENTRIES = 200_000  # of all average matrices of a head together


class AverageAttention:
    """Average matrices by (source length, target length), of all sizes up to a longest side.

    Samples are judged by the average of those summed: by that of others where the two are different samples.
    That is :mod:`attnlib.decomposition.typicality` for a corpus read once.

    Memory: the matrices of a head have at most :data:`ENTRIES` entries of 8 bytes together, 1.6 MB; that is
    614 MB for the 384 heads of one kind of attention in a model of 24 layers with 16. Kept is every size
    whose longer side has at most ``longest`` positions, where ``longest`` is the largest number for which all
    the sizes seen fit. It depends on which sizes there are, not on when they came, and a size that is kept
    has all of its samples: halves merged are the whole.

    Attributes:
        longest: positions of the longer side up to which sizes are kept; None while all are.
    """

    def __init__(self) -> None:
        self.cells = AttentionCells()
        self.longest: int | None = None

    def update(
        self,
        attention: Float[Tensor, "batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "AverageAttention":
        """Add the samples whose size is kept."""
        self._make_room(set(_cells(target_mask, source_mask)))
        here = ~self.beyond(target_mask, source_mask)
        self.cells.update(attention[here], target_mask[here], source_mask[here])
        return self

    def beyond(
        self, target_mask: Bool[Tensor, "batch target"], source_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, " batch"]:
        """Samples that are longer than averages are kept of."""
        longer = torch.maximum(target_mask.sum(1), source_mask.sum(1))
        return torch.zeros_like(longer, dtype=torch.bool) if self.longest is None else longer > self.longest

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
        """New averages of both."""
        merged = AverageAttention()
        merged.longest = min((own.longest for own in (self, other) if own.longest is not None), default=None)
        merged.cells = self.cells + other.cells
        merged._make_room(set())
        return merged

    __add__ = merge

    def tensors(self) -> dict[str, Tensor]:
        """What :meth:`of_tensors` makes the same averages of; ``longest`` is −1 where all sizes are kept."""
        cells = list(self.cells.counts)
        return {
            "cells": torch.tensor(cells, dtype=torch.int64).view(len(cells), 2),
            "counts": torch.tensor([self.cells.counts[cell] for cell in cells], dtype=torch.int64),
            "longest": torch.tensor(-1 if self.longest is None else self.longest),
            "sums": torch.cat(
                [torch.empty(0, dtype=torch.float64)] + [self.cells.sums[c].flatten() for c in cells]
            ),
        }

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "AverageAttention":
        """The averages that :meth:`tensors` was called on."""
        found, used = cls(), 0
        longest = int(tensors["longest"])
        found.longest = None if longest < 0 else longest
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

    def _make_room(self, new: set[Cell]) -> None:
        """Let ``longest`` be such that the sizes kept and the new ones fit, and drop those beyond it.

        Once it has been lowered it stays: what is longer has been seen, and would not fit with what is there.
        """
        entries: dict[int, int] = defaultdict(int)  # by the longer side
        for cell in new | self.cells.counts.keys():
            if self.longest is None or max(cell) <= self.longest:
                entries[max(cell)] += cell[0] * cell[1]
        used = 0
        for longer in sorted(entries):
            used += entries[longer]
            if used > ENTRIES:
                self.longest = longer - 1
                break
        if self.longest is not None:
            for cell in [cell for cell in self.cells.counts if max(cell) > self.longest]:
                del self.cells.counts[cell], self.cells.sums[cell]


def _cells(target_mask: Tensor, source_mask: Tensor) -> list[Cell]:
    return list(zip(source_mask.sum(1).tolist(), target_mask.sum(1).tolist(), strict=True))
