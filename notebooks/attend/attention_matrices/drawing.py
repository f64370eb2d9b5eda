"""Average attention, and that of single samples, as matrices."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from notebooks.shared.marks import grid, matrix
from notebooks.shared.style import INK, blank, task_name

NARROW = 4.7  # inches, which a telephone shows whole
ORDERS = {"one_to_one": ": one order", "reordering_100": ": order changes"}
NOTE = {
    "xycoords": "axes fraction",
    "textcoords": "axes fraction",
    "fontsize": 9,
    "arrowprops": {"arrowstyle": "->", "color": INK},
}

Frames = Mapping[str, pd.DataFrame]  # the tables ``average`` and ``samples``


def entries_of(rows: pd.DataFrame, task: str, kind: str, sample: int = 0) -> pd.DataFrame | None:
    """The rows of a table that are one matrix; None where there is none."""
    if rows.empty:
        return None
    rows = rows[(rows["task"] == task) & (rows["architecture"] == kind)]
    if "sample" in rows:
        rows = rows[rows["sample"] == sample]
    return rows if len(rows) else None


def draw_matrix(axes: Axes, entries: pd.DataFrame) -> None:
    """Draw attention, a row for each word that is predicted."""
    weights = entries.pivot(index="target_position", columns="source_position", values="attention")
    matrix(axes, weights.to_numpy())
    axes.spines[:].set_visible(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))


def average_and_sample(frames: Frames, tasks: Sequence[str], kind: str) -> Figure:
    """Draw the average matrix of each task, and beside it the matrix of one of its samples."""
    tasks = [task for task in tasks if entries_of(frames["average"], task, kind) is not None]
    if not tasks:
        return blank()
    with grid(len(tasks), 2, size=(NARROW, 2.4 * len(tasks) + 0.2)) as (figure, panels):
        for (left, right), task in zip(panels, tasks, strict=True):
            average = entries_of(frames["average"], task, kind)
            draw_matrix(left, average)
            left.set_title(f"average of {average['samples'].iloc[0]} sentences", fontsize=9.5)
            shown = int(task == "reordering_100")  # its second sample runs along the other arm of the X
            draw_matrix(right, entries_of(frames["samples"], task, kind, shown))
            right.set_title("one of them", fontsize=9.5)
            left.set_ylabel("target position")
            left.text(
                -0.42, 0.5, f"{task_name(task)}{ORDERS.get(task, '')}", fontweight="bold", rotation=90,
                ha="center", va="center", transform=left.transAxes,
            )  # fmt: skip
        for axes in panels[-1]:
            axes.set_xlabel("source position")
        annotate([row[0] for row in panels], tasks)
    return figure


def annotate(panels: Sequence[Axes], tasks: Sequence[str]) -> None:
    """Say of average matrices what no sample has, and what all have."""
    if "reordering_100" in tasks:
        shuffled = panels[tasks.index("reordering_100")]
        shuffled.annotate(
            "an X that no\nsentence has", (0.5, 0.5), (0.5, 0.93), ha="center", va="top", **NOTE
        )
    if tasks[0] == "one_to_one":
        panels[0].annotate("one diagonal\nfits all", (0.42, 0.58), (0.5, 0.8), **NOTE)
