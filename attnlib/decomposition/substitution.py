"""Substitution test: the attention that a subset of the nine terms builds, against the full one.

    similarity       = 1 - total variation between the two rows of attention, averaged over rows
    argmax agreement = share of rows whose largest entry stands at the same source position

Rows with one valid source position are left out: any subset gets them right. Where the subset's largest entry
is tied (uniform attention: always), agreement counts the share of the tied positions that are largest in the
full row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.components import PART_NAMES
from attnlib.decomposition.rows import ChosenRows, allowed_pairs, softmax_of_rows, total_variation
from attnlib.decomposition.term_sums import TermSums, require_finite_terms
from attnlib.decomposition.terms import PAIRS, Pair
from attnlib.errors import check_known
from attnlib.streaming import StreamingSums

ALL_PAIRS: frozenset[Pair] = frozenset(PAIRS)

SUBSETS: dict[str, frozenset[Pair]] = {
    "uniform": frozenset(),  # the reference: what a subset must beat
    "temporal_only": frozenset({("temporal", "temporal")}),
    "input_only": frozenset({("input", "input")}),
    "no_residual": frozenset(pair for pair in ALL_PAIRS if "residual" not in pair),
    **{f"without_{decoder}_{encoder}": ALL_PAIRS - {(decoder, encoder)} for decoder, encoder in PAIRS},
}


@dataclass(frozen=True)
class Substitution:
    """Between 0 and 1, NaN without rows."""

    similarity: float
    argmax_agreement: float
    rows: int


class SubstitutionSums(StreamingSums):
    """Streaming sums behind the test, a view of :class:`~attnlib.decomposition.term_sums.TermSums`.

    Args:
        subsets: by name, pairs of (decoder part, encoder part).

    Raises:
        UnknownName: a part is none of `PART_NAMES`.
    """

    SUMS = ("terms",)

    def __init__(self, subsets: Mapping[str, Iterable[Pair]] = SUBSETS) -> None:
        self.subsets = {name: _known_pairs(pairs) for name, pairs in subsets.items()}
        self.terms = TermSums(PAIRS, dict(sorted(self.subsets.items())))

    def settings(self) -> dict[str, Any]:
        """Return the subsets; sums of others cannot be merged."""
        return {"subsets": self.subsets}

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "SubstitutionSums":
        """Add a batch of alignment terms, and return these sums.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        self.terms.update(terms.flatten(0, 1)[None], allowed_pairs(terms, target_mask, source_mask))
        return self

    def result(self) -> dict[str, Substitution]:
        """Return the outcome by name of a subset."""
        shares = self.terms.result()
        return {
            name: Substitution(shares.similarity[name], shares.agreement[name], shares.rows)
            for name in self.subsets
        }


@takes_arrays
def substitution(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> dict[str, Substitution]:
    """Return the outcome by name of a subset; for more than fit into memory there are the sums above.

    Args:
        terms: (3, 3, batch, target, source), of :func:`~attnlib.decomposition.terms.alignment_terms`.
        target_mask: True at valid positions, by default everywhere.
        source_mask: the same of the source.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
    """
    return SubstitutionSums().update(terms, target_mask, source_mask).result()


@takes_arrays
def similarity_by_sample(
    terms: Terms, target_mask: TargetMask, source_mask: SourceMask, *, pairs: Iterable[Pair]
) -> Float[Tensor, " batch"]:
    """Return the similarity of the attention that some pairs build, mean over the rows of each sample.

    NaN for a sample with a single valid source position.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        UnknownName: a part is none of `PART_NAMES`.
    """
    allowed = allowed_pairs(terms, target_mask, source_mask)
    require_finite_terms(terms, allowed)
    chosen = ChosenRows.of(allowed)
    rows = chosen.values(terms.flatten(0, 1)).double()  # (9, row, source)
    chosen_pairs = _known_pairs(pairs)
    kept = [place for place, pair in enumerate(PAIRS) if pair in chosen_pairs]
    full = softmax_of_rows(rows.sum(0), chosen.valid)  # (row, source)
    rebuilt = softmax_of_rows(rows[kept].sum(0), chosen.valid)  # (row, source)
    similarity = chosen.by_sample(1 - total_variation(rebuilt, full))  # (batch,)
    return (similarity / chosen.counts()).cpu()  # 0 / 0 is NaN: no row


def _known_pairs(pairs: Iterable[Pair]) -> frozenset[Pair]:
    chosen = frozenset(pairs)
    for pair in chosen:
        for part in pair:
            check_known("part", part, PART_NAMES)
    return chosen
