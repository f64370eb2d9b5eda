"""Substitution test: the attention that a subset of the nine terms builds, against the full one.

    similarity       = 1 - total variation between the two rows of attention, averaged over rows
    argmax agreement = share of rows whose largest entry stands at the same source position

Rows with one valid source position are left out: any subset gets them right. Where the subset's largest entry
is tied (uniform attention: always), agreement counts the share of the tied positions that are largest in the
full row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.components import PART_NAMES
from attnlib.errors import BadInput, check_known

# Rows of attention and of scores under the masks of both sides.

Leading = Float[Tensor, "*lead row source"]
Valid = Bool[Tensor, "row source"]


def valid_rows(
    rows: Float[Tensor, "*lead batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    *,
    at_least: int = 1,
) -> tuple[Leading, Valid]:
    """The rows of valid targets in samples of `at_least` valid source positions, in float64, and their masks.

    Rows come in the order of batch, then target; entries at padding are zero, whatever stood there.
    Raises BadInput where masks and rows differ in shape.
    """
    require_masks(rows, target_mask, source_mask)
    keep = target_mask & (source_mask.sum(1) >= at_least)[:, None]
    valid = source_mask[:, None, :].expand(keep.shape + source_mask.shape[1:])[keep]
    return rows[..., keep, :].double().masked_fill(~valid, 0.0), valid


def require_masks(rows: Float[Tensor, "*lead batch target source"], target: Tensor, source: Tensor) -> None:
    """Raise BadInput where the masks of both sides do not fit the rows."""
    expected = tuple(rows.shape[-3:])
    if tuple(target.shape) != expected[:2] or tuple(source.shape) != (expected[0], expected[2]):
        raise BadInput(
            f"Rows of shape {tuple(rows.shape)} with a target mask of {tuple(target.shape)} and a "
            f"source mask of {tuple(source.shape)}: expected (batch, target) and (batch, source)."
        )


def finite_rows(
    terms: Float[Tensor, "3 3 batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
) -> tuple[Leading, Valid]:
    """The rows of terms with two valid source positions or more, as :func:`valid_rows` has them.

    Raises:
        BadInput: a term at a valid place is not finite; shapes that differ.
    """
    rows, valid = valid_rows(terms, target_mask, source_mask, at_least=2)
    require_finite_terms(terms, target_mask[:, :, None] & source_mask[:, None, :])
    return rows, valid


def require_finite_terms(
    terms: Float[Tensor, "3 3 batch target source"], valid: Bool[Tensor, "batch target source"]
) -> None:
    """Raise BadInput where a term at a valid place is not finite, and name the first such place."""
    if bool(terms.sum().isfinite()):  # then all are
        return
    wrong = ~terms.isfinite().all(0).all(0) & valid
    if bool(wrong.any()):
        sample, target, source = wrong.nonzero()[0].tolist()
        raise BadInput(
            f"Terms that are not finite (first at sample {sample}, target position {target}, source position "
            f"{source}): nothing was added. Has the training diverged?"
        )


def centred(rows: Leading, valid: Valid) -> Leading:
    """Rows minus their mean over valid positions; zero elsewhere. Softmax does not see the difference."""
    mean = rows.sum(-1, keepdim=True) / valid.sum(-1, keepdim=True)
    return (rows - mean).masked_fill(~valid, 0.0)


def total_variation(
    first: Float[Tensor, "*#lead source"], second: Float[Tensor, "*#lead source"]
) -> Float[Tensor, "..."]:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones."""
    return 0.5 * (first - second).abs().sum(-1)


def masked_softmax(rows: Leading, valid: Valid) -> Leading:
    return torch.softmax(rows.masked_fill(~valid, -torch.inf), dim=-1)


Pair = tuple[str, str]  # (decoder part, encoder part)
ALL_PAIRS: frozenset[Pair] = frozenset((decoder, encoder) for decoder in PART_NAMES for encoder in PART_NAMES)

SUBSETS: dict[str, frozenset[Pair]] = {
    "uniform": frozenset(),  # the reference: what a subset must beat
    "temporal_only": frozenset({("temporal", "temporal")}),
    "input_only": frozenset({("input", "input")}),
    "no_residual": frozenset(pair for pair in ALL_PAIRS if "residual" not in pair),
    **{f"without_{d}_{e}": ALL_PAIRS - {(d, e)} for d in PART_NAMES for e in PART_NAMES},
}


@dataclass(frozen=True)
class Substitution:
    """Between 0 and 1, NaN without rows."""

    similarity: float
    argmax_agreement: float
    rows: int


class SubstitutionSums:
    """Streaming sums behind the test, one entry for each named subset of (decoder part, encoder part) pairs.

    Raises UnknownName for a part that is none of `PART_NAMES`.
    """

    def __init__(self, subsets: Mapping[str, Iterable[Pair]] = SUBSETS) -> None:
        self.subsets = {name: frozenset(pairs) for name, pairs in subsets.items()}
        self.weights = torch.zeros(len(self.subsets), 3, 3, dtype=torch.float64)
        for k, pairs in enumerate(self.subsets.values()):
            for pair in pairs:
                self.weights[k, _part(pair[0]), _part(pair[1])] = 1.0
        self.similarity = torch.zeros(len(self.subsets), dtype=torch.float64)
        self.agreement = torch.zeros(len(self.subsets), dtype=torch.float64)
        self.rows = 0

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "SubstitutionSums":
        """Add a batch of alignment terms.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        rows, valid = finite_rows(terms, target_mask, source_mask)
        weights = torch.cat((torch.ones(1, 3, 3), self.weights)).to(rows)  # the full sum first
        scores = torch.einsum("kde,ders->krs", weights, rows)
        attention = masked_softmax(scores, valid)
        similar = 1 - total_variation(attention[1:], attention[0])
        # A word that stands twice in the source is tied but for rounding: that much slack makes it a tie.
        slack = 16 * torch.finfo(terms.dtype).eps * rows.abs().amax((0, 1, 3), keepdim=True)[0]
        best = largest(scores, valid, slack)
        agree = (best[1:] & best[0]).sum(-1) / best[1:].sum(-1)
        self.similarity += similar.sum(-1).cpu()
        self.agreement += agree.sum(-1, dtype=torch.float64).cpu()
        self.rows += len(valid)
        return self

    def merge(self, other: "SubstitutionSums") -> "SubstitutionSums":
        """New sums of both. Raises BadInput when the two hold different subsets."""
        if self.subsets != other.subsets:
            raise BadInput(
                f"Cannot merge substitution sums over {sorted(self.subsets)} with those over "
                f"{sorted(other.subsets)}: make both with the same subsets."
            )
        merged = type(self)(self.subsets)
        order = [list(other.subsets).index(name) for name in self.subsets]
        merged.similarity = self.similarity + other.similarity[order]
        merged.agreement = self.agreement + other.agreement[order]
        merged.rows = self.rows + other.rows
        return merged

    __add__ = merge

    def result(self) -> dict[str, Substitution]:
        rows = self.rows or float("nan")
        return {
            name: Substitution(float(self.similarity[k]) / rows, float(self.agreement[k]) / rows, self.rows)
            for k, name in enumerate(self.subsets)
        }


@takes_arrays
def substitution(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> dict[str, Substitution]:
    """The test on some sentences, by name of a subset; for more than fit into memory, the sums above."""
    return SubstitutionSums().update(terms, target_mask, source_mask).result()


def _part(name: str) -> int:
    check_known("part", name, PART_NAMES)
    return PART_NAMES.index(name)


def largest(
    scores: Leading, valid: Valid, slack: Float[Tensor, "*#lead row 1"]
) -> Bool[Tensor, "*lead row source"]:
    """Where the largest valid entries of each row are, ties within ``slack`` included."""
    scores = scores.masked_fill(~valid, -torch.inf)
    return scores >= scores.amax(-1, keepdim=True) - slack
