"""An analysis as tables of pandas and pictures of matplotlib, which the extra ``plots`` brings."""

from html import escape
from typing import TYPE_CHECKING

import torch

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.aggregate import By, Weigh, aggregate_rows
from attnlib.analysis.fit import Head
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.report import (
    COLOURS,
    SIDES,
    Name,
    calibration_of,
    notes,
    number,
    page,
    shown_terms,
    visible,
    words_of,
)
from attnlib.analysis.results import Analysis, is_even, unsure_by_fit
from attnlib.analysis.terms import PARTS, part_of
from attnlib.decomposition.components import PART_NAMES
from attnlib.errors import BadInput, check_known
from attnlib.optional import library

if TYPE_CHECKING:
    from IPython.display import HTML
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

MOST_NUMBERS = 12  # heads in a row of squares that have room for a number
FAINT = 0.35  # how much is left of the colours of a head that attends evenly


def _place(analysis: Analysis, kind: str, layer: int, head: int) -> str:
    check_known("kind of attention", kind, KINDS)
    there = [f"{row['layer']}.{row['head']}" for row in analysis.heads if row["kind"] == kind]
    check_known(f"analysed head (layer.head) of {kind}", f"{layer}.{head}", there)
    return f"{kind}.{layer}"


def _shown(
    analysis: Analysis, name: Name | None, sample: int
) -> tuple[dict[Head, torch.Tensor], dict[str, list[str]]]:
    """Attention of every head, and words, of one of the sentences on the page."""
    held = len(analysis.samples)
    if not held:
        raise BadInput("this analysis holds no sample: some are kept by analyse and report alone")
    if not 0 <= sample < held:
        raise BadInput(f"sample is {sample}; this analysis holds {held}, counted from 0")
    one = analysis.samples[sample]
    words = words_of(analysis, one, name or (lambda _, token: str(token)))
    return one.attention, {of: list(map(visible, own)) for of, own in words.items()}


def framed(analysis: Analysis, name: Name | None, height: int) -> "HTML":
    """Return the report as a page within a page, which a notebook shows and keeps; see `Analysis.show`."""
    text = page(analysis, "How this model attends", name or (lambda _, token: str(token)), script=True)
    style = f"width: 100%; height: {height}px; border: 0"
    # Of another origin than the notebook, so that nothing in a sentence can reach it.
    frame = f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" style="{style}"></iframe>'
    return library("IPython.display").HTML(f"<div>{frame}</div>")


class Tables:
    """Tidy tables of an analysis, a data frame of pandas each, with what a reader must know in its
    ``attrs["notes"]``; BadInput where pandas is not installed."""

    def __init__(self, analysis: Analysis):
        self._analysis = analysis

    def heads(self) -> "DataFrame":
        """A row a head; its columns are those of :func:`~attnlib.analysis.results.head_rows`."""
        return self._frame(self._analysis.heads)

    def terms(self, *, by_part: bool = False) -> "DataFrame":
        """A row a term of a head: nine, with a constant part more, and a position bias where there is one.

        Its columns are :data:`~attnlib.analysis.results.TERM_COLUMNS`.

        Args:
            by_part: also have columns ``query_part`` and ``key_part``, None for a position bias.
        """
        frame = self._frame(shown_terms(self._analysis, self._analysis.terms))
        if by_part:
            sides = [term.split("·") if "·" in term else (None, None) for term in frame["term"]]
            place = frame.columns.get_loc("term") + 1
            frame.insert(place, "query_part", [query for query, _ in sides])
            frame.insert(place + 1, "key_part", [key for _, key in sides])
        return frame

    def parts(self) -> "DataFrame":
        """A row for each part of each head: own, split and any-term shares side by side.

        Its columns are :data:`~attnlib.analysis.part_shares.PART_COLUMNS`.
        """
        return self._frame(part_rows(self._analysis.heads, self._analysis.terms))

    def interventions(self) -> "DataFrame":
        """A row for each head, way, side and part: how far attention moves.

        Its columns are :data:`~attnlib.analysis.interventions.INTERVENTION_COLUMNS`.

        Raises:
            BadInput: the analysis was made without interventions.
        """
        return self._frame(self._interventions())

    def calibration(self) -> "DataFrame":
        """Rank correlations over heads between what shares say and how far attention moves.

        Its columns are :data:`~attnlib.analysis.interventions.CALIBRATION_COLUMNS`.

        Raises:
            BadInput: the analysis was made without interventions.
        """
        self._interventions()
        return self._frame(calibration_of(self._analysis))

    def _interventions(self) -> list[dict]:
        if not self._analysis.interventions:
            raise BadInput(
                "this analysis has no interventions: make it with analyse(..., interventions=True)"
            )
        return self._analysis.interventions

    def aggregate(self, by: By = "layer", *, weigh: Weigh = "scores") -> "DataFrame":
        """Several heads together, see :meth:`~attnlib.analysis.results.Analysis.aggregate`.

        Its columns are :data:`~attnlib.analysis.aggregate.AGGREGATE_COLUMNS`.
        """
        analysis = self._analysis
        even = {(f"{row['kind']}.{row['layer']}", row["head"]): is_even(row) for row in analysis.heads}
        unsure = unsure_by_fit(analysis)
        return self._frame(aggregate_rows(analysis.blocks, by=by, weigh=weigh, even=even, unsure=unsure))

    def states(self) -> "DataFrame":
        """A row for each of the states that projections read."""
        return self._frame(self._analysis.states)

    def attention(self, name: Name | None = None, *, sample: int = 0) -> "DataFrame":
        """Of the sentence ``sample`` on the page, from 0: a row for each query and key of each head.

        Columns are ``kind``, ``layer``, ``head``, the places ``query`` and ``key``, from 0, their words by
        ``name`` (ids by default), and the ``weight``, which is NaN where either of the two is ignored or
        the query cannot see the key.
        """
        attention, words = _shown(self._analysis, name, sample)
        rows = []
        for (at, head), weights in attention.items():
            kind, layer = at.split(".")
            queries, keys = (words[side] for side in SIDES[kind])
            rows += [
                {
                    "kind": kind, "layer": int(layer), "head": head, "query": query, "key": key,
                    "query_word": queries[query], "key_word": keys[key], "weight": weight,
                }
                for query, row in enumerate(weights.tolist())
                for key, weight in enumerate(row)
            ]  # fmt: skip
        return self._frame(rows)

    def _frame(self, rows: list[dict]) -> "DataFrame":
        frame = library("pandas").DataFrame(rows)
        frame.attrs["notes"] = notes(self._analysis)
        return frame


class Plots:
    """Pictures of an analysis, a figure of matplotlib each; BadInput where matplotlib is not installed.

    A notebook shows what is returned; elsewhere ``figure.savefig("heads.png")`` keeps it.
    """

    def __init__(self, analysis: Analysis):
        self._analysis = analysis

    def heads(self, kind: str = "cross") -> "Figure":
        """The shares of every head, a row a layer and a column a head; faint where a head attends evenly."""
        rows = [row for row in self._analysis.heads if row["kind"] == kind]
        if not rows:
            check_known("kind of attention", kind, sorted({row["kind"] for row in self._analysis.heads}))
        layers, heads = (sorted({row[name] for row in rows}) for name in ("layer", "head"))
        columns = {part: f"{part}_share".replace(" ", "_") for part in PARTS}
        parts = [part for part, column in columns.items() if any(row[column] for row in rows)]
        figure, places = _figure(len(parts), 1.5 + 0.5 * len(heads), 1.4 + 0.4 * len(layers))
        for part, axes in zip(parts, places, strict=True):
            shares = torch.full((len(layers), len(heads)), torch.nan)
            faint = torch.ones_like(shares)
            for row in rows:
                at = layers.index(row["layer"]), heads.index(row["head"])
                shares[at] = row[columns[part]]
                faint[at] = FAINT if is_even(row) else 1.0
            colours = [[part] * len(heads)] * len(layers)
            _squares(axes, shares, colours, len(heads) <= MOST_NUMBERS, faint)
            _ticks(axes, list(map(str, layers)), list(map(str, heads)))
            axes.set(title=f"{part} share", xlabel="head", ylabel="layer")
        return figure

    def terms(self, layer: int, head: int, kind: str = "cross") -> "Figure":
        """Shares of all terms of a head: of the query down, of the key across; faint if it attends evenly."""
        _place(self._analysis, kind, layer, head)
        place = {"kind": kind, "layer": layer, "head": head}
        own = [row for row in self._analysis.terms if place.items() <= row.items()]
        shares = {tuple(row["term"].split("·")): row["covariance_share"] for row in own}
        bias = [f"{name[0]} {number(share)}" for name, share in shares.items() if len(name) == 1]
        pairs = [name for name in shares if len(name) == 2]
        queries, keys = (
            [part for part in ("constant", *PART_NAMES) if part in {pair[side] for pair in pairs}]
            for side in range(2)
        )
        table = torch.tensor([[shares.get((one, other), torch.nan) for other in keys] for one in queries])
        figure, (axes,) = _figure(1, 5.0, 4.0)
        colours = [[part_of(f"{one}·{other}") for other in keys] for one in queries]
        even = any(place.items() <= row.items() and is_even(row) for row in self._analysis.heads)
        _squares(axes, table, colours, True, torch.full_like(table, FAINT if even else 1.0))
        _ticks(axes, queries, keys)
        title = ", ".join([f"{kind}, layer {layer}, head {head}", *["attends evenly"] * even, *bias])
        axes.set(title=title, xlabel="part of the key", ylabel="part of the query")
        return figure

    def attention(
        self, layer: int, head: int, kind: str = "cross", *, name: Name | None = None, sample: int = 0
    ) -> "Figure":
        """The attention of a head, as in :meth:`Tables.attention`; words by ``name``, hatched where NaN."""
        at = _place(self._analysis, kind, layer, head)
        attention, words = _shown(self._analysis, name, sample)
        weights = attention[at, head]
        queries, keys = (words[side] for side in SIDES[kind])
        figure, (axes,) = _figure(1, 1.5 + 0.25 * len(keys), 1.5 + 0.25 * len(queries))
        axes.imshow(weights.numpy(), cmap="Greys", vmin=0, vmax=1)
        axes.patch.set(hatch="////", edgecolor="0.7")  # seen where a weight is NaN
        _ticks(axes, queries, keys, rotation=90)
        axes.set(title=f"{kind}, layer {layer}, head {head}", xlabel="key", ylabel="query")
        return figure


def _figure(panels: int, width: float, height: float) -> "tuple[Figure, list[Axes]]":
    """Known to no one but the caller: a notebook would show it twice."""
    pyplot = library("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(width * panels, height), layout="constrained")
    pyplot.close(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def _squares(
    axes: "Axes", shares: torch.Tensor, parts: list[list[str]], numbers: bool, faint: torch.Tensor
) -> None:
    """Squares in the colours of parts, as strong as a share is large, and hatched where it is negative."""
    rectangle = library("matplotlib.patches").Rectangle
    for row, column in (~shares.isnan()).nonzero().tolist():
        share, part = float(shares[row, column]), parts[row][column]
        colour = COLOURS["bias" if part == "position bias" else part]
        look = {"alpha": float(faint[row, column]) * min(1.0, abs(share)), "hatch": "///" * (share < -0.005)}
        axes.add_patch(rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, **look))
        if numbers:
            axes.text(column, row, number(share), ha="center", va="center", size=8)
    axes.set(xlim=(-0.5, shares.shape[1] - 0.5), ylim=(shares.shape[0] - 0.5, -0.5), aspect="equal")


def _ticks(axes: "Axes", rows: list[str], columns: list[str], rotation: int = 0) -> None:
    axes.set_yticks(range(len(rows)), rows, parse_math=False)  # a word may hold dollars
    axes.set_xticks(range(len(columns)), columns, rotation=rotation, parse_math=False)
