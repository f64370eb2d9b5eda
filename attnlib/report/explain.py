"""Explain one head in one sentence: the terms of its scores, by name and with the words of both sides."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.heads import Head
from attnlib.analysis.results import Analysis
from attnlib.analysis.samples import Sample
from attnlib.decomposition.term_names import term_name
from attnlib.decomposition.term_sums import TermSums
from attnlib.errors import BadInput, check_known
from attnlib.optional import library
from attnlib.report.as_text import visible
from attnlib.report.contents import SIDES_OF_KIND, Name, words_of
from attnlib.report.tables import pair_of
from attnlib.trace import KINDS

if TYPE_CHECKING:
    from pandas import DataFrame

FRAME_COLUMNS = ("term", "query_part", "key_part", "query", "key", "query_word", "key_word", "value")


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """The terms of one head in one sentence: ``explanation["temporal", "input"]`` is (queries, keys).

    There are nine terms if components are means. With least squares those of the constant part of the query
    are added (and of the key, if positions rotate states), and the position bias of a model that has one.
    Together they are the scores, except for what is the same along a row.

    Attributes:
        kind: of the attention.
        layer: of the attention, from 0.
        head: of the attention, from 0.
        names: of the terms, such as "temporal·input".
        terms: in units of the scores; NaN if a query cannot see a key, or a position is left out, or its word
            was not fitted on.
        attention: the model's, NaN likewise.
        query_words: of the positions.
        key_words: of the positions.

    Example:
        >>> import torch
        >>> explanation = Explanation(
        ...     kind="cross", layer=0, head=0, names=("temporal·temporal",), terms=torch.ones(1, 1, 2),
        ...     attention=torch.full((1, 2), 0.5), query_words=["house"], key_words=["ein", "Haus"],
        ... )
        >>> explanation["temporal", "temporal"].tolist()
        [[1.0, 1.0]]
    """

    kind: str
    layer: int
    head: int
    names: tuple[str, ...]
    terms: Float[Tensor, "terms queries keys"]
    attention: Float[Tensor, "queries keys"]
    query_words: list[str]
    key_words: list[str]

    def __getitem__(self, parts: tuple[str, str] | str) -> Float[Tensor, "queries keys"]:
        """Return a term by the part of the query and that of the key, or by its name.

        Raises:
            UnknownName: there is no such term.
        """
        name = term_name(parts)
        check_known("term", name, self.names)
        return self.terms[self.names.index(name)]

    @property
    def scores(self) -> Float[Tensor, "queries keys"]:
        """The sum of all terms."""
        return self.terms.sum(0)

    @property
    def shares(self) -> dict[str, float]:
        """Covariance shares of the terms within this sentence, by name; NaN if its scores do not vary."""
        fitted = ~self.terms.isnan().any(0)  # (queries, keys)
        terms = self.terms.nan_to_num().double()
        sums = TermSums(self.names).update(terms[None, :, None], fitted[None])
        return dict(zip(self.names, sums.covariance_shares()[0].tolist(), strict=True))

    def table(self, query_part: str, key_part: str) -> "DataFrame":
        """Return a term as a data frame of pandas.

        Args:
            query_part: such as "temporal".
            key_part: such as "input".

        Returns:
            The words of queries down and those of keys across.

        Raises:
            UnknownName: there is no such term.
            BadInput: pandas is not installed.
        """
        values = self[query_part, key_part].numpy()
        frame = library("pandas").DataFrame(values, index=self.query_words, columns=self.key_words)
        return frame.rename_axis(index="query", columns="key")

    def to_frame(self) -> "DataFrame":
        """Return a tidy data frame of pandas: a row for each term, query and key that is not left out.

        Returns:
            Columns :data:`FRAME_COLUMNS`: the ``term``, its ``query_part`` and ``key_part`` (None for a
            position bias), the positions ``query`` and ``key``, from 0, their words, and the ``value``, in
            units of the scores.

        Raises:
            BadInput: pandas is not installed.
        """
        rows = []
        for name, term in zip(self.names, self.terms, strict=True):  # (queries, keys)
            query_part, key_part = pair_of(name)
            for query, key in (~term.isnan()).nonzero().tolist():
                row = {
                    "term": name,
                    "query_part": query_part,
                    "key_part": key_part,
                    "query": query,
                    "key": key,
                    "query_word": self.query_words[query],
                    "key_word": self.key_words[key],
                    "value": float(term[query, key]),
                }
                rows.append(row)
        return library("pandas").DataFrame(rows, columns=FRAME_COLUMNS)

    def __repr__(self) -> str:
        shares = sorted(self.shares.items(), key=_by_share, reverse=True)
        largest = ", ".join(f"{name} {share:.2f}" for name, share in shares[:3])
        sizes = f"{len(self.query_words)} queries, {len(self.key_words)} keys"
        shown_head = f"{self.kind}, layer {self.layer}, head {self.head}"
        return f"Explanation of {shown_head}, {sizes}; the largest shares: {largest}"


def _by_share(item: tuple[str, float]) -> float:
    _, share = item
    return 0.0 if math.isnan(share) else share  # NaN has no place in an order


def explain(
    analysis: Analysis, *, sample: int, layer: int, head: int, kind: str = "cross", name: Name | None = None
) -> Explanation:
    """Return the terms of one head in one of the samples that an analysis keeps.

    Args:
        analysis: of :func:`attnlib.analyse` or :func:`attnlib.report`, which keep samples.
        sample: number of the sample, from 0.
        layer: of the attention, from 0.
        head: of the attention, from 0.
        kind: of the attention.
        name: the word of an id, given "source" or "target" and the id; by default its piece, or the id
            itself if the analysis has no tokenizer.

    Returns:
        The terms with the words of both sides.

    Raises:
        BadInput: there is no such sample, as in an analysis that was read from a report.
        UnknownName: there is no such kind, layer or head.

    Example:
        >>> from attnlib import analyse, zoo
        >>> network = zoo.load("reordering")
        >>> analysis = analyse(network.stream(batch_size=64))
        >>> explanation = explain(analysis, sample=0, layer=1, head=0, name=network.word)
        >>> explanation["temporal", "input"].shape == explanation.scores.shape
        True
    """
    check_known("kind of attention", kind, KINDS)
    n_samples = len(analysis.samples)
    if not n_samples:
        raise BadInput(
            "samples are not stored in a report: explain the analysis that attnlib.analyse or "
            "attnlib.report returned"
        )
    if not 0 <= sample < n_samples:
        raise BadInput(f"sample is {sample}; this analysis holds {n_samples}, counted from 0")
    shown = analysis.samples[sample]
    if shown.words:
        raise BadInput(
            "terms are of pieces, and the pieces of this sample are joined to words: analyse without "
            "words=True"
        )
    _require_head(shown, kind, layer=layer, head=head)
    chosen = Head(f"{kind}.{layer}", head)
    words = words_of(analysis, shown, name)
    query_side, key_side = SIDES_OF_KIND[kind]
    return Explanation(
        kind=kind,
        layer=layer,
        head=head,
        names=shown.term_names[chosen.attention],
        terms=shown.terms[chosen],
        attention=shown.attention[chosen],
        query_words=[visible(word) for word in words[query_side]],
        key_words=[visible(word) for word in words[key_side]],
    )


def _require_head(sample: Sample, kind: str, *, layer: int, head: int) -> None:
    """Raise UnknownName, with the heads that there are, unless a sample has this head."""
    known = []
    for attention, head_of_attention in sample.terms:
        kind_of_attention, layer_of_attention = attention.split(".")
        if kind_of_attention == kind:
            known.append(f"{layer_of_attention}.{head_of_attention}")
    check_known(f"analysed head (layer.head) of {kind}", f"{layer}.{head}", known)
