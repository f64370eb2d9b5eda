"""The shares of a model's heads, two panels in a row, with frames around those that the page speaks of."""

from collections.abc import Mapping
from typing import Protocol

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from notebooks.shared.style import INK, style

SIZE = 4.7, 5.2  # inches; a telephone shows this width whole
ACROSS = 2  # panels in a row
TITLES = {
    "temporal share": "position (temporal share)",
    "input share": "word (input share)",
    "mixed share": "position with word",
    "residual share": "context (residual share)",
}


class Plots(Protocol):
    """What the library draws of an analysis."""

    def heads(self) -> Figure:
        """Draw a panel for each kind of share, with a square for each head."""


def heads_in_rows(plots: Plots, cross: pd.DataFrame, framed: Mapping[str, str]) -> Figure:
    """Draw the shares of every head of the cross-attention.

    Args:
        plots: of the analysis.
        cross: a row for each head, with its layer and its number, by name.
        framed: by the title of a panel, the name of the head that gets a frame there.
    """
    layers, heads = sorted(set(cross["layer"])), sorted(set(cross["head"]))
    with style():
        figure = plots.heads()
        figure.set_size_inches(*SIZE)
        places = figure.add_gridspec(-(-len(figure.axes) // ACROSS), ACROSS)
        for axes, place in zip(figure.axes, places, strict=False):
            axes.set_subplotspec(place)
            share = axes.get_title()
            if share in framed:
                head = cross.loc[framed[share]]
                frame(axes, heads.index(head["head"]), layers.index(head["layer"]))
            axes.set_title(TITLES.get(share, share), fontsize=9.5)
        figure.set_layout_engine("constrained")
    return figure


def frame(axes: Axes, column: int, row: int) -> None:
    """Draw a frame around a square."""
    axes.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=INK, lw=1.6))
