"""Average attention, and that of single samples, as matrices."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from companion.results.result import Result
from notebooks.shared.marks import grid, matrix
from notebooks.shared.style import INK, blank, task_name

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


def average_and_sample(frames: Frames, result: Result, tasks: Sequence[str], kind: str) -> Figure:
    """Draw the average matrix of each task above the matrix of one of its samples."""
    tasks = [task for task in tasks if entries_of(frames["average"], task, kind) is not None]
    if not tasks:
        return blank()
    with grid(2, max(len(tasks), 2), size=(8.6, 5.6)) as (figure, panels):
        for (above, below), task in zip(panels.T, tasks, strict=False):
            average = entries_of(frames["average"], task, kind)
            draw_matrix(above, average)
            title = task_and_typicality(task, result.values[task][kind]["typicality"]["value"])
            above.set_title(f"{title}\naverage of {average['samples'].iloc[0]} samples", fontsize=9.5)
            shown = int(task == "reordering_100")  # its second sample runs along the other arm of the X
            draw_matrix(below, entries_of(frames["samples"], task, kind, shown))
            below.set_title("one of them", fontsize=9.5)
            below.set_xlabel("source position t")
        for axes in panels[:, len(tasks) :].flat:
            axes.set_visible(False)
        for row in panels:
            row[0].set_ylabel("predicted at step s")
        annotate(panels[0], tasks)
    return figure


def task_and_typicality(task: str, typicality: float | None) -> str:
    return task_name(task) + ("" if typicality is None else f": typicality {typicality:.2f}")


def annotate(panels: Sequence[Axes], tasks: Sequence[str]) -> None:
    """Say of average matrices what no sample has, and what all have."""
    if "reordering_100" in tasks:
        shuffled = panels[tasks.index("reordering_100")]
        shuffled.annotate("an X that no\nsentence has", (0.5, 0.5), (0.62, 0.5), va="center", **NOTE)
    if tasks[0] == "one_to_one":
        panels[0].annotate("one diagonal\nfits all", (0.42, 0.58), (0.5, 0.8), **NOTE)
