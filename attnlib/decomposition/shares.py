"""Shares of the nine alignment terms in the score.

A constant added to a row of scores leaves its softmax unchanged, so every term is first centred over the
valid source positions of its row; rows with one valid position are left out. Then, pooled over the valid
positions of all samples,

    mean absolute share(i, j) = mean |term_ij| / sum over the nine of mean |term|
    covariance share(i, j)    = cov(term_ij, total) / var(total)          (sums to one)

The first compares the sizes of terms; the second is the part of the variation of scores along the source that
a term explains, with its sign. Both are this project's definitions: the available text of Aitken et al. 2021
does not say how terms are weighed. "Temporal share" without further words is the covariance share of temporal
times temporal.

The share of a *part* depends on how the terms of two different parts are counted, such as that of the
temporal part of the query with the residual of the key. With s the covariance shares,

    own share(p)      = s(p, p)
    split share(p)    = s(p, p) + half of s(p, q) + s(q, p) over the other parts q      (sums to one)
    any-term share(p) = s(p, p) + all of s(p, q) + s(q, p)                      (cross terms count twice)
    by side           = sum of s(p, .) for the decoder's part, of s(., p) for the encoder's (each sums to one)

The split share is the Shapley value of the two sides: a product vanishes without either of its factors, so
each factor has half of it. The readings agree where cross terms vanish, and can differ widely where they do
not. The effect of exchanging a part decides between them, see :mod:`attnlib.analysis.interventions`.
"""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.by_part import PART_AXES, ByPart, pooled_parts
from attnlib.decomposition.components import STATE_PARTS
from attnlib.decomposition.rows import ChosenRows, allowed_pairs, centred
from attnlib.decomposition.term_sums import NO_SIGNAL, TermSums, explained_by_row, require_finite_terms
from attnlib.errors import BadInput
from attnlib.optional import library
from attnlib.streaming import StreamingSums

if TYPE_CHECKING:
    from pandas import DataFrame

ByName = dict[str, float]  # by part


@dataclass(frozen=True, kw_only=True)
class PartShares:
    """Shares of the three parts of the states, in several readings, by name of the part; NaN if undefined.

    Attributes:
        own: covariance share of the product of the part with itself, without cross terms.
        split: own share, and half of each cross term of the part. The three sum to one.
        any_term: covariance share of all terms that the part is a factor of; a cross term counts twice.
        decoder: covariance share of all terms with this decoder part. The three sum to one.
        encoder: covariance share of all terms with this encoder part. The three sum to one.
        mean_absolute: mean absolute shares of terms, split as in ``split``. The three sum to one.

    Example:
        >>> terms = torch.zeros(3, 3, 1, 1, 2)
        >>> terms[0, 0] = torch.tensor([3.0, 1.0])
        >>> shares(terms, split="shapley").decoder["temporal"]
        1.0
    """

    own: ByName
    split: ByName
    any_term: ByName
    decoder: ByName
    encoder: ByName
    mean_absolute: ByName

    def __repr__(self) -> str:
        own_shares = ", ".join(f"{part} {share:.2f}" for part, share in self.own.items())
        split_shares = ", ".join(f"{part} {share:.2f}" for part, share in self.split.items())
        return f"PartShares(own: {own_shares}; split: {split_shares})"

    def to_frame(self) -> "DataFrame":
        """Return a pandas data frame with a row for each part, its index, and a column for each reading.

        Raises:
            BadInput: pandas is not installed.
        """
        frame = library("pandas").DataFrame(vars(self))
        return frame.rename_axis(index="part")


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares by decoder part and encoder part, float64; NaN where undefined.

    Attributes:
        mean_absolute: (3, 3), indexed by name as well: ``mean_absolute["temporal", "input"]``.
        covariance: (3, 3), likewise.
        entries: number of valid (target, source) pairs that the shares are of.
        rows: number of valid rows that the shares are of.
        rows_left_out: number of valid rows with a single valid source position.

    Example:
        >>> table = ByPart.of(torch.eye(3) / 3, axes=PART_AXES)
        >>> shares_of_terms = Shares(table, table, entries=8, rows=2, rows_left_out=0)
        >>> round(shares_of_terms.temporal, 3)
        0.333
    """

    mean_absolute: ByPart
    covariance: ByPart
    entries: int
    _: KW_ONLY
    rows: int
    rows_left_out: int

    @property
    def temporal(self) -> float:
        """The covariance share of temporal times temporal."""
        return float(self.covariance[0, 0])

    def of_parts(self) -> PartShares:
        """Return the share of each part: its own share, its split share and others.

        Example:
            >>> covariance = torch.tensor([[0.4, 0.0, 0.2], [0.0, 0.1, 0.0], [0.0, 0.0, 0.3]])
            >>> table = ByPart.of(covariance, axes=PART_AXES)
            >>> parts = Shares(table, table, entries=8, rows=2, rows_left_out=0).of_parts()
            >>> [round(reading["temporal"], 3) for reading in (parts.own, parts.split, parts.any_term)]
            [0.4, 0.5, 0.6]
        """
        decoder = self.covariance.sum(1)  # (parts,)
        encoder = self.covariance.sum(0)  # (parts,)
        pure = self.covariance.diagonal()  # (parts,)
        split = (decoder + encoder) / 2
        any_term = decoder + encoder - pure
        mean_absolute = (self.mean_absolute.sum(1) + self.mean_absolute.sum(0)) / 2  # (parts,)
        return PartShares(
            own=self._by_name(pure),
            split=self._by_name(split),
            any_term=self._by_name(any_term),
            decoder=self._by_name(decoder),
            encoder=self._by_name(encoder),
            mean_absolute=self._by_name(mean_absolute),
        )

    def _by_name(self, values: Float[Tensor, " parts"]) -> ByName:
        return dict(zip(self.covariance.parts, values.tolist(), strict=True))

    def __repr__(self) -> str:
        shares_of_terms = []
        for decoder, row in zip(self.covariance.parts, self.covariance.tolist(), strict=True):
            for encoder, share in zip(self.covariance.parts, row, strict=True):
                shares_of_terms.append((share, f"{decoder}·{encoder}"))
        shares_of_terms.sort(reverse=True)
        largest = ", ".join(f"{term} {share:.3f}" for share, term in shares_of_terms[:3])
        return f"Shares of {self.rows:,} rows, the largest of the covariance: {largest}"

    def to_frame(self) -> "DataFrame":
        """Return a tidy pandas data frame with a row for each term.

        Columns are ``decoder_part``, ``encoder_part``, ``covariance_share`` and ``mean_absolute_share``;
        shares are shares of one.

        Raises:
            BadInput: pandas is not installed.
        """
        frame = self.covariance.to_frame("covariance_share")
        frame["mean_absolute_share"] = self.mean_absolute.flatten().tolist()
        return frame


class ShareSums(StreamingSums):
    """Streaming sums for :func:`shares`: constant memory, mergeable.

    Args:
        pool: parts that count as one, such as ("input", "residual"); none by default. Their terms are added
            up before shares are taken.

    Raises:
        UnknownName: there is no such part.
        BadInput: a single part is pooled.

    Example:
        >>> terms = torch.zeros(3, 3, 1, 1, 2)
        >>> terms[0, 0] = torch.tensor([3.0, 1.0])
        >>> sums = ShareSums().update(terms) + ShareSums().update(terms)
        >>> sums.result().temporal, sums.result().rows
        (1.0, 2)
    """

    SUMS = ("terms",)

    def __init__(self, pool: Collection[str] = ()) -> None:
        self.pool = tuple(pool)
        self.parts = tuple(pooled_parts(STATE_PARTS, self.pool)) if self.pool else STATE_PARTS
        self.terms = TermSums([(decoder, encoder) for decoder in self.parts for encoder in self.parts])

    def settings(self) -> dict[str, Any]:
        """Return the parts that are pooled; sums of others cannot be merged."""
        return {"pool": self.pool}

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "ShareSums":
        """Add a batch of alignment terms, and return these sums.

        Args:
            terms: (3, 3, batch, target, source), as :func:`~attnlib.decomposition.terms.alignment_terms`
                returns them.
            target_mask: True at valid positions, (batch, target), by default everywhere.
            source_mask: True at valid positions, (batch, source), by default everywhere.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        if self.pool:
            axes = (*PART_AXES, "sample", "target", "source")
            terms = ByPart.of(terms, axes=axes).pooled(*self.pool)
        flat_terms = terms.flatten(0, 1)  # (terms, batch, target, source)
        self.terms.update(flat_terms[None], allowed_pairs(terms, target_mask, source_mask))
        return self

    def result(self) -> Shares:
        """Return the shares; NaN if all terms are zero or, for covariance shares, if scores do not vary."""
        return Shares(
            mean_absolute=self._table(self.terms.mean_absolute_shares()),
            covariance=self._table(self.terms.covariance_shares()),
            entries=self.terms.entries,
            rows=self.terms.rows,
            rows_left_out=self.terms.rows_left_out,
        )

    def _table(self, shares: Float[Tensor, "1 terms"]) -> ByPart:
        square = shares[0].view(len(self.parts), len(self.parts))
        return ByPart.of(square, axes=PART_AXES, parts=self.parts)


@overload
def shares(
    terms: Terms, target_mask: TargetMask = ..., source_mask: SourceMask = ..., *, pool: Collection[str] = ...
) -> Shares: ...


@overload
def shares(
    terms: Terms,
    target_mask: TargetMask = ...,
    source_mask: SourceMask = ...,
    *,
    split: Literal["shapley"],
    pool: Collection[str] = ...,
) -> PartShares: ...


@takes_arrays
def shares(
    terms: Terms,
    target_mask: TargetMask = EVERYWHERE,
    source_mask: SourceMask = EVERYWHERE,
    *,
    split: Literal["shapley"] | None = None,
    pool: Collection[str] = (),
) -> Shares | PartShares:
    """Return the shares of the nine terms in the score.

    Use :class:`ShareSums` for more terms than fit into memory.

    Args:
        terms: (3, 3, batch, target, source), as :func:`~attnlib.decomposition.terms.alignment_terms` returns
            them.
        target_mask: True at valid positions, (batch, target), by default everywhere.
        source_mask: True at valid positions, (batch, source), by default everywhere.
        split: "shapley" returns shares of parts, among them split shares, instead of shares of terms.
        pool: parts that count as one, such as ("input", "residual"). The terms are then temporal·temporal,
            temporal·(input+residual) and so on.

    Returns:
        The shares of terms, or with ``split`` those of parts.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite; an unknown
            ``split``; a single part is pooled.
        UnknownName: there is no part of this name.

    Example:
        >>> terms = torch.zeros(3, 3, 1, 1, 2)
        >>> terms[0, 0] = torch.tensor([3.0, 1.0])
        >>> terms[2, 1] = torch.tensor([1.0, 0.0])
        >>> of_terms = shares(terms)
        >>> round(float(of_terms.covariance["temporal", "temporal"]), 3), round(of_terms.temporal, 3)
        (0.667, 0.667)
        >>> parts = shares(terms, split="shapley")
        >>> round(parts.own["input"], 2), round(parts.split["input"], 2)
        (0.0, 0.17)
        >>> float(shares(terms, pool=("input", "residual")).covariance["input+residual", "input+residual"])
        0.3333333333333333
    """
    if split not in (None, "shapley"):
        raise BadInput(f"split is {split!r}; expected 'shapley', or None for the shares of terms")
    of_terms = ShareSums(pool).update(terms, target_mask, source_mask).result()
    if split is None:
        return of_terms
    return of_terms.of_parts()


@takes_arrays
def covariance_shares_by_sample(
    terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
) -> ByPart:
    """Return the covariance shares within each sample, pooled over its rows, float64.

    Args:
        terms: (3, 3, batch, target, source).
        target_mask: True at valid positions, (batch, target), by default everywhere.
        source_mask: True at valid positions, (batch, source), by default everywhere.

    Returns:
        (batch, 3, 3), indexed by name as well: ``shares[:, "temporal", "temporal"]``. NaN if the scores of a
        sample do not vary, as with a single valid source position.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite.
    """
    allowed = allowed_pairs(terms, target_mask, source_mask)
    require_finite_terms(terms, allowed)
    chosen = ChosenRows.of(allowed)
    values = chosen.values(terms.flatten(0, 1))  # (9, row, source)
    rows = centred(values.double(), chosen.valid)
    explained = chosen.by_sample(explained_by_row(rows))  # (9, batch)
    squares = chosen.by_sample(rows.square().sum((0, 2)))  # (batch,)
    variance = explained.sum(0)  # (batch,)
    variance = variance.where(variance > NO_SIGNAL * squares, torch.nan)
    by_sample = (explained / variance).T  # (batch, 9)
    return ByPart.of(by_sample.reshape(-1, 3, 3).cpu(), axes=("sample", *PART_AXES))
