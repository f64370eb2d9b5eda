"""How much of the score each of the nine alignment terms carries.

A constant added to a row of scores leaves its softmax unchanged, so every term is first centred over the
valid source positions of its row; rows with one valid position are left out. Then, pooled over the valid
positions of all samples,

    mean absolute share(i, j) = mean |term_ij| / sum over the nine of mean |term|
    covariance share(i, j)    = cov(term_ij, total) / var(total)          (sums to one)

The first looks at the size of terms alone; the second says how much of the variation of the scores along the
source a term explains, with its sign. Both are ours: the available text of Aitken et al. 2021 does not say
how terms are weighed. "Temporal share" without more words is the
covariance share of temporal times temporal.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.substitution import (
    Pair,
    SubstitutionSums,
    centred,
    finite_rows,
    require_finite_terms,
    require_masks,
    total_variation,
)

# Below this share of the terms' own variance the total is rounding noise around zero, not a signal.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares as [decoder part, encoder part] in the order of `PART_NAMES`, float64; NaN where undefined."""

    mean_absolute: Float[Tensor, "3 3"]
    covariance: Float[Tensor, "3 3"]
    entries: int  # valid (target, source) pairs that went in
    rows: int
    rows_left_out: int  # valid rows with a single valid source position

    @property
    def temporal(self) -> float:
        """The covariance share of temporal times temporal."""
        return float(self.covariance[0, 0])


class ShareSums:
    """Streaming sums behind `Shares`: constant memory, mergeable."""

    def __init__(self) -> None:
        self.absolute = torch.zeros(3, 3, dtype=torch.float64)
        self.product = torch.zeros(3, 3, dtype=torch.float64)  # of term and total
        self.square = torch.zeros(3, 3, dtype=torch.float64)
        self.total_square = 0.0
        self.entries = 0
        self.rows = 0
        self.rows_left_out = 0

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "ShareSums":
        """Add a batch of alignment terms.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        rows, valid = finite_rows(terms, target_mask, source_mask)
        rows = centred(rows, valid)  # (3, 3, row, source); centred, so covariances are mean products
        total = rows.sum((0, 1))
        self.absolute += rows.abs().sum((2, 3)).cpu()
        self.product += (rows * total).sum((2, 3)).cpu()
        self.square += rows.square().sum((2, 3)).cpu()
        self.total_square += float(total.square().sum())
        self.entries += int(valid.sum())
        self.rows += len(valid)
        self.rows_left_out += int(target_mask.sum()) - len(valid)
        return self

    def merge(self, other: "ShareSums") -> "ShareSums":
        """New sums of both; the arguments stay as they are."""
        merged = type(self)()
        for name in vars(merged):
            setattr(merged, name, getattr(self, name) + getattr(other, name))
        return merged

    __add__ = merge

    def result(self) -> Shares:
        """NaN shares where there is nothing to share: no rows, all terms zero, or (covariance) no
        variance."""
        undefined = torch.full((3, 3), torch.nan, dtype=torch.float64)
        absolute = self.absolute / self.absolute.sum() if self.absolute.sum() > 0 else undefined
        varies = self.total_square > _NO_VARIANCE * float(self.square.sum())
        covariance = self.product / self.total_square if varies else undefined
        return Shares(absolute, covariance, self.entries, self.rows, self.rows_left_out)


@takes_arrays
def shares(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> Shares:
    """Shares of the nine terms of some sentences; for more than fit into memory, :class:`ShareSums`.

    >>> terms = torch.zeros(3, 3, 1, 1, 2)
    >>> terms[0, 0] = torch.tensor([3.0, 1.0])
    >>> terms[2, 1] = torch.tensor([1.0, 0.0])
    >>> round(shares(terms).temporal, 3)
    0.667
    """
    return ShareSums().update(terms, target_mask, source_mask).result()


# The shares and the substitution test for single samples: the same definitions, pooled over the rows of one
# sample instead of all. Samples with a single valid source position have neither.


@takes_arrays
def covariance_shares_by_sample(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> Float[Tensor, "batch 3 3"]:
    """Covariance shares of the nine terms within each sample, float64; NaN where its scores do not vary.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
    """
    require_masks(terms, target_mask, source_mask)
    keep = target_mask[:, :, None] & source_mask[:, None, :]  # (batch, target, source)
    require_finite_terms(terms, keep)
    counts = source_mask.sum(1).clamp(min=1)[:, None, None]
    values = terms.double().masked_fill(~keep, 0)
    values = (values - values.sum(-1, keepdim=True) / counts).masked_fill(~keep, 0)
    total = values.sum((0, 1))
    variance = total.square().sum((1, 2))
    own = values.square().sum((0, 1, 3, 4))
    shares = torch.einsum("debts,bts->bde", values, total) / variance[:, None, None]
    return shares.masked_fill((variance <= 1e-12 * own)[:, None, None], torch.nan).cpu()


@takes_arrays
def similarity_by_sample(
    terms: Terms, target_mask: TargetMask, source_mask: SourceMask, pairs: Iterable[Pair]
) -> Float[Tensor, " batch"]:
    """1 − total variation between attention from some terms and from all, mean over a sample's rows.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
    """
    rows, valid = finite_rows(terms, target_mask, source_mask)
    weights = SubstitutionSums({"some": pairs}).weights[0].to(rows)
    some, full = (
        torch.softmax(scores.masked_fill(~valid, -torch.inf), dim=-1)
        for scores in (torch.einsum("de,ders->rs", weights, rows), rows.sum((0, 1)))
    )
    several = target_mask & (source_mask.sum(1) >= 2)[:, None]
    sample = several.nonzero()[:, 0]
    sums = torch.zeros(len(target_mask), dtype=torch.float64, device=rows.device)
    sums.index_add_(0, sample, 1 - total_variation(some, full))
    return (sums / several.sum(1)).cpu()  # 0 / 0 is NaN: no row
