"""An analysis as data frames of pandas, which the extra ``plots`` brings."""

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.aggregate import By, Weigh, aggregate_rows
from attnlib.analysis.heads import Head, kind_and_layer
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.results import Analysis, is_even, variance_factor
from attnlib.decomposition.term_names import POSITION_BIAS
from attnlib.errors import BadInput
from attnlib.optional import library
from attnlib.report.as_text import visible
from attnlib.report.contents import SIDES_OF_KIND, Name, calibration_of, shown_terms, words_of
from attnlib.report.findings import notes

if TYPE_CHECKING:
    from pandas import DataFrame


class Tables:
    """Tidy tables of an analysis, each a data frame of pandas, with its caveats as ``attrs["notes"]``.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Raises:
        BadInput: pandas is not installed.

    Example:
        >>> from attnlib import analyse, zoo
        >>> tables = Tables(analyse(zoo.load("reordering").stream(batch_size=64)))
        >>> len(tables.heads()), sorted(set(tables.terms(by_part=True)["key_part"]))
        (4, ['input', 'residual', 'temporal'])
    """

    def __init__(self, analysis: Analysis):
        self._analysis = analysis

    def heads(self) -> "DataFrame":
        """Return a row for each head.

        Returns:
            The columns of :func:`~attnlib.analysis.results.head_rows`.
        """
        return self._frame(self._analysis.heads)

    def terms(self, *, by_part: bool = False) -> "DataFrame":
        """Return a row for each term of each head.

        A head has nine terms, more with a constant part, and a position bias if the model has one.

        Args:
            by_part: add columns ``query_part`` and ``key_part``, None for a position bias.

        Returns:
            The columns :data:`~attnlib.analysis.results.TERM_COLUMNS`.
        """
        frame = self._frame(shown_terms(self._analysis, self._analysis.terms))
        if by_part:
            pairs = [pair_of(term) for term in frame["term"]]
            after_term = list(frame.columns).index("term") + 1
            frame.insert(after_term, "query_part", [query for query, _ in pairs])
            frame.insert(after_term + 1, "key_part", [key for _, key in pairs])
        return frame

    def parts(self) -> "DataFrame":
        """Return a row for each part of each head: own, split and any-term shares side by side.

        Returns:
            The columns :data:`~attnlib.analysis.part_shares.PART_COLUMNS`.
        """
        return self._frame(part_rows(self._analysis.heads, self._analysis.terms))

    def interventions(self) -> "DataFrame":
        """Return a row for each head, way, side and part: how far attention moves.

        Returns:
            The columns :data:`~attnlib.analysis.interventions.INTERVENTION_COLUMNS`.

        Raises:
            BadInput: the analysis was made without interventions.
        """
        _require_interventions(self._analysis)
        return self._frame(self._analysis.interventions)

    def calibration(self) -> "DataFrame":
        """Return rank correlations over heads between what shares say and how far attention moves.

        Returns:
            The columns :data:`~attnlib.analysis.interventions.CALIBRATION_COLUMNS`.

        Raises:
            BadInput: the analysis was made without interventions.
        """
        _require_interventions(self._analysis)
        return self._frame(calibration_of(self._analysis))

    def aggregate(self, by: By = "layer", *, weigh: Weigh = "scores") -> "DataFrame":
        """Return shares and rebuilt attention of several heads together, a row for each measure and group.

        Args:
            by: "layer" puts the heads of an attention together, "kind" those of all layers.
            weigh: "scores" pools sums, so that a head weighs by how much its scores vary; "heads" takes the
                mean over heads, without those that attend evenly. :mod:`attnlib.analysis.aggregate` says
                which to take.

        Returns:
            The columns :data:`~attnlib.analysis.aggregate.AGGREGATE_COLUMNS`.

        Raises:
            BadInput: the analysis has no blocks of sentences, or pandas is not installed.
            UnknownName: ``by`` or ``weigh`` is another word.
        """
        analysis = self._analysis
        even = {Head.of_row(row): is_even(row) for row in analysis.heads}
        rows = aggregate_rows(
            analysis.blocks, by=by, weigh=weigh, even=even, variance_factor=variance_factor(analysis)
        )
        return self._frame(rows)

    def states(self) -> "DataFrame":
        """Return a row for each of the states that projections read.

        Returns:
            Their widths, sizes and what was not fitted on.
        """
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
            kind, _ = kind_and_layer(attention_name)
            query_side, key_side = SIDES_OF_KIND[kind]
            head_columns = Head(attention_name, head).columns
            for query, weights_of_query in enumerate(weights.tolist()):
                for key, weight in enumerate(weights_of_query):
                    columns = {
                        "query": query,
                        "key": key,
                        "query_word": words[query_side][query],
                        "key_word": words[key_side][key],
                        "weight": weight,
                    }
                    rows.append(head_columns | columns)
        return self._frame(rows)

    def _frame(self, rows: list[dict]) -> "DataFrame":
        frame = library("pandas").DataFrame(rows)
        frame.attrs["notes"] = notes(self._analysis)
        return frame


def pair_of(term: str) -> tuple[str, str] | tuple[None, None]:
    """Return the part of the query and that of the key that a term is of.

    Args:
        term: its name.

    Returns:
        Two parts; two Nones for a position bias.

    Example:
        >>> pair_of("temporal·input")
        ('temporal', 'input')
    """
    if term == POSITION_BIAS:
        return None, None
    query, key = term.split("·")
    return query, key


def _require_interventions(analysis: Analysis) -> None:
    if not analysis.interventions:
        raise BadInput("this analysis has no interventions: make it with analyse(..., interventions=True)")


def sample_of(
    analysis: Analysis, name: Name | None, number: int
) -> tuple[dict[Head, Float[Tensor, "queries keys"]], dict[str, list[str]]]:
    """Return the attention of every head in one of the sentences on the page, and its words by side.

    Args:
        analysis: that keeps samples.
        name: the word of an id; by default its piece, or the id itself if the analysis has no tokenizer.
        number: of the sentence, from 0.

    Returns:
        Matrices by head, and visible words by side.

    Raises:
        BadInput: the analysis keeps no such sentence.

    Example:
        >>> from attnlib import analyse, zoo
        >>> network = zoo.load("reordering")
        >>> attention, words = sample_of(analyse(network.stream(batch_size=64)), network.word, 0)
        >>> len(attention), words["source"][-1]
        (4, '<eos>')
    """
    held = len(analysis.samples)
    if not held:
        raise BadInput("this analysis holds no sample: only analyse and report keep some")
    if not 0 <= number < held:
        raise BadInput(f"sample is {number}; this analysis holds {held}, counted from 0")
    sample = analysis.samples[number]
    words = {}
    for side, words_of_side in words_of(analysis, sample, name).items():
        words[side] = [visible(word) for word in words_of_side]
    return sample.attention, words
