"""The terms of one head's scores in one sentence, by name and with the words of both sides."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.results import Analysis
from attnlib.analysis.terms import term_name
from attnlib.decomposition.term_sums import TermSums
from attnlib.errors import BadInput, check_known
from attnlib.optional import library
from attnlib.report.as_text import visible
from attnlib.report.contents import SIDES, Name, id_as_word, words_of
from attnlib.report.tables import pair_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """The terms of one head in one sentence: ``explanation["temporal", "input"]`` is (queries, keys).

    Nine terms where components are means; with least squares those of the constant part of the query (and of
    the key, where positions rotate states), and the position bias of a model that has one. Together they
    are the scores, but for what is the same along a row.

    Attributes:
        kind, layer, head: of the attention.
        names: of the terms, such as "temporal·input".
        terms: NaN where a query cannot see a key, a place is left out, or its word was not fitted on.
        attention: the model's, NaN likewise.
        query_words, key_words: of the places.
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
        """Covariance shares of the terms within this sentence, by name; NaN where its scores do not vary."""
        fitted = ~self.terms.isnan().any(0)  # (queries, keys)
        terms = self.terms.nan_to_num().double()
        sums = TermSums(self.names).update(terms[None, :, None], fitted[None])
        return dict(zip(self.names, sums.covariance_shares()[0].tolist(), strict=True))

    def table(self, query_part: str, key_part: str) -> "DataFrame":
        """Return a term as a data frame of pandas, the words of queries down and those of keys across.

        Raises:
            UnknownName: there is no such term.
            BadInput: pandas is not installed.
        """
        values = self[query_part, key_part].numpy()
        frame = library("pandas").DataFrame(values, index=self.query_words, columns=self.key_words)
        return frame.rename_axis(index="query", columns="key")

    def to_frame(self) -> "DataFrame":
        """Return a tidy data frame of pandas: a row for each term, query and key that is not left out.

        Columns: ``term``, ``query_part`` and ``key_part`` (None for a position bias), the places ``query``
        and ``key`` from 0, their words, and ``value`` in units of the scores.

        Raises:
            BadInput: pandas is not installed.
        """
        numbers, queries, keys = (~self.terms.isnan()).nonzero().unbind(1)
        names = [self.names[number] for number in numbers.tolist()]
        pairs = [pair_of(name) for name in names]
        columns = {
            "term": names,
            "query_part": [query for query, _ in pairs],
            "key_part": [key for _, key in pairs],
            "query": queries.tolist(),
            "key": keys.tolist(),
            "query_word": [self.query_words[place] for place in queries.tolist()],
            "key_word": [self.key_words[place] for place in keys.tolist()],
            "value": self.terms[numbers, queries, keys].tolist(),
        }
        return library("pandas").DataFrame(columns)

    def __repr__(self) -> str:
        shares = sorted(self.shares.items(), key=_by_share, reverse=True)
        largest = ", ".join(f"{name} {share:.2f}" for name, share in shares[:3])
        sizes = f"{len(self.query_words)} queries, {len(self.key_words)} keys"
        place = f"{self.kind}, layer {self.layer}, head {self.head}"
        return f"Explanation of {place}, {sizes}; the largest shares: {largest}"


def _by_share(named: tuple[str, float]) -> float:
    _, share = named
    return 0.0 if math.isnan(share) else share  # NaN has no place in an order


def explain(
    analysis: Analysis, *, sample: int, layer: int, head: int, kind: str = "cross", name: Name | None = None
) -> Explanation:
    """Return the terms of one head in a stored sample.

    Args:
        analysis: has some judged samples.
        sample: number of the sample, from 0.
        layer: of the attention, from 0.
        head: of the attention, from 0.
        kind: of the attention.
        name: the word of an id, given "source" or "target" and the id; the id itself by default.

    Raises:
        BadInput: there is no such sample, as in an analysis that was read from a report.
        UnknownName: there is no such kind, layer or head.
    """
    check_known("kind of attention", kind, KINDS)
    n_held = len(analysis.samples)
    if not 0 <= sample < n_held:
        raise BadInput(
            f"sample is {sample}; this analysis holds {n_held}, counted from 0. Samples are "
            "kept by analyse and report alone: a report that is read again has none"
        )
    shown = analysis.samples[sample]
    if shown.words:
        raise BadInput(
            "terms are of pieces, and the pieces of this sample are joined to words: analyse without "
            "words=True"
        )
    place = (f"{kind}.{layer}", head)
    of_kind = [heads for heads in shown.terms if heads[0].startswith(f"{kind}.")]
    known = [f"{attention.removeprefix(f'{kind}.')}.{number}" for attention, number in of_kind]
    check_known(f"analysed head (layer.head) of {kind}", f"{layer}.{head}", known)
    words = words_of(analysis, shown, name or id_as_word)
    query_side, key_side = SIDES[kind]
    return Explanation(
        kind=kind,
        layer=layer,
        head=head,
        names=shown.term_names[place[0]],
        terms=shown.terms[place],
        attention=shown.attention[place],
        query_words=[visible(word) for word in words[query_side]],
        key_words=[visible(word) for word in words[key_side]],
    )
