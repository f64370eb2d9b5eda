"""An analysis with its views as methods, each a line that calls the function or class that makes the view."""

from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from attnlib.analysis.aggregate import By, Weigh
from attnlib.analysis.results import Analysis
from attnlib.optional import library
from attnlib.report.as_text import sentence
from attnlib.report.contents import TITLE, Name, id_as_word
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
    :mod:`attnlib.report` takes just as well.
    """

    @classmethod
    def of(cls, analysis: Analysis) -> "AnalysisWithViews":
        """Return an analysis with its views."""
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
        """Return a row for each term of each head, see :meth:`~attnlib.report.tables.Tables.terms`."""
        return self.tables.terms(by_part=True)

    def aggregate(self, by: By = "layer", *, weigh: Weigh = "scores") -> "DataFrame":
        """Return several heads together, see :meth:`~attnlib.report.tables.Tables.aggregate`."""
        return self.tables.aggregate(by, weigh=weigh)

    def explain(
        self, sample: int, layer: int, head: int, *, kind: str = "cross", name: Name | None = None
    ) -> Explanation:
        """Return the terms of one head in one sentence, see :func:`~attnlib.report.explain.explain`."""
        return explain(self, sample=sample, layer=layer, head=head, kind=kind, name=name)

    def show(self, *, name: Name | None = None, height: int = 720) -> "HTML":
        """Return the report for a notebook, see :func:`show`."""
        return show(self, name=name, height=height)

    def _repr_html_(self) -> str:
        return in_words(self)


def show(analysis: Analysis, *, name: Name | None = None, height: int = 720) -> "HTML":
    """Return the report, with all that moves in it, for a notebook to show below a cell.

    Args:
        analysis: what the report shows.
        name: the word of an id, as of :func:`~attnlib.report.files.report`; ids by default.
        height: of the frame, in pixels.

    Raises:
        BadInput: IPython is not installed.
    """
    text = page(analysis, TITLE, name or id_as_word, script=True)
    style = f"width: 100%; height: {height}px; border: 0"
    # Of another origin than the notebook, so that nothing in a sentence can reach it.
    frame = f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" style="{style}"></iframe>'
    return library("IPython.display").HTML(f"<div>{frame}</div>")


def in_words(analysis: Analysis) -> str:
    """Return the findings and the caveats of an analysis as HTML, a paragraph each."""
    texts = [repr(analysis), *findings(analysis), *notes(analysis)]
    return "".join(f"<p>{escape(sentence(text))}</p>" for text in texts)
