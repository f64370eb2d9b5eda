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
from warnings import warn

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, Array, Attention, SourceMask, TargetMask, as_tensor, takes_arrays
from attnlib.decomposition.substitution import total_variation
from attnlib.errors import BadInput

MINIMUM_CELL = 30
Cell = tuple[int, int]  # (source length, target length)


@dataclass(frozen=True, eq=False)
class Typicality:
    """`value` is NaN when no cell is large enough; `per_sample` is in the order of judging, NaN where not
    covered."""

    value: float
    coverage: float  # share of samples that stand in a large enough cell
    cells: int
    samples: int
    per_sample: Float[Tensor, " samples"]


class AttentionCells:
    """Sums of attention matrices by cell, so that "the average over the others" is exact without keeping
    samples.

    Two passes over the same samples in constant memory: `update` with every batch, then `judge` with every
    batch (`typicality` does both for matrices that fit in memory).
    """

    def __init__(self) -> None:
        self.sums: dict[Cell, Float[Tensor, "target source"]] = {}
        self.counts: dict[Cell, int] = {}

    @takes_arrays
    def update(
        self, attention: Attention, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "AttentionCells":
        """Add a batch.

        Raises:
            BadInput: masks and attention differ in shape; attention that is not finite.
        """
        for cell, _, matrices in _by_cell(attention, target_mask, source_mask):
            self.sums[cell] = self.sums.get(cell, 0.0) + matrices.sum(0)
            self.counts[cell] = self.counts.get(cell, 0) + len(matrices)
        return self

    def merge(self, other: "AttentionCells") -> "AttentionCells":
        """New sums of both."""
        merged = type(self)()
        for part in (self, other):
            for cell, matrix in part.sums.items():
                merged.sums[cell] = merged.sums.get(cell, 0.0) + matrix
                merged.counts[cell] = merged.counts.get(cell, 0) + part.counts[cell]
        return merged

    __add__ = merge

    def average_attention(self, cell: Cell) -> Float[Tensor, "target source"]:
        """The mean matrix of a cell (source length, target length). Raises BadInput for a cell without
        samples."""
        if cell not in self.counts:
            most = sorted(self.counts, key=self.counts.get, reverse=True)[:5]
            raise BadInput(
                f"No samples of (source length, target length) {cell}; cells with most samples: {most}."
            )
        return self.sums[cell] / self.counts[cell]

    @takes_arrays
    def judge(
        self,
        attention: Attention,
        target_mask: TargetMask = EVERYWHERE,
        source_mask: SourceMask = EVERYWHERE,
        *,
        minimum: int = MINIMUM_CELL,
    ) -> Float[Tensor, " batch"]:
        """Each sample's typicality against the others of its cell; NaN in cells of fewer than `minimum`
        samples.

        The samples must be among those given to `update`: their own matrix is taken out of the sum.

        Raises BadInput for a ``minimum`` below 2.
        """
        if minimum < 2:
            raise BadInput(
                f"minimum={minimum}: a cell needs at least 2 samples for one to be judged by the others."
            )
        values = torch.full((len(attention),), torch.nan, dtype=torch.float64)
        for cell, members, matrices in _by_cell(attention, target_mask, source_mask):
            count = self.counts.get(cell, 0)
            if count >= minimum:
                others = (self.sums[cell] - matrices) / (count - 1)
                values[members] = 1 - total_variation(matrices, others).mean(-1)
        return values

    def result(self, per_sample: Float[Tensor, " samples"], *, minimum: int = MINIMUM_CELL) -> Typicality:
        """Pools what `judge` gave for all batches, concatenated."""
        covered = ~per_sample.isnan()
        samples = len(per_sample)
        return Typicality(
            value=float(per_sample[covered].mean()) if bool(covered.any()) else float("nan"),
            coverage=int(covered.sum()) / samples if samples else float("nan"),
            cells=sum(count >= minimum for count in self.counts.values()),
            samples=samples,
            per_sample=per_sample,
        )


def typicality(matrices: Iterable[Float[Array, "_ _"]], *, minimum: int = MINIMUM_CELL) -> Typicality:
    """Typicality of attention matrices (target, source) without padding, one a sample, of any lengths.

    Warns where it is NaN, since no size has as many matrices as the minimum.

    Raises:
        BadInput: what is no matrix, has no entries, or has rows that do not sum to one; a minimum below 2.

    >>> identity = torch.eye(3)
    >>> typicality([identity] * 30).value
    1.0
    """
    matrices = [as_tensor(matrix, "an attention matrix") for matrix in matrices]
    places: dict[torch.Size, list[int]] = defaultdict(list)  # of the matrices of one shape
    for place, matrix in enumerate(matrices):
        _require_rows_of_one(matrix)
        places[matrix.shape].append(place)
    cells = AttentionCells()
    values = torch.empty(len(matrices), dtype=torch.float64)
    for members in places.values():
        alike = torch.stack([matrices[place].double() for place in members])
        cells.update(alike)
        values[members] = cells.judge(alike, minimum=minimum)
    most = max(cells.counts.values(), default=0)
    if most < minimum:
        warn(f"typicality is NaN: {most} matrices at most are of one size; give {minimum}", stacklevel=2)
    return cells.result(values, minimum=minimum)


def _by_cell(attention: Tensor, target_mask: Tensor, source_mask: Tensor):
    """Yields (cell, members, float64 matrices without padding) for the cells in a batch."""
    batch, target, source = attention.shape
    if tuple(target_mask.shape) != (batch, target) or tuple(source_mask.shape) != (batch, source):
        raise BadInput(
            f"Attention of shape {tuple(attention.shape)} with a target mask of {tuple(target_mask.shape)} "
            f"and a source mask of {tuple(source_mask.shape)}: expected (batch, target) and (batch, source)."
        )
    wrong = ~attention.isfinite() & target_mask[:, :, None] & source_mask[:, None, :]
    if bool(wrong.any()):
        sample = int(wrong.nonzero()[0, 0])
        raise BadInput(f"Attention of sample {sample} is not finite at valid positions: leave it out.")
    lengths = torch.stack((source_mask.sum(1), target_mask.sum(1)), dim=1).cpu()
    for cell in torch.unique(lengths, dim=0):
        members = (lengths == cell).all(1).nonzero()[:, 0]
        here = members.to(attention.device)
        both = target_mask[here][:, :, None] & source_mask[here][:, None, :]
        columns, rows = cell.tolist()
        matrices = attention[here].cpu()[both.cpu()].double().view(len(members), rows, columns)
        yield (columns, rows), members, matrices


def _require_rows_of_one(matrix: Tensor) -> None:
    if matrix.dim() != 2:
        raise BadInput(f"an attention matrix of shape {tuple(matrix.shape)}; expected (target, source)")
    if not matrix.numel():
        raise BadInput(f"an attention matrix of shape {tuple(matrix.shape)} has no entries: leave it out")
    off = float((matrix.double().sum(1) - 1).abs().max())
    if not off <= 0.05 or bool((matrix < 0).any()):  # half precision rounds
        raise BadInput(f"a row is {off:.2g} away from a sum of one, or below 0: give what a softmax returns")
