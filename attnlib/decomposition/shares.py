"""How much of the score each of the nine alignment terms carries (DESIGN.md, Shares 1 and 2).

A constant added to a row of scores leaves its softmax unchanged, so every term is first centred over the
valid source positions of its row; rows with one valid position are left out. Then, pooled over the valid
positions of all samples,

    mean absolute share(i, j) = mean |term_ij| / sum over the nine of mean |term|
    covariance share(i, j)    = cov(term_ij, total) / var(total)          (sums to one)

The first is how Aitken et al. 2021 (contribution 1) look at terms; the second says how much of the variation
of the scores along the source a term explains, with its sign. "Temporal share" without more words is the
covariance share of temporal times temporal.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.decomposition.rows import centred, valid_rows

# Below this share of the terms' own variance the total is rounding noise around zero, not a signal.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
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

    def update(
        self,
        terms: Float[Tensor, "3 3 batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "ShareSums":
        """Adds a batch of alignment terms. Raises BadInput where masks and terms differ in shape."""
        rows, valid = valid_rows(terms, target_mask, source_mask, at_least=2)
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
