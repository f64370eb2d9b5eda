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

What a *part* carries depends on what is done with the terms of two different parts, such as the temporal part
of the query by the residual of the key. With s the covariance shares,

    own share(p)      = s(p, p)
    split share(p)    = s(p, p) + half of s(p, q) + s(q, p) over the other parts q      (sums to one)
    any-term share(p) = s(p, p) + all of s(p, q) + s(q, p)                      (cross terms count twice)
    by side           = sum of s(p, .) for the decoder's part, of s(., p) for the encoder's (each sums to one)

The split share is the Shapley value of the two sides: a product is lost without either of its factors, so
each of them has half of it. The readings agree where cross terms vanish, and can be far apart where they do
not. How far attention moves when the part is exchanged decides between them:
:mod:`attnlib.analysis.interventions`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import EVERYWHERE, SourceMask, TargetMask, Terms, takes_arrays
from attnlib.decomposition.by_part import PART_AXES, ByPart, pooled_parts
from attnlib.decomposition.components import PART_NAMES
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
    """What each part of the states carries, in several readings, by name of the part; NaN where undefined.

    Attributes:
        own: covariance share of the part's product with itself. The three leave out all cross terms.
        split: own, and half of each term that the part is one side of. The three sum to one.
        any_term: covariance share of all terms that the part is a side of. A term of two parts counts twice.
        decoder: covariance share of all terms with this decoder part. The three sum to one.
        encoder: covariance share of all terms with this encoder part. The three sum to one.
        mean_absolute: mean absolute shares of terms, split as in ``split``. The three sum to one.
    """

    own: ByName
    split: ByName
    any_term: ByName
    decoder: ByName
    encoder: ByName
    mean_absolute: ByName

    def __repr__(self) -> str:
        readings = {"own": self.own, "split": self.split}
        shown = []
        for reading, values in readings.items():
            numbers = ", ".join(f"{part} {share:.2f}" for part, share in values.items())
            shown.append(f"{reading}: {numbers}")
        return f"PartShares({'; '.join(shown)})"

    def to_frame(self) -> "DataFrame":
        """Return a data frame of pandas with a row a part, indexed by it, and a column a reading.

        Raises:
            BadInput: pandas is not installed.
        """
        frame = library("pandas").DataFrame(vars(self))
        return frame.rename_axis(index="part")


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares by decoder part and encoder part, float64; NaN where undefined.

    Attributes:
        mean_absolute: (3, 3), by name as well: ``mean_absolute["temporal", "input"]``.
        covariance: (3, 3), likewise.
        entries: valid (target, source) pairs that went in.
        rows: valid rows that went in.
        rows_left_out: valid rows with a single valid source position.
    """

    mean_absolute: ByPart
    covariance: ByPart
    entries: int
    rows: int
    rows_left_out: int

    @property
    def temporal(self) -> float:
        """The covariance share of temporal times temporal."""
        return float(self.covariance[0, 0])

    def of_parts(self) -> PartShares:
        """Return what each part carries: its own share beside its split share and others.

        >>> covariance = torch.tensor([[0.4, 0.0, 0.2], [0.0, 0.1, 0.0], [0.0, 0.0, 0.3]])
        >>> table = ByPart.of(covariance, axes=PART_AXES)
        >>> parts = Shares(table, table, entries=8, rows=2, rows_left_out=0).of_parts()
        >>> [round(reading["temporal"], 3) for reading in (parts.own, parts.split, parts.any_term)]
        [0.4, 0.5, 0.6]
        """
        decoder = self.covariance.sum(1)  # (parts,)
        encoder = self.covariance.sum(0)  # (parts,)
        own = self.covariance.diagonal()  # (parts,)
        absolute = (self.mean_absolute.sum(1) + self.mean_absolute.sum(0)) / 2  # (parts,)
        return PartShares(
            own=self._by_name(own),
            split=self._by_name((decoder + encoder) / 2),
            any_term=self._by_name(decoder + encoder - own),
            decoder=self._by_name(decoder),
            encoder=self._by_name(encoder),
            mean_absolute=self._by_name(absolute),
        )

    def _by_name(self, values: Float[Tensor, " parts"]) -> ByName:
        return dict(zip(self.covariance.parts, values.tolist(), strict=True))

    def __repr__(self) -> str:
        pairs = (
            f"{decoder}·{encoder}" for decoder in self.covariance.parts for encoder in self.covariance.parts
        )
        terms = sorted(zip(self.covariance.flatten().tolist(), pairs, strict=True), reverse=True)
        largest = ", ".join(f"{pair} {share:.3f}" for share, pair in terms[:3])
        return f"Shares of {self.rows:,} rows, the largest of the covariance: {largest}"

    def to_frame(self) -> "DataFrame":
        """Return a tidy data frame of pandas, a row a term.

        Columns: ``decoder_part``, ``encoder_part``, ``covariance_share`` and ``mean_absolute_share``, both
        as a share of one.

        Raises:
            BadInput: pandas is not installed.
        """
        frame = self.covariance.to_frame("covariance_share")
        frame["mean_absolute_share"] = self.mean_absolute.flatten().tolist()
        return frame


class ShareSums(StreamingSums):
    """Streaming sums behind :class:`Shares`, a view of :class:`TermSums`: constant memory, mergeable.

    Args:
        pool: parts that count as one, such as ("input", "residual"); none by default. Their terms are added
            up before shares are taken.

    Raises:
        UnknownName: there is no such part.
        BadInput: a single part is pooled.
    """

    SUMS = ("terms",)

    def __init__(self, pool: Collection[str] = ()) -> None:
        self.pool = tuple(pool)
        self.parts = tuple(pooled_parts(PART_NAMES, self.pool)) if self.pool else PART_NAMES
        self.terms = TermSums([(decoder, encoder) for decoder in self.parts for encoder in self.parts])

    def settings(self) -> dict[str, Any]:
        """Return the parts that are pooled; sums of others cannot be merged."""
        return {"pool": self.pool}

    @takes_arrays
    def update(
        self, terms: Terms, target_mask: TargetMask = EVERYWHERE, source_mask: SourceMask = EVERYWHERE
    ) -> "ShareSums":
        """Add a batch of alignment terms, and return these sums.

        Raises:
            BadInput: masks and terms differ in shape; a term at a valid place is not finite.
        """
        if self.pool:
            axes = (*PART_AXES, "sample", "target", "source")
            terms = ByPart.of(terms, axes=axes).pooled(*self.pool)
        self.terms.update(terms.flatten(0, 1)[None], allowed_pairs(terms, target_mask, source_mask))
        return self

    def result(self) -> Shares:
        """Return the shares; NaN where all terms are zero, or (covariance) scores do not vary."""
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
    """Return the shares of the nine terms; for more than fit into memory there is :class:`ShareSums`.

    Args:
        terms: (3, 3, batch, target, source), of :func:`~attnlib.decomposition.terms.alignment_terms`.
        target_mask: True at valid positions, by default everywhere.
        source_mask: the same of the source.
        split: "shapley" returns the shares of parts, which include split shares, in place of those of terms.
        pool: parts that count as one, such as ("input", "residual"), all that is not temporal. The terms are
            then temporal·temporal, temporal·(input+residual) and so on.

    Returns:
        The shares of terms, or with ``split`` those of parts.

    Raises:
        BadInput: masks and terms differ in shape; a term at a valid place is not finite; another ``split``; a
            single part is pooled.
        UnknownName: there is no part of this name.

    >>> terms = torch.zeros(3, 3, 1, 1, 2)
    >>> terms[0, 0] = torch.tensor([3.0, 1.0])
    >>> terms[2, 1] = torch.tensor([1.0, 0.0])
    >>> found = shares(terms)
    >>> round(float(found.covariance["temporal", "temporal"]), 3), round(found.temporal, 3)
    (0.667, 0.667)
    >>> shares(terms, split="shapley")
    PartShares(own: temporal 0.67, input 0.00, residual 0.00; split: temporal 0.67, input 0.17, residual 0.17)
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

    Returns:
        (batch, 3, 3), by name as well: ``shares[:, "temporal", "temporal"]``. NaN where the scores of a
        sample do not vary, as with a single valid source position.

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
    of_samples = (explained / variance).T.reshape(-1, 3, 3).cpu()
    return ByPart.of(of_samples, axes=("sample", *PART_AXES))
