"""Substitution test: compare the attention that a subset of the nine terms rebuilds with the full one.

    similarity       = 1 - total variation between the two rows of attention, averaged over rows
    argmax agreement = share of rows whose largest entry is at the same source position

Rows with one valid source position are left out: any subset rebuilds them. Where the largest entry of the
subset is tied (with uniform attention it always is), agreement is the share of the tied positions that are
largest in the full row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.components import STATE_PARTS
from attnlib.decomposition.rows import ChosenRows, allowed_pairs, attention_of_terms, total_variation
from attnlib.decomposition.term_names import NINE, subsets
from attnlib.decomposition.term_sums import TermSums, require_finite_terms
from attnlib.decomposition.terms import PAIRS, Pair
from attnlib.errors import check_known
from attnlib.softmax import softmax_over
from attnlib.streaming import StreamingSums

ALL_PAIRS: frozenset[Pair] = frozenset(PAIRS)


def _subsets_of_pairs() -> dict[str, frozenset[Pair]]:
    """Return the subsets of the nine terms as pairs of parts, by names that can be columns of a table."""
    subsets_of_pairs = {}
    for name, terms in subsets(NINE).items():
        column = name.replace(" ", "_").replace("·", "_")
        pairs = [pair for pair, term in zip(PAIRS, NINE, strict=True) if term in terms]
        subsets_of_pairs[column] = frozenset(pairs)
    return subsets_of_pairs


#: the subsets of terms that attention is rebuilt from, as pairs (decoder part, encoder part), by name:
#: ``uniform``, which has none and which the others must beat, ``temporal_only``, ``input_only``,
#: ``no_residual``, and ``without_temporal_temporal`` and so on, which lack one term each
SUBSETS = _subsets_of_pairs()


@dataclass(frozen=True)
class Substitution:
    """Quality of the attention that a subset of terms rebuilds.

    Attributes:
        similarity: 1 − mean total variation from the full attention, from 0 to 1; NaN without rows.
        argmax_agreement: share of rows whose largest entry is at the same position; NaN without rows.
        rows: number of rows compared.

    Example:
        >>> Substitution(similarity=0.9, argmax_agreement=1.0, rows=12).similarity
        0.9
    """

    similarity: float
    argmax_agreement: float
    rows: int


class SubstitutionSums(StreamingSums):
    """Streaming sums for :func:`substitution`: constant memory, mergeable.

    Args:
        subsets: the pairs (decoder part, encoder part) of each subset of terms, by name of the subset.

    Raises:
        UnknownName: a part is not one of `STATE_PARTS`.

    Example:
        >>> import torch
        >>> terms = torch.zeros(3, 3, 1, 1, 2)
        >>> terms[0, 0] = torch.tensor([3.0, 1.0])
        >>> sums = SubstitutionSums().update(terms) + SubstitutionSums().update(terms)
        >>> sums.result()["temporal_only"]
        Substitution(similarity=1.0, argmax_agreement=1.0, rows=2)
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

        Args:
            terms: (3, 3, batch, target, source), as :func:`~attnlib.decomposition.terms.alignment_terms`
                returns them.
            target_mask: True at valid positions, (batch, target), by default everywhere.
            source_mask: True at valid positions, (batch, source), by default everywhere.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        nine_terms = terms.flatten(0, 1)  # (9, batch, target, source)
        self.terms.update(nine_terms[None], allowed_pairs(terms, target_mask, source_mask))
        return self

    def result(self) -> dict[str, Substitution]:
        """Return how well each subset rebuilds attention, by its name."""
        shares = self.terms.result()
        results = {}
        for name in self.subsets:
            results[name] = Substitution(
                similarity=shares.similarity[name], argmax_agreement=shares.agreement[name], rows=shares.rows
            )
        return results


@takes_arrays
def substitution(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> dict[str, Substitution]:
    """Return how well each of :data:`SUBSETS` of the nine terms rebuilds attention.

    Use :class:`SubstitutionSums` for more terms than fit into memory.

    Args:
        terms: (3, 3, batch, target, source), as :func:`~attnlib.decomposition.terms.alignment_terms` returns
            them.
        target_mask: True at valid positions, (batch, target), by default everywhere.
        source_mask: True at valid positions, (batch, source), by default everywhere.

    Returns:
        the results by name of the subset.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.

    Example:
        >>> import torch
        >>> terms = torch.zeros(3, 3, 1, 1, 2)
        >>> terms[0, 0] = torch.tensor([3.0, 1.0])
        >>> results = substitution(terms)
        >>> results["temporal_only"].similarity, round(results["input_only"].similarity, 3)
        (1.0, 0.619)
    """
    return SubstitutionSums().update(terms, target_mask, source_mask).result()


@takes_arrays
def similarity_by_sample(
    terms: Terms, target_mask: TargetMask, source_mask: SourceMask, *, pairs: Iterable[Pair]
) -> Float[Tensor, " batch"]:
    """Return the similarity of attention rebuilt from a subset of terms, averaged over rows of each sample.

    Args:
        terms: (3, 3, batch, target, source).
        target_mask: True at valid positions, (batch, target).
        source_mask: True at valid positions, (batch, source).
        pairs: (decoder part, encoder part) of each term of the subset.

    Returns:
        a similarity from 0 to 1 for each sample; NaN for a sample with a single valid source position.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        UnknownName: a part is not one of `STATE_PARTS`.
    """
    allowed = allowed_pairs(terms, target_mask, source_mask)
    require_finite_terms(terms, allowed)
    chosen = ChosenRows.of(allowed)
    rows = chosen.values(terms.flatten(0, 1)).double()  # (9, row, source)
    chosen_pairs = _known_pairs(pairs)
    subset = [number for number, pair in enumerate(PAIRS) if pair in chosen_pairs]
    full = softmax_over(rows.sum(0), chosen.valid)  # (row, source)
    rebuilt = attention_of_terms(rows, subset, chosen.valid)  # (row, source)
    similarity = chosen.by_sample(1 - total_variation(rebuilt, full))  # (batch,)
    return (similarity / chosen.counts()).cpu()  # 0 / 0 is NaN: no row


def _known_pairs(pairs: Iterable[Pair]) -> frozenset[Pair]:
    chosen = frozenset(pairs)
    for pair in chosen:
        for part in pair:
            check_known("part", part, STATE_PARTS)
    return chosen
