"""The snapshot of every figure: colours, markers and names of the book, and a legend above the panels."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from companion.book.style import INK, PART_COLOURS, PART_SYMBOLS, style, task_name

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


TASK_MARKERS = {
    "one_to_one": "o",
    "permutation": "p",
    "reversal": "H",
    "scan": "^",
    "scan_extended": "v",
    "multi30k_en_fr": "D",
    "multi30k_en_de": "d",
    "tatoeba_en_fr": "X",
    "europarl_de_en": "*",
}
ARCHITECTURE_MARKERS = {
    "AED": "o", "AO": "s", "VED": "D", "AED-lstm": "^", "AED-vanilla": "v", "AED-ugrnn": "<",
}  # fmt: skip


def marker_of(task: str) -> dict[str, object]:
    """Shape and size of a task's points; the marks of the dial are squares that grow with it."""
    if task.startswith("reordering_"):
        return {"marker": "s", "ms": 3.5 + int(task.rpartition("_")[2]) / 16}
    return {"marker": TASK_MARKERS.get(task, "P"), "ms": 7}


def blank() -> Figure:
    """A sentence in place of axes, so that a page of a run that asked for less has every figure."""
    with style():
        figure = Figure(figsize=(8.6, 0.8))
        figure.text(0.5, 0.5, "This run measured nothing of this.", ha="center", va="center", color=INK)
    return figure


VERMILION = PART_COLOURS["input"]


def legend_above(figure: Figure, ncols: int = 2, fontsize: float = 9) -> None:
    """The legend of the first panel, above all of them."""
    labelled = figure.axes[0].get_legend_handles_labels()
    figure.legend(*labelled, loc="outside upper center", ncols=ncols, frameon=False, fontsize=fontsize)


# Whether something drawn leaves its frame, so that a caption can say so.

SLACK = 0.005  # of the axis: what nobody sees is not cut
NOTE = " What leaves the frame is cut off there."


def cut_note(figure: Figure) -> str:
    """A sentence for the caption, with a space before it; empty where everything stands inside its axes."""
    return NOTE if any(_leaves(axes) for axes in figure.get_axes() if axes.get_visible()) else ""


def _leaves(axes: Axes) -> bool:
    """Lines, bars and bands in the axes' own coordinates; lines that span the axes are none of them."""
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    across, up = SLACK * (right - left), SLACK * (high - low)
    places = [
        place
        for line in axes.get_lines()
        if line.get_transform() == axes.transData
        for place in line.get_xydata()
    ]
    for bar in axes.patches:
        if isinstance(bar, Rectangle) and bar.get_data_transform() == axes.transData:
            places.append((bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height()))
    for band in axes.collections:
        if band.get_transform() == axes.transData:
            places += [place for path in band.get_paths() for place in path.vertices]
    return any(not (left - across <= x <= right + across and low - up <= y <= high + up) for x, y in places)
