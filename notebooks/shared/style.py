"""The look of every figure: colours, markers and names of the book, and a legend above the panels."""

from matplotlib.figure import Figure

from attnlib.plotting.blank import blank
from attnlib.plotting.style import (
    ARCHITECTURE_MARKERS,
    INK,
    PART_COLOURS,
    PART_SYMBOLS,
    marker_of,
    style,
    task_name,
)

__all__ = [
    "ARCHITECTURE_MARKERS",
    "INK",
    "PART_COLOURS",
    "PART_SYMBOLS",
    "VERMILION",
    "blank",
    "legend_above",
    "marker_of",
    "style",
    "task_name",
]

VERMILION = PART_COLOURS["input"]


def legend_above(figure: Figure, ncols: int = 2, fontsize: float = 9) -> None:
    """The legend of the first panel, above all of them."""
    labelled = figure.axes[0].get_legend_handles_labels()
    figure.legend(*labelled, loc="outside upper center", ncols=ncols, frameon=False, fontsize=fontsize)
