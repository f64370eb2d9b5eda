"""An analysis as data frames of pandas, which the extra ``plots`` brings."""

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.fit import Head
from attnlib.analysis.results import Analysis
from attnlib.errors import BadInput
from attnlib.report.as_text import visible
from attnlib.report.contents import SIDES, Name, id_as_word, shown_terms, words_of
from attnlib.report.extras import library
from attnlib.report.findings import notes

if TYPE_CHECKING:
    from pandas import DataFrame


class Tables:
    """Tidy tables of an analysis, each a data frame of pandas.

    ``attrs["notes"]`` of each has what a reader must know.

    Raises:
        BadInput: pandas is not installed.
    """

    def __init__(self, analysis: Analysis):
        self._analysis = analysis

    def heads(self) -> "DataFrame":
        """Return a row for each head; for its columns see :func:`~attnlib.analysis.results.head_rows`."""
        return self._frame(self._analysis.heads)

    def terms(self) -> "DataFrame":
        """Return a row for each term of each head.

        A head has nine terms, more with a constant part, and a position bias where there is one. Columns:
        ``kind``, ``layer``, ``head``, ``term`` (such as ``"temporal·input"``), ``covariance_share`` with the
        ends of its interval of 95 %, ``mean_absolute_share``, and how well attention is rebuilt without the
        term.
        """
        return self._frame(shown_terms(self._analysis, self._analysis.terms))

    def states(self) -> "DataFrame":
        """Return a row for each of the states that projections read."""
        return self._frame(self._analysis.states)

    def attention(self, name: Name | None = None, *, sample: int = 0) -> "DataFrame":
        """Return the attention of every head to one of the sentences on the page.

        Args:
            name: the word of an id, as of :func:`~attnlib.report.files.report`; ids by default.
            sample: the number of the sentence, from 0.

        Returns:
            A row for each query and key of each head: ``kind``, ``layer``, ``head``, the places ``query`` and
            ``key``, from 0, their words, and the ``weight``, which is NaN where either of the two is ignored
            or the query cannot see the key.
        """
        attention, words = sample_of(self._analysis, name, sample)
        rows = []
        for (attention_name, head), weights in attention.items():
            kind, layer = attention_name.split(".")
            query_side, key_side = SIDES[kind]
            place = {"kind": kind, "layer": int(layer), "head": head}
            for query, weights_of_query in enumerate(weights.tolist()):
                for key, weight in enumerate(weights_of_query):
                    columns = {
                        "query": query,
                        "key": key,
                        "query_word": words[query_side][query],
                        "key_word": words[key_side][key],
                        "weight": weight,
                    }
                    rows.append(place | columns)
        return self._frame(rows)

    def _frame(self, rows: list[dict]) -> "DataFrame":
        frame = library("pandas").DataFrame(rows)
        frame.attrs["notes"] = notes(self._analysis)
        return frame


def sample_of(
    analysis: Analysis, name: Name | None, number: int
) -> tuple[dict[Head, Float[Tensor, "queries keys"]], dict[str, list[str]]]:
    """Return the attention of every head to one of the sentences on the page, and its words by side.

    Raises:
        BadInput: the analysis holds no such sentence.
    """
    held = len(analysis.samples)
    if not held:
        raise BadInput("this analysis holds no sample: some are kept by analyse and report alone")
    if not 0 <= number < held:
        raise BadInput(f"sample is {number}; this analysis holds {held}, counted from 0")
    sample = analysis.samples[number]
    words = {}
    for side, words_of_side in words_of(analysis, sample, name or id_as_word).items():
        words[side] = [visible(word) for word in words_of_side]
    return sample.attention, words
