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

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.rows import ChosenRows, allowed_pairs, centred
from attnlib.decomposition.term_sums import NO_SIGNAL, TermSums, explained_by_row, require_finite_terms
from attnlib.decomposition.terms import PAIRS
from attnlib.streaming import StreamingSums


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


class ShareSums(StreamingSums):
    """Streaming sums behind :class:`Shares`, a view of :class:`TermSums`: constant memory, mergeable."""

    SUMS = ("terms",)

    def __init__(self) -> None:
        self.terms = TermSums(PAIRS)

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "ShareSums":
        """Add a batch of alignment terms, and return these sums.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        self.terms.update(terms.flatten(0, 1)[None], allowed_pairs(terms, target_mask, source_mask))
        return self

    def result(self) -> Shares:
        """Return the shares; NaN where all terms are zero, or (covariance) scores do not vary."""
        return Shares(
            mean_absolute=self.terms.mean_absolute_shares()[0].view(3, 3),
            covariance=self.terms.covariance_shares()[0].view(3, 3),
            entries=self.terms.entries,
            rows=self.terms.rows,
            rows_left_out=self.terms.rows_left_out,
        )


@takes_arrays
def shares(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> Shares:
    """Return the shares of the nine terms; for more than fit into memory there is :class:`ShareSums`.

    Args:
        terms: (3, 3, batch, target, source), of :func:`~attnlib.decomposition.terms.alignment_terms`.
        target_mask, source_mask: True at valid positions, by default everywhere.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.

    >>> terms = torch.zeros(3, 3, 1, 1, 2)
    >>> terms[0, 0] = torch.tensor([3.0, 1.0])
    >>> terms[2, 1] = torch.tensor([1.0, 0.0])
    >>> round(shares(terms).temporal, 3)
    0.667
    """
    return ShareSums().update(terms, target_mask, source_mask).result()


@takes_arrays
def covariance_shares_by_sample(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> Float[Tensor, "batch 3 3"]:
    """Return the covariance shares within each sample, pooled over its rows, float64.

    NaN where the scores of a sample do not vary, as with a single valid source position.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
    """
    allowed = allowed_pairs(terms, target_mask, source_mask)
    require_finite_terms(terms, allowed)
    chosen = ChosenRows.of(allowed)
    rows = centred(chosen.values(terms.flatten(0, 1)).double(), chosen.valid)  # (9, row, source)
    explained = chosen.by_sample(explained_by_row(rows))  # (9, batch)
    squares = chosen.by_sample(rows.square().sum((0, 2)))  # (batch,)
    variance = explained.sum(0)  # (batch,)
    variance = variance.where(variance > NO_SIGNAL * squares, torch.nan)
    return (explained / variance).T.reshape(-1, 3, 3).cpu()
