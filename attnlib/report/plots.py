"""Draw an analysis as figures of matplotlib, which the extra ``plots`` installs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.columns import share_column
from attnlib.analysis.heads import Head
from attnlib.analysis.results import Analysis, is_even
from attnlib.decomposition.components import STATE_PARTS
from attnlib.decomposition.term_names import CONSTANT, POSITION_BIAS, TERM_GROUPS, group_of
from attnlib.errors import check_known
from attnlib.optional import library
from attnlib.report.as_text import number
from attnlib.report.contents import COLOURS, SIDES_OF_KIND, Name
from attnlib.report.tables import sample_of
from attnlib.trace import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERS = 12  # heads in a row of squares that have room for a number
FAINT = 0.35  # how much is left of the colours of a head that attends evenly
_NEGATIVE = -0.005  # a share that is shown with a sign


class Plots:
    """Pictures of an analysis, each a figure of matplotlib.

    A notebook shows what is returned; elsewhere ``figure.savefig("heads.png")`` keeps it.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Raises:
        BadInput: matplotlib is not installed.

    Example:
        >>> from attnlib import analyse, zoo
        >>> figure = Plots(analyse(zoo.load("reordering").stream(batch_size=64))).heads()
        >>> figure.axes[0].get_title()
        'temporal share'
    """

    def __init__(self, analysis: Analysis):
        self._analysis = analysis

    def heads(self, kind: str = "cross") -> "Figure":
        """Draw the shares of every head: a row for each layer, a column for each head.

        Heads that attend evenly are faint.

        Args:
            kind: of attention, "cross", "encoder_self" or "decoder_self".

        Returns:
            A figure with a panel for each part.

        Raises:
            UnknownName: the analysis has no such attention.
        """
        rows = [row for row in self._analysis.heads if row["kind"] == kind]
        if not rows:
            check_known("kind of attention", kind, sorted({row["kind"] for row in self._analysis.heads}))
        layers = sorted({row["layer"] for row in rows})
        heads = sorted({row["head"] for row in rows})
        groups = [group for group in TERM_GROUPS if any(row[share_column(group)] for row in rows)]
        figure, panels = _figure(len(groups), 1.5 + 0.5 * len(heads), 1.4 + 0.4 * len(layers))
        for group, axes in zip(groups, panels, strict=True):
            shares = torch.full((len(layers), len(heads)), torch.nan)  # (layers, heads)
            opacity = torch.ones_like(shares)  # (layers, heads)
            for row in rows:
                square = layers.index(row["layer"]), heads.index(row["head"])
                shares[square] = row[share_column(group)]
                opacity[square] = FAINT if is_even(row) else 1.0
            groups_of_squares = [[group] * len(heads) for _ in layers]
            _draw_squares(
                axes, shares, groups_of_squares, opacity=opacity, numbers=len(heads) <= MOST_NUMBERS
            )
            _draw_ticks(axes, [str(layer) for layer in layers], [str(head) for head in heads])
            axes.set(title=f"{group} share", xlabel="head", ylabel="layer")
        return figure

    def terms(self, layer: int, head: int, kind: str = "cross") -> "Figure":
        """Draw the shares of all terms of a head: parts of the query down, parts of the key across.

        They are faint if the head attends evenly.

        Args:
            layer: of the attention, from 0.
            head: of the attention, from 0.
            kind: of the attention.

        Returns:
            A figure with one panel.

        Raises:
            UnknownName: there is no such head.
        """
        _require_head(self._analysis, kind, layer=layer, head=head)
        of_head = {"kind": kind, "layer": layer, "head": head}
        shares = {
            row["term"]: row["covariance_share"]
            for row in self._analysis.terms
            if of_head.items() <= row.items()
        }
        pairs = [term.split("·") for term in shares if term != POSITION_BIAS]
        parts = (CONSTANT, *STATE_PARTS)
        of_queries = {query for query, _ in pairs}
        of_keys = {key for _, key in pairs}
        queries = [part for part in parts if part in of_queries]
        keys = [part for part in parts if part in of_keys]
        terms = [[f"{query}·{key}" for key in keys] for query in queries]
        values = [[shares.get(term, torch.nan) for term in row] for row in terms]
        table = torch.tensor(values)  # (queries, keys)
        even = any(is_even(row) for row in self._analysis.heads if of_head.items() <= row.items())
        opacity = torch.full_like(table, FAINT if even else 1.0)
        figure, (axes,) = _figure(1, 5.0, 4.0)
        groups_of_squares = [[group_of(term) for term in row] for row in terms]
        _draw_squares(axes, table, groups_of_squares, opacity=opacity, numbers=True)
        _draw_ticks(axes, queries, keys)
        title = f"{kind}, layer {layer}, head {head}"
        if even:
            title += ", attends evenly"
        if POSITION_BIAS in shares:
            title += f", {POSITION_BIAS} {number(shares[POSITION_BIAS])}"
        axes.set(title=title, xlabel="part of the key", ylabel="part of the query")
        return figure

    def attention(
        self, layer: int, head: int, kind: str = "cross", *, name: Name | None = None, sample: int = 0
    ) -> "Figure":
        """Draw the attention of a head to one sentence, hatched where it is NaN.

        Args:
            layer: of the attention, from 0.
            head: of the attention, from 0.
            kind: of the attention.
            name: the word of an id, given "source" or "target" and the id; by default its piece, or the
                id itself if the analysis has no tokenizer.
            sample: number of the sentence, from 0.

        Returns:
            A figure with one panel.

        Raises:
            BadInput: the analysis keeps no such sentence.
            UnknownName: there is no such head.
        """
        chosen = _require_head(self._analysis, kind, layer=layer, head=head)
        attention, words = sample_of(self._analysis, name, sample)
        weights = attention[chosen]  # (queries, keys)
        query_side, key_side = SIDES_OF_KIND[kind]
        queries, keys = words[query_side], words[key_side]
        figure, (axes,) = _figure(1, 1.5 + 0.25 * len(keys), 1.5 + 0.25 * len(queries))
        axes.imshow(weights.numpy(), cmap="Greys", vmin=0, vmax=1)
        axes.patch.set(hatch="////", edgecolor="0.7")  # seen where a weight is NaN
        _draw_ticks(axes, queries, keys, rotation=90)
        axes.set(title=f"{kind}, layer {layer}, head {head}", xlabel="key", ylabel="query")
        return figure


def _require_head(analysis: Analysis, kind: str, *, layer: int, head: int) -> Head:
    """Return the head of an attention.

    Raises:
        BadInput: the head was not analysed.
    """
    check_known("kind of attention", kind, KINDS)
    analysed = [f"{row['layer']}.{row['head']}" for row in analysis.heads if row["kind"] == kind]
    check_known(f"analysed head (layer.head) of {kind}", f"{layer}.{head}", analysed)
    return Head(f"{kind}.{layer}", head)


def _figure(panels: int, width: float, height: float) -> "tuple[Figure, list[Axes]]":
    """Return a figure that pyplot does not track, else a notebook would show it twice, and its panels."""
    pyplot = library("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(width * panels, height), layout="constrained")
    pyplot.close(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def _draw_squares(
    axes: "Axes",
    shares: Float[Tensor, "rows columns"],
    groups: Sequence[Sequence[str]],
    *,
    opacity: Float[Tensor, "rows columns"],
    numbers: bool,
) -> None:
    """Draw a square for each share: in the colour of its group, as strong as it is large.

    It is hatched if the share is negative, and left out if it is NaN.

    Args:
        axes: of the panel.
        shares: one a square.
        groups: of terms, of each share.
        opacity: from 0 to 1, of each share.
        numbers: whether each square has its number.
    """
    rectangle = library("matplotlib.patches").Rectangle
    n_rows, n_columns = shares.shape
    for row, column in (~shares.isnan()).nonzero().tolist():
        share = float(shares[row, column])
        group = groups[int(row)][int(column)]
        patch = rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            facecolor=COLOURS["bias" if group == POSITION_BIAS else group],
            alpha=float(opacity[row, column]) * min(1.0, abs(share)),
            hatch="///" if share < _NEGATIVE else "",
        )
        axes.add_patch(patch)
        if numbers:
            axes.text(column, row, number(share), ha="center", va="center", size=8)
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect="equal")


def _draw_ticks(axes: "Axes", rows: list[str], columns: list[str], *, rotation: int = 0) -> None:
    axes.set_yticks(range(len(rows)), rows, parse_math=False)  # a word may hold dollars
    axes.set_xticks(range(len(columns)), columns, rotation=rotation, parse_math=False)
