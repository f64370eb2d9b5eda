"""Give an analysis its views as methods, each a line that calls the function or class that makes the view."""

from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from attnlib.analysis.aggregate import By, Weigh
from attnlib.analysis.results import Analysis
from attnlib.optional import library
from attnlib.report.as_text import sentence
from attnlib.report.contents import TITLE, Name
from attnlib.report.explain import Explanation, explain
from attnlib.report.findings import findings, notes
from attnlib.report.page import page
from attnlib.report.plots import Plots
from attnlib.report.tables import Tables

if TYPE_CHECKING:
    from IPython.display import HTML
    from pandas import DataFrame


class AnalysisWithViews(Analysis):
    """An analysis that shows itself, as :func:`attnlib.analyse` and :func:`attnlib.read_report` return it.

    Its data are those of :class:`~attnlib.analysis.results.Analysis`, which every function of
    :mod:`attnlib.report` takes as well.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> type(analysis).__name__, len(analysis.tables.heads())
        ('AnalysisWithViews', 4)
    """

    @classmethod
    def of(cls, analysis: Analysis) -> "AnalysisWithViews":
        """Return an analysis with its views.

        Args:
            analysis: plain data.

        Returns:
            An analysis with the same data.
        """
        return cls(**{field.name: getattr(analysis, field.name) for field in fields(Analysis)})

    @property
    def tables(self) -> Tables:
        """Data frames of pandas: ``tables.heads()``, ``.terms()``, ``.parts()`` and others."""
        return Tables(self)

    @property
    def plot(self) -> Plots:
        """Figures of matplotlib: ``analysis.plot.heads()``, ``.terms(layer, head)``, ``.attention(…)``."""
        return Plots(self)

    def to_frame(self) -> "DataFrame":
        """Return a row for each term of each head, see :meth:`~attnlib.report.tables.Tables.terms`.

        Returns:
            A data frame of pandas, with columns ``query_part`` and ``key_part``.
        """
        return self.tables.terms(by_part=True)

    def aggregate(self, by: By = "layer", *, weigh: Weigh = "scores") -> "DataFrame":
        """Return several heads together, see :meth:`~attnlib.report.tables.Tables.aggregate`.

        Args:
            by: "layer" or "kind".
            weigh: "scores" or "heads".

        Returns:
            A data frame of pandas.
        """
        return self.tables.aggregate(by, weigh=weigh)

    def explain(
        self, sample: int, layer: int, head: int, *, kind: str = "cross", name: Name | None = None
    ) -> Explanation:
        """Return the terms of one head in one sentence, see :func:`~attnlib.report.explain.explain`.

        Args:
            sample: number of the sample, from 0.
            layer: of the attention, from 0.
            head: of the attention, from 0.
            kind: of the attention.
            name: the word of an id; by default its piece, or the id itself if the analysis has no tokenizer.

        Returns:
            The terms, with the words of both sides.
        """
        return explain(self, sample=sample, layer=layer, head=head, kind=kind, name=name)

    def show(self, *, name: Name | None = None, height: int = 720) -> "HTML":
        """Show the report in a notebook, see :func:`show`.

        Args:
            name: the word of an id; by default its piece, or the id itself if the analysis has no tokenizer.
            height: of the frame, in pixels.

        Returns:
            The object that IPython displays.
        """
        return show(self, name=name, height=height)

    def _repr_html_(self) -> str:
        return in_words(self)


def show(analysis: Analysis, *, name: Name | None = None, height: int = 720) -> "HTML":
    """Show the report, with all that moves in it, below a cell of a notebook.

    Args:
        analysis: what the report shows.
        name: the word of an id, as for :func:`~attnlib.report.files.report`; by default its
            piece, or the id itself if the analysis has no tokenizer.
        height: of the frame, in pixels.

    Returns:
        An object that IPython displays: a frame that no sentence can leave.

    Raises:
        BadInput: IPython is not installed.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> show(analysis).data.startswith("<div><iframe srcdoc=")
        True
    """
    text = page(analysis, TITLE, name, script=True)
    style = f"width: 100%; height: {height}px; border: 0"
    # The frame has another origin than the notebook, so that nothing in a sentence can reach it.
    frame = f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" style="{style}"></iframe>'
    return library("IPython.display").HTML(f"<div>{frame}</div>")


def in_words(analysis: Analysis) -> str:
    """Return the findings and the caveats of an analysis as HTML, a paragraph each.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Returns:
        Escaped markup.

    Example:
        >>> from attnlib import analyse, zoo
        >>> in_words(analyse(zoo.load("reordering").stream(batch_size=64))).startswith("<p>Analysis")
        True
    """
    texts = [repr(analysis), *findings(analysis), *notes(analysis)]
    return "".join(f"<p>{escape(sentence(text))}</p>" for text in texts)
