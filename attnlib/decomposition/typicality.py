"""Typicality: how well the average attention matrix represents that of a single sample.

    typicality = 1 - mean over samples of (mean over rows of TV(row, the same row of the average))

TV is the total-variation distance. The average runs over the *other* samples of the same cell (same source
and same target length), in cells of at least 30; samples of other cells have no typicality, and the share of
samples covered is reported. A network that attends by position alone has typicality 1: every matrix is the
average one. So has a network that always attends uniformly: typicality measures that attention does not
depend on the sample, not that it selects anything.

Aitken et al. 2021 (contribution 2) compare attention matrices with their average over samples; the measure is
this project's.
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
    AttentionMatrices,
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Typicality(ShowsShapes):
    """Result of comparing attention matrices with their average.

    Attributes:
        value: mean over the samples covered, from 0 to 1; NaN if no cell is large enough.
        coverage: share of samples that are in a large enough cell, from 0 to 1.
        cells: number of large enough cells.
        samples: number of samples, covered or not.
        per_sample: of each sample, (samples,); NaN for a sample that is not covered.

    Example:
        >>> values = torch.tensor([0.5, 0.75, torch.nan])
        >>> Typicality(value=0.625, coverage=2 / 3, cells=1, samples=3, per_sample=values)
        Typicality(value=0.625, coverage=0.6666666666666666, cells=1, samples=3, per_sample=float32 (3,))
    """

    value: float
    coverage: float
    cells: int
    samples: int
    per_sample: Float[Tensor, " samples"]


# -- sums that both kinds of averages share --


@dataclass(frozen=True, eq=False, repr=False)
class _Matrices(ShowsShapes):
    """Attention matrices without padding.

    Attributes:
        cells: the cell of each sample.
        weights: all matrices of a head in one row, sample after sample, float64 on the CPU.
    """

    cells: list[Cell]
    weights: Float[Tensor, "heads entries"]

    @classmethod
    def of(
        cls,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "_Matrices":
        """Leave out the padding of a batch of matrices."""
        valid = target_mask[:, :, None] & source_mask[:, None, :]  # (batch, target, source)
        weights = torch.atleast_2d(attention[..., valid].double().cpu())  # (heads, entries)
        return cls(cells_of(target_mask, source_mask), weights)

    def sizes(self) -> Int[np.ndarray, " samples"]:
        """Return the number of entries of each matrix."""
        return np.array([source * target for source, target in self.cells], dtype=np.int64)

    def places(self, starts: dict[Cell, int]) -> Int[Tensor, " entries"]:
        """Return the place of each entry among sums by cell.

        Args:
            starts: the place of the first entry of each cell.
        """
        sizes = self.sizes()  # (samples,)
        start_of_sample = np.cumsum(sizes) - sizes  # among these entries, (samples,)
        start_of_cell = np.array([starts[cell] for cell in self.cells], dtype=np.int64)  # (samples,)
        shift = np.repeat(start_of_cell - start_of_sample, sizes)  # (entries,)
        return torch.from_numpy(np.arange(sizes.sum()) + shift)

    def typicality(self, averages: Float[Tensor, "heads entries"]) -> Float[Tensor, "heads samples"]:
        """Return 1 − the mean total variation between the rows of each matrix and of its average."""
        sizes = torch.from_numpy(self.sizes())
        sample = torch.repeat_interleave(torch.arange(len(sizes)), sizes)  # (entries,)
        difference = (self.weights - averages).abs()  # (heads, entries)
        sums = difference.new_zeros(len(difference), len(sizes))  # (heads, samples)
        sums.index_add_(1, sample, difference)
        rows = torch.tensor([target for _, target in self.cells])  # (samples,)
        return 1 - sums / 2 / rows


class CellSums(StreamingSums):
    """Sums of the attention matrices of some heads by cell, (source length, target length).

    Args:
        heads: number of heads.
        limit: largest number of entries of all matrices of a head; None for no limit. If they would have
            more, only cells whose longer side has at most ``longest`` positions are kept, the largest number
            for which all cells seen fit. That number depends on which cells there are, not on their order,
            and a cell that is kept has all of its samples: merged halves equal the whole.

    Attributes:
        counts: number of samples of each cell.
        longest: largest length of the longer side of a cell that is kept; None if all cells are kept.
    """

    def __init__(self, heads: int = 1, limit: int | None = None) -> None:
        self.heads = heads
        self.limit = limit
        self.counts: dict[Cell, int] = {}
        self.longest: int | None = None
        # All matrices of a head are in one row, so that a batch is added in one step.
        self._entries = torch.zeros(heads, 0, dtype=torch.float64)
        self._starts: dict[Cell, int] = {}  # the place of the first entry of each cell
        self._used = 0  # number of entries of a head that belong to a cell

    def settings(self) -> dict[str, Any]:
        """Return the number of heads and the limit; sums of others cannot be merged."""
        return {"heads": self.heads, "limit": self.limit}

    @property
    def sums(self) -> dict[Cell, Float[Tensor, "heads target source"]]:
        """The summed matrices by cell."""
        return {cell: self.sum_of(cell) for cell in self.counts}

    def sum_of(self, cell: Cell) -> Float[Tensor, "heads target source"]:
        """Return the sum of the matrices of a cell, as a view of the entries."""
        source, target = cell
        start = self._starts[cell]
        return self._entries[:, start : start + source * target].unflatten(1, (target, source))

    def beyond(
        self, target_mask: Bool[Tensor, "batch target"], source_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, " batch"]:
        """Return True for samples that are too long to have a cell."""
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
        matrices = _Matrices.of(attention, target_mask, source_mask)
        for cell in matrices.cells:
            self.counts[cell] = self.counts.get(cell, 0) + 1
        start_of_head = self._entries.shape[1] * torch.arange(self.heads)[:, None]  # (heads, 1)
        places = start_of_head + matrices.places(self._starts)  # (heads, entries)
        self._entries.view(-1).index_add_(0, places.view(-1), matrices.weights.reshape(-1))
        return self

    def merge(self, other: "CellSums") -> "CellSums":
        """Return new sums over the samples of both.

        Raises:
            BadInput: the two have different settings.
        """
        self._require_same_settings(other)
        merged = self.empty()
        limits = [addend.longest for addend in (self, other) if addend.longest is not None]
        merged.longest = min(limits, default=None)
        merged._make_room(self.counts.keys() | other.counts.keys())
        for addend in (self, other):
            for cell, count in addend.counts.items():
                if merged._is_kept(cell):
                    merged.counts[cell] = merged.counts.get(cell, 0) + count
                    merged.sum_of(cell).add_(addend.sum_of(cell))
        return merged

    def state_dict(self) -> dict[str, Any]:
        """Return all sums as tensors, and the largest length of a cell that is kept."""
        cells = torch.tensor(list(self.counts), dtype=torch.int64)
        counts = torch.tensor(list(self.counts.values()), dtype=torch.int64)
        nothing = self._entries[:, :0]  # without it there is nothing to join if there are no cells
        matrices = [self.sum_of(cell).flatten(1) for cell in self.counts]
        return {
            "cells": cells.view(len(self.counts), 2),
            "counts": counts,
            "longest": self.longest,
            "sums": torch.cat([nothing, *matrices], 1),
        }

    def load_state_dict(self, state: dict[str, Any]) -> "CellSums":
        """Replace all sums by those of a :meth:`state_dict`, and return these sums."""
        cells = [(source, target) for source, target in state["cells"].tolist()]
        self.counts = dict(zip(cells, state["counts"].tolist(), strict=True))
        self.longest = state["longest"]
        self._entries = state["sums"].clone()
        self._starts, self._used = _laid_out(cells)
        return self

    # -- room --

    def _is_kept(self, cell: Cell) -> bool:
        return self.longest is None or max(cell) <= self.longest

    def _make_room(self, cells: set[Cell]) -> None:
        """Make room for the new ones among these cells; with a limit, for as many as fit."""
        new_cells = sorted(cell for cell in cells if cell not in self._starts and self._is_kept(cell))
        if not new_cells:
            return
        all_cells = [*self._starts, *new_cells]
        needed = self._used + sum(source * target for source, target in new_cells)
        if self.limit is not None and needed > self.limit:
            self.longest = longest_that_fits(all_cells, self.limit)
        fitting_cells = [cell for cell in all_cells if self._is_kept(cell)]
        starts, used = _laid_out(fitting_cells)
        some_dropped = len(fitting_cells) < len(all_cells)
        if some_dropped or used > self._entries.shape[1]:
            self._move_to(starts, used)
        self._starts, self._used = starts, used
        self.counts = {cell: count for cell, count in self.counts.items() if cell in starts}

    def _move_to(self, starts: dict[Cell, int], used: int) -> None:
        """Copy the matrices of the cells that are kept to new places, with room for as many again.

        Args:
            starts: the new place of the first entry of each cell.
            used: number of entries that all cells have.
        """
        room = 2 * used
        if self.limit is not None:
            room = max(used, min(room, self.limit))
        entries = torch.zeros(self.heads, room, dtype=torch.float64)
        for cell in self._starts.keys() & starts.keys():
            matrix = self.sum_of(cell).flatten(1)  # (heads, target * source)
            start = starts[cell]
            entries[:, start : start + matrix.shape[1]] = matrix
        self._entries = entries


def _laid_out(cells: Iterable[Cell]) -> tuple[dict[Cell, int], int]:
    """Return where the matrix of each cell starts, one after the other, and the number of all entries."""
    starts: dict[Cell, int] = {}
    used = 0
    for source, target in cells:
        starts[source, target] = used
        used += source * target
    return starts, used


def longest_that_fits(cells: Iterable[Cell], limit: int) -> int | None:
    """Return the largest longer side up to which all cells fit into the limit; None if all cells do.

    Args:
        cells: (source length, target length) of each.
        limit: largest number of entries of all cells together.

    Example:
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


# -- exact averages over the other samples of a cell --


class AttentionCells(CellSums):
    """Sums of attention matrices by cell, which give the exact average over all other samples of a cell.

    No sample is kept. Two passes over the same samples take constant memory: `update` with every batch, then
    `judge` with every batch (:func:`typicality` does both for matrices that fit in memory).

    Attributes:
        counts: number of samples of each cell, (source length, target length).

    Example:
        >>> attention = torch.eye(3).expand(30, 3, 3)
        >>> cells = AttentionCells().update(attention)
        >>> cells.counts, cells.result(cells.judge(attention)).value
        ({(3, 3): 30}, 1.0)
    """

    def __init__(self) -> None:
        super().__init__(heads=1)

    def settings(self) -> dict[str, Any]:
        """Return nothing: any two sums can be merged."""
        return {}

    @takes_arrays
    def update(
        self,
        attention: AttentionMatrices,
        target_mask: TargetMask = EVERYWHERE,
        source_mask: SourceMask = EVERYWHERE,
    ) -> "AttentionCells":
        """Add a batch, and return these sums.

        Args:
            attention: (batch, target, source).
            target_mask: True at valid positions, (batch, target), by default everywhere.
            source_mask: True at valid positions, (batch, source), by default everywhere.

        Raises:
            BadInput: masks and attention differ in shape; attention that is not finite.
        """
        _require_finite(attention, target_mask, source_mask)
        super().update(attention, target_mask, source_mask)
        return self

    def average_attention(self, cell: Cell) -> Float[Tensor, "target source"]:
        """Return the mean matrix of a cell.

        Args:
            cell: (source length, target length).

        Raises:
            BadInput: a cell without samples.
        """
        if cell not in self.counts:
            largest_first = sorted(self.counts, key=self.counts.__getitem__, reverse=True)
            raise BadInput(
                f"No samples of (source length, target length) {cell}; cells with most samples: "
                f"{largest_first[:5]}."
            )
        return self.sum_of(cell)[0] / self.counts[cell]

    @takes_arrays
    def judge(
        self,
        attention: AttentionMatrices,
        target_mask: TargetMask = EVERYWHERE,
        source_mask: SourceMask = EVERYWHERE,
        *,
        minimum: int = MINIMUM_CELL,
    ) -> Float[Tensor, " batch"]:
        """Return the typicality of each sample, compared with the other samples of its cell.

        The samples must be among those given to `update`: their matrices are taken out of the sums.

        Args:
            attention: (batch, target, source).
            target_mask: True at valid positions, (batch, target), by default everywhere.
            source_mask: True at valid positions, (batch, source), by default everywhere.
            minimum: number of samples that a cell needs.

        Returns:
            a typicality from 0 to 1 for each sample, float64; NaN in cells of fewer samples.

        Raises:
            BadInput: masks and attention differ in shape; attention is not finite; a ``minimum`` below 2.
        """
        if minimum < 2:
            raise BadInput(
                f"minimum={minimum}: a cell needs at least 2 samples for one to be judged by the others."
            )
        _require_finite(attention, target_mask, source_mask)
        cells = cells_of(target_mask, source_mask)
        counts = torch.tensor([self.counts.get(cell, 0) for cell in cells])  # (batch,)
        covered = counts >= minimum  # (batch,)
        values = torch.full((len(attention),), torch.nan, dtype=torch.float64)  # (batch,)
        if bool(covered.any()):
            chosen = covered.to(attention.device)
            matrices = _Matrices.of(attention[chosen], target_mask[chosen], source_mask[chosen])
            sizes = torch.from_numpy(matrices.sizes())
            n_others = (counts[covered] - 1).repeat_interleave(sizes)  # (entries,)
            sums = self._entries[:, matrices.places(self._starts)]  # (1, entries)
            averages = (sums - matrices.weights) / n_others  # over the other samples, (1, entries)
            values[covered] = matrices.typicality(averages)[0]
        return values

    def result(self, per_sample: Float[Tensor, " samples"], *, minimum: int = MINIMUM_CELL) -> Typicality:
        """Return the typicality of all samples together.

        Args:
            per_sample: what `judge` returned for all batches, concatenated.
            minimum: number of samples that a cell needs, as given to `judge`.
        """
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
    """Return the typicality of attention matrices without padding, of any lengths.

    Args:
        matrices: one matrix (target, source) for each sample.
        minimum: number of matrices that a size needs.

    Returns:
        The typicality of all matrices together, and of each. The function warns if it is NaN because no size
        has as many matrices as the minimum.

    Raises:
        BadInput: an array that is not a matrix, has no entries, or has rows that do not sum to one; a minimum
            below 2.

    Example:
        >>> identity = torch.eye(3)
        >>> typicality([identity] * 30).value
        1.0
    """
    tensors = [as_tensor(matrix, "an attention matrix") for matrix in matrices]
    samples_of_shape: dict[torch.Size, list[int]] = defaultdict(list)
    for sample, matrix in enumerate(tensors):
        _require_rows_of_one(matrix)
        samples_of_shape[matrix.shape].append(sample)
    cells = AttentionCells()
    per_sample = torch.empty(len(tensors), dtype=torch.float64)
    for samples in samples_of_shape.values():
        same_shape = torch.stack([tensors[sample].double() for sample in samples])
        cells.update(same_shape)
        per_sample[samples] = cells.judge(same_shape, minimum=minimum)
    largest = max(cells.counts.values(), default=0)
    if largest < minimum:
        warn(
            f"typicality is NaN: no more than {largest} matrices have one size; give {minimum}", stacklevel=2
        )
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
    error = float((matrix.double().sum(1) - 1).abs().max())
    if not error <= 0.05 or bool((matrix < 0).any()):  # half precision rounds
        raise BadInput(
            f"a row has a sum that differs from one by {error:.2g}, or a negative entry: give what a softmax "
            "returns"
        )


# -- averages for judging other samples, in bounded memory --


class AverageAttention(CellSums):
    """Average attention by cell, for judging samples that were not summed.

    Memory is bounded, see :class:`CellSums`. A sample of a rare cell is compared with the average of the
    nearest cells, see :mod:`attnlib.decomposition.joined_sizes`.
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
        """Replace all sums by those of a :meth:`state_dict`, and return these averages."""
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
        """Return the typicality of each sample, and whether it was compared with the average of its cell.

        If a cell has fewer than ``minimum`` samples, the nearest cells are joined until there are enough. The
        typicality is NaN if fewer samples were summed in all.
        """
        cells = cells_of(target_mask, source_mask)
        exact = torch.tensor([self.counts.get(cell, 0) >= minimum for cell in cells])
        if sum(self.counts.values()) < minimum:
            return torch.full(attention.shape[:-2], torch.nan, dtype=torch.float64), exact
        matrices = _Matrices.of(attention, target_mask, source_mask)
        average_of_cell = {cell: self._average(cell, minimum).flatten(1) for cell in set(cells)}
        averages = torch.cat([average_of_cell[cell] for cell in cells], 1)  # (heads, entries)
        typicality = matrices.typicality(averages)  # (heads, samples)
        return typicality.view(attention.shape[:-2]), exact

    def _average(self, cell: Cell, minimum: int) -> Float[Tensor, "heads target source"]:
        """Return the average for a cell, which is computed once for all batches that are judged."""
        if (cell, minimum) not in self._averages:
            n_entries = sum(average.numel() for average in self._averages.values())
            if n_entries > self.heads * MOST_ENTRIES:
                self._averages.clear()
            self._averages[cell, minimum] = self._joined_average(cell, minimum)
        return self._averages[cell, minimum]

    def _joined_average(self, cell: Cell, minimum: int) -> Float[Tensor, "heads target source"]:
        """Return the average of a cell if it has enough samples, or else of the nearest cells."""
        nearest = nearest_cells(cell, self.counts, minimum)
        if nearest == [cell]:
            return self.sum_of(cell) / self.counts[cell]
        matrices = [SummedMatrices(self.sum_of(near).numpy(), self.counts[near]) for near in nearest]
        source, target = cell
        return torch.from_numpy(average_of_sizes(matrices, target, source))
