"""Typicality: how well the average attention matrix stands for one sample's.

    typicality = 1 - mean over samples of (mean over rows of TV(row, the same row of the average))

TV is the total-variation distance. The average runs over the *other* samples of the same cell (same source
and same target length), in cells of at least 30; samples elsewhere have no typicality, and the share of
samples covered is reported. A network that attends by position alone has typicality 1: every sample's matrix
is the average one. So has one that always attends uniformly, by construction: typicality says that attention
does not depend on the sample, not that it does anything.

Aitken et al. 2021 (contribution 2) compare attention matrices with their average over samples; the measure is
ours.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import (
    EVERYWHERE,
    Array,
    Attention,
    ShowsShapes,
    SourceMask,
    TargetMask,
    as_tensor,
    takes_arrays,
)
from attnlib.decomposition.joined_sizes import Cell, SummedMatrices, average_of_sizes, nearest_cells
from attnlib.decomposition.rows import allowed_pairs
from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums

MINIMUM_CELL = 30
MOST_ENTRIES = 200_000  # of all average matrices of a head together, where memory is bounded


@dataclass(frozen=True, eq=False, repr=False)
class Typicality(ShowsShapes):
    """How well the average attention matrix represents single samples, and how many could be judged."""

    value: float  #: mean over the samples that could be judged; NaN where no cell is large enough
    coverage: float  #: share of samples that are in a large enough cell
    cells: int  #: number of large enough cells
    samples: int  #: number of samples, covered or not
    per_sample: Float[Tensor, " samples"]  #: in the order of judging; NaN where a sample is not covered


# The sums that both kinds of averages are made of.


@dataclass(frozen=True, eq=False)
class _Batch:
    """Attention matrices without padding.

    Attributes:
        cells: the cell of each sample.
        weights: the matrices of each head as one row of numbers, sample after sample, float64 on the CPU.
    """

    cells: list[Cell]
    weights: Float[Tensor, "heads entries"]

    @classmethod
    def of(
        cls,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "_Batch":
        valid = target_mask[:, :, None] & source_mask[:, None, :]  # (batch, target, source)
        weights = torch.atleast_2d(attention[..., valid].double().cpu())  # (heads, entries)
        return cls(cells_of(target_mask, source_mask), weights)

    def sizes(self) -> Int[np.ndarray, " samples"]:
        """Return how many entries a head has of each sample."""
        return np.array([source * target for source, target in self.cells], dtype=np.int64)

    def places(self, starts: dict[Cell, int]) -> Int[Tensor, " entries"]:
        """Return where each entry is among sums whose matrices start at these places."""
        sizes = self.sizes()
        starts_here = np.cumsum(sizes) - sizes  # (samples,)
        starts_there = np.array([starts[cell] for cell in self.cells], dtype=np.int64)  # (samples,)
        shift = np.repeat(starts_there - starts_here, sizes)  # (entries,)
        return torch.from_numpy(shift + np.arange(sizes.sum()))

    def typicality(self, averages: Float[Tensor, "heads entries"]) -> Float[Tensor, "heads samples"]:
        """Return 1 − the mean total variation between the rows of each matrix and of its average."""
        sizes = torch.from_numpy(self.sizes())
        sample = torch.repeat_interleave(torch.arange(len(sizes)), sizes)  # (entries,)
        apart = (self.weights - averages).abs()  # (heads, entries)
        sums = apart.new_zeros(len(apart), len(sizes)).index_add_(1, sample, apart)  # (heads, samples)
        rows = torch.tensor([target for _, target in self.cells])  # (samples,)
        return 1 - sums / 2 / rows


class CellSums(StreamingSums):
    """Sums of the attention matrices of some heads by cell, (source length, target length).

    Args:
        heads: whose matrices are summed.
        limit: entries that the matrices of a head may have together; None: any number. Where they would have
            more, only cells whose longer side has at most ``longest`` positions are kept, the largest number
            for which all cells seen fit. It depends on which cells there are, not on when they came, and a
            cell that is kept has all of its samples: halves merged are the whole.

    Attributes:
        counts: samples by cell.
        longest: positions of the longer side of a cell that is kept; None: all are.
    """

    def __init__(self, heads: int = 1, limit: int | None = None) -> None:
        self.heads = heads
        self.limit = limit
        self.counts: dict[Cell, int] = {}
        self.longest: int | None = None
        # All matrices of a head are in one row, so that a batch is added in one step.
        self._entries = torch.zeros(heads, 0, dtype=torch.float64)
        self._starts: dict[Cell, int] = {}  # where the matrix of a cell begins
        self._used = 0  # entries of a head that are of some cell

    def settings(self) -> dict[str, Any]:
        """Return what other sums must agree in to be merged."""
        return {"heads": self.heads, "limit": self.limit}

    @property
    def sums(self) -> dict[Cell, Float[Tensor, "heads target source"]]:
        """The summed matrices by cell."""
        return {cell: self.sum_of(cell) for cell in self.counts}

    def sum_of(self, cell: Cell) -> Float[Tensor, "heads target source"]:
        """Return the sum of the matrices of a cell, a view of what is summed."""
        source, target = cell
        start = self._starts[cell]
        return self._entries[:, start : start + source * target].unflatten(1, (target, source))

    def beyond(
        self, target_mask: Bool[Tensor, "batch target"], source_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, " batch"]:
        """Return True for samples that are longer than cells are kept of."""
        longer = torch.maximum(target_mask.sum(1), source_mask.sum(1))  # (batch,)
        if self.longest is None:
            return torch.zeros_like(longer, dtype=torch.bool)
        return longer > self.longest

    def update(
        self,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "CellSums":
        """Add a batch, and return these sums."""
        self._make_room(set(cells_of(target_mask, source_mask)))
        beyond = self.beyond(target_mask, source_mask)  # (batch,)
        if bool(beyond.any()):
            attention = attention[..., ~beyond, :, :]
            target_mask, source_mask = target_mask[~beyond], source_mask[~beyond]
        batch = _Batch.of(attention, target_mask, source_mask)
        for cell in batch.cells:
            self.counts[cell] = self.counts.get(cell, 0) + 1
        first_entry = self._entries.shape[1] * torch.arange(self.heads)[:, None]  # (heads, 1)
        places = batch.places(self._starts) + first_entry  # (heads, entries)
        self._entries.view(-1).index_add_(0, places.view(-1), batch.weights.reshape(-1))
        return self

    def merge(self, other: "CellSums") -> "CellSums":
        """Return new sums over the samples of both.

        Raises:
            BadInput: the two have different settings.
        """
        self._require_same_settings(other)
        merged = self.empty()
        merged.longest = min((n for n in (self.longest, other.longest) if n is not None), default=None)
        merged._make_room(self.counts.keys() | other.counts.keys())
        for addend in (self, other):
            for cell, count in addend.counts.items():
                if merged._is_kept(cell):
                    merged.counts[cell] = merged.counts.get(cell, 0) + count
                    merged.sum_of(cell).add_(addend.sum_of(cell))
        return merged

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed: tensors, and the longest side of a cell that is kept."""
        matrices = [self.sum_of(cell).flatten(1) for cell in self.counts]
        return {
            "cells": torch.tensor(list(self.counts), dtype=torch.int64).view(len(self.counts), 2),
            "counts": torch.tensor(list(self.counts.values()), dtype=torch.int64),
            "longest": self.longest,
            "sums": torch.cat([self._entries[:, :0], *matrices], 1),
        }

    def load_state_dict(self, state: dict[str, Any]) -> "CellSums":
        """Take the sums of a :meth:`state_dict` in place of these, and return these sums."""
        cells = [(source, target) for source, target in state["cells"].tolist()]
        self.counts = dict(zip(cells, state["counts"].tolist(), strict=True))
        self.longest = state["longest"]
        self._entries = state["sums"].clone()
        self._starts, self._used = _laid_out(cells)
        return self

    # room ---------------------------------------------------------------------------------------------------

    def _is_kept(self, cell: Cell) -> bool:
        return self.longest is None or max(cell) <= self.longest

    def _make_room(self, cells: set[Cell]) -> None:
        """Make room for the new ones among these cells; with a limit, for as many as fit."""
        new = sorted(cell for cell in cells if cell not in self._starts and self._is_kept(cell))
        if not new:
            return
        before = list(self._starts)
        needed = self._used + sum(source * target for source, target in new)
        if self.limit is not None and needed > self.limit:
            self.longest = longest_that_fits([*before, *new], self.limit)
        kept = [cell for cell in (*before, *new) if self._is_kept(cell)]
        starts, used = _laid_out(kept)
        if len(kept) < len(before) + len(new) or used > self._entries.shape[1]:
            self._move_to(starts, used)
        self._starts, self._used = starts, used
        self.counts = {cell: count for cell, count in self.counts.items() if cell in starts}

    def _move_to(self, starts: dict[Cell, int], used: int) -> None:
        """Copy the matrices of the cells that are kept to these places, with room for as many again."""
        room = 2 * used
        if self.limit is not None:
            room = max(used, min(room, self.limit))
        entries = torch.zeros(self.heads, room, dtype=torch.float64)
        for cell in self._starts.keys() & starts.keys():
            matrix = self.sum_of(cell).flatten(1)  # (heads, target * source)
            entries[:, starts[cell] : starts[cell] + matrix.shape[1]] = matrix
        self._entries = entries


def _laid_out(cells: Iterable[Cell]) -> tuple[dict[Cell, int], int]:
    """Return where the matrices of cells start, one after the other, and how many entries they have."""
    starts: dict[Cell, int] = {}
    used = 0
    for source, target in cells:
        starts[source, target] = used
        used += source * target
    return starts, used


def longest_that_fits(cells: Iterable[Cell], limit: int) -> int | None:
    """Return the longest side up to which all cells have no more entries than the limit; None: all cells.

    >>> longest_that_fits([(1, 1), (2, 3), (3, 3)], limit=15)
    2
    """
    entries: dict[int, int] = defaultdict(int)  # by the longer side
    for source, target in cells:
        entries[max(source, target)] += source * target
    used = 0
    for longer in sorted(entries):
        used += entries[longer]
        if used > limit:
            return longer - 1
    return None


def cells_of(
    target_mask: Bool[Tensor, "batch target"], source_mask: Bool[Tensor, "batch source"]
) -> list[Cell]:
    """Return the cell of each sample."""
    return list(zip(source_mask.sum(1).tolist(), target_mask.sum(1).tolist(), strict=True))


# Averages of the other samples of a cell, exactly.


class AttentionCells(CellSums):
    """Sums of attention matrices by cell, from which the average over a sample's others is exact.

    No sample is kept. Two passes over the same samples take constant memory: `update` with every batch, then
    `judge` with every batch (`typicality` does both for matrices that fit in memory).
    """

    def __init__(self) -> None:
        super().__init__(heads=1)

    def settings(self) -> dict[str, Any]:
        """Return nothing: any two sums can be merged."""
        return {}

    @takes_arrays
    def update(
        self, attention: Attention, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "AttentionCells":
        """Add a batch, and return these sums.

        Raises:
            BadInput: masks and attention differ in shape; attention that is not finite.
        """
        _require_finite(attention, target_mask, source_mask)
        super().update(attention, target_mask, source_mask)
        return self

    def average_attention(self, cell: Cell) -> Float[Tensor, "target source"]:
        """Return the mean matrix of a cell, (source length, target length).

        Raises:
            BadInput: a cell without samples.
        """
        if cell not in self.counts:
            most = sorted(self.counts, key=self.counts.__getitem__, reverse=True)[:5]
            raise BadInput(
                f"No samples of (source length, target length) {cell}; cells with most samples: {most}."
            )
        return self.sum_of(cell)[0] / self.counts[cell]

    @takes_arrays
    def judge(
        self,
        attention: Attention,
        target_mask: TargetMask = EVERYWHERE,
        source_mask: SourceMask = EVERYWHERE,
        *,
        minimum: int = MINIMUM_CELL,
    ) -> Float[Tensor, " batch"]:
        """Return each sample's typicality against the others of its cell.

        NaN in cells of fewer than `minimum` samples. The samples must be among those given to `update`: their
        own matrix is taken out of the sum.

        Raises:
            BadInput: masks and attention differ in shape; attention is not finite; a ``minimum`` below 2.
        """
        if minimum < 2:
            raise BadInput(
                f"minimum={minimum}: a cell needs at least 2 samples for one to be judged by the others."
            )
        _require_finite(attention, target_mask, source_mask)
        counts = torch.tensor([self.counts.get(cell, 0) for cell in cells_of(target_mask, source_mask)])
        covered = counts >= minimum  # (batch,)
        values = torch.full((len(attention),), torch.nan, dtype=torch.float64)  # (batch,)
        if bool(covered.any()):
            here = covered.to(attention.device)
            batch = _Batch.of(attention[here], target_mask[here], source_mask[here])
            sums = self._entries[:, batch.places(self._starts)]  # (1, entries)
            n_others = (counts[covered] - 1).repeat_interleave(torch.from_numpy(batch.sizes()))  # (entries,)
            others = (sums - batch.weights) / n_others  # (1, entries)
            values[covered] = batch.typicality(others)[0]
        return values

    def result(self, per_sample: Float[Tensor, " samples"], *, minimum: int = MINIMUM_CELL) -> Typicality:
        """Pool what `judge` returned for all batches, concatenated."""
        covered = ~per_sample.isnan()
        samples = len(per_sample)
        value = coverage = float("nan")
        if bool(covered.any()):
            value = float(per_sample[covered].mean())
        if samples:
            coverage = int(covered.sum()) / samples
        large_cells = sum(count >= minimum for count in self.counts.values())
        return Typicality(
            value=value, coverage=coverage, cells=large_cells, samples=samples, per_sample=per_sample
        )


def typicality(matrices: Iterable[Float[Array, "_ _"]], *, minimum: int = MINIMUM_CELL) -> Typicality:
    """Return the typicality of attention matrices (target, source) without padding, of any lengths.

    Warns where it is NaN, since no size has as many matrices as the minimum.

    Args:
        matrices: one a sample.
        minimum: how many of one size there must be.

    Raises:
        BadInput: what is no matrix, has no entries, or has rows that do not sum to one; a minimum below 2.

    >>> identity = torch.eye(3)
    >>> typicality([identity] * 30).value
    1.0
    """
    tensors = [as_tensor(matrix, "an attention matrix") for matrix in matrices]
    places: dict[torch.Size, list[int]] = defaultdict(list)  # of the matrices of one shape
    for place, matrix in enumerate(tensors):
        _require_rows_of_one(matrix)
        places[matrix.shape].append(place)
    cells = AttentionCells()
    per_sample = torch.empty(len(tensors), dtype=torch.float64)
    for members in places.values():
        alike = torch.stack([tensors[place].double() for place in members])
        cells.update(alike)
        per_sample[members] = cells.judge(alike, minimum=minimum)
    most = max(cells.counts.values(), default=0)
    if most < minimum:
        warn(f"typicality is NaN: {most} matrices at most are of one size; give {minimum}", stacklevel=2)
    return cells.result(per_sample, minimum=minimum)


def _require_finite(attention: Tensor, target_mask: Tensor, source_mask: Tensor) -> None:
    wrong = ~attention.isfinite() & allowed_pairs(attention, target_mask, source_mask)
    if bool(wrong.any()):
        sample = int(wrong.nonzero()[0, 0])
        raise BadInput(f"Attention of sample {sample} is not finite at valid positions: leave it out.")


def _require_rows_of_one(matrix: Tensor) -> None:
    if matrix.dim() != 2:
        raise BadInput(f"an attention matrix of shape {tuple(matrix.shape)}; expected (target, source)")
    if not matrix.numel():
        raise BadInput(f"an attention matrix of shape {tuple(matrix.shape)} has no entries: leave it out")
    off = float((matrix.double().sum(1) - 1).abs().max())
    if not off <= 0.05 or bool((matrix < 0).any()):  # half precision rounds
        raise BadInput(f"a row is {off:.2g} away from a sum of one, or below 0: give what a softmax returns")


# Averages that other samples are judged by, in bounded memory.


class AverageAttention(CellSums):
    """Average attention of some heads by cell, against which samples that were not summed are judged.

    Memory is bounded, see :class:`CellSums`. A sample of a cell that is too rare is judged by the nearest
    cells, see :mod:`attnlib.decomposition.joined_sizes`.
    """

    def __init__(self, heads: int = 1, limit: int | None = MOST_ENTRIES) -> None:
        super().__init__(heads, limit)
        self._averages: dict[tuple[Cell, int], Tensor] = {}  # by cell and minimum, until the sums change

    def update(
        self,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "AverageAttention":
        """Add a batch, and return these averages."""
        self._averages.clear()
        super().update(attention, target_mask, source_mask)
        return self

    def load_state_dict(self, state: dict[str, Any]) -> "AverageAttention":
        """Take the sums of a :meth:`state_dict` in place of these, and return these averages."""
        self._averages.clear()
        super().load_state_dict(state)
        return self

    def typicality(
        self,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
        *,
        minimum: int = MINIMUM_CELL,
    ) -> tuple[Float[Tensor, "*heads batch"], Bool[Tensor, " batch"]]:
        """Return 1 − mean total variation from the average, and whether that is of the very cell.

        Where a cell has fewer than ``minimum`` samples, the nearest ones are joined until there are enough.
        NaN where fewer were summed in all.
        """
        cells = cells_of(target_mask, source_mask)
        exact = torch.tensor([self.counts.get(cell, 0) >= minimum for cell in cells])
        if sum(self.counts.values()) < minimum:
            return torch.full(attention.shape[:-2], torch.nan, dtype=torch.float64), exact
        batch = _Batch.of(attention, target_mask, source_mask)
        of_cell = {cell: self._average(cell, minimum).flatten(1) for cell in set(cells)}
        averages = torch.cat([of_cell[cell] for cell in cells], 1)  # (heads, entries)
        return batch.typicality(averages).view(attention.shape[:-2]), exact

    def _average(self, cell: Cell, minimum: int) -> Float[Tensor, "heads target source"]:
        """Return the average of the nearest cells, made once for all batches that are judged."""
        if (cell, minimum) not in self._averages:
            kept = sum(average.numel() for average in self._averages.values())
            if kept > self.heads * MOST_ENTRIES:
                self._averages.clear()
            self._averages[cell, minimum] = self._joined_average(cell, minimum)
        return self._averages[cell, minimum]

    def _joined_average(self, cell: Cell, minimum: int) -> Float[Tensor, "heads target source"]:
        joined = nearest_cells(cell, self.counts, minimum)
        if joined == [cell]:
            return self.sum_of(cell) / self.counts[cell]
        matrices = [SummedMatrices(self.sum_of(near).numpy(), self.counts[near]) for near in joined]
        source, target = cell
        return torch.from_numpy(average_of_sizes(matrices, target, source))
