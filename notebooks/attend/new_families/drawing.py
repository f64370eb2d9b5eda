"""Families of tasks as points: what a part of the states does, or is given, against typicality."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.results.result import Result
from notebooks.attend.new_families.origins import KNOWN, NEW
from notebooks.shared.marks import grid, key_above, matrix
from notebooks.shared.style import ARCHITECTURE_MARKERS, PART_COLOURS, network_name, task_name, write_labels

PALE = "#b5b5b5"
KIND = "AED"  # of the matrices
WIDTH, HEIGHT = 8.6, 3.9  # inches, of a row of panels
EFFECTS = (("temporal_moves", "effect of exchanging μ"), ("input_moves", "effect of exchanging χ"))
OWN_TERMS = (("temporal_own", "own term μ·μ"), ("input_own", "own term χ·χ"))
SPLIT_SHARES = (("temporal_split", "split share of μ"), ("input_split", "split share of χ"))


def families(result: Result, rows: Sequence[Sequence[tuple[str, str]]] = (EFFECTS,)) -> Figure:
    """Draw quantities against typicality, a point for each task and kind of network that has learned it.

    Args:
        result: of the experiment.
        rows: for each row of panels, columns of its points and the words on the axis.
    """
    points = pd.DataFrame(result.tables["points"])
    learned = points[points["learned"]].dropna(subset=["typicality"])
    with grid(len(rows), len(rows[0]), size=(WIDTH, HEIGHT * len(rows))) as (figure, panels):
        for axes, (column, label) in zip(panels.flat, (panel for row in rows for panel in row), strict=True):
            draw_panel(axes, learned, column)
            axes.set_ylabel(label)
            axes.set_xlabel("typicality of the attention matrix")
        key_above(figure, handles(learned), ncols=4)
    return figure


def draw_panel(axes: Axes, learned: pd.DataFrame, column: str) -> None:
    """Draw the mean over networks of each task and kind, with the names of new families beside theirs."""
    colour = PART_COLOURS[column.partition("_")[0]]
    labels = []
    for (origin, task, kind), networks in learned.groupby(["origin", "task", "kind"], sort=False):
        x, y = networks["typicality"].mean(), networks[column].mean()
        if origin == NEW:
            axes.plot(x, y, ARCHITECTURE_MARKERS[kind], color=colour, ms=7, zorder=3)
            labels.append((x, y, task_name(task), colour))
        else:
            axes.plot(x, y, ARCHITECTURE_MARKERS[kind], color=PALE, ms=5, zorder=2)
    axes.set_xlim(0, 1.05)
    axes.set_ylim(min(-0.03, axes.get_ylim()[0]), 1.05)
    write_labels(axes, labels)


def average_matrices(result: Result) -> Figure:
    """Draw the average attention of the first recurrent network with attention on each new task.

    Args:
        result: of the experiment.
    """
    averages = pd.DataFrame(result.tables["averages"])
    of_kind = averages[averages["kind"] == KIND] if len(averages) else averages
    by_task = dict(list(of_kind.groupby("task", sort=False))) if len(of_kind) else {}
    with grid(1, max(len(by_task), 1), size=(WIDTH, 2.4)) as (figure, panels):
        for axes, (task, weights) in zip(panels.flat, by_task.items(), strict=False):
            matrix(axes, weights.pivot(index="step", columns="place", values="weight").to_numpy())
            axes.set_title(task_name(task), loc="left", fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel("source, end token last", fontsize=8)
        panels[0, 0].set_ylabel("step", fontsize=8)
    return figure


def handles(learned: pd.DataFrame) -> list[Line2D]:
    """Say which mark a kind of network has, and that families of the suite are pale."""
    marks = []
    for kind in learned["kind"].unique():
        look = {"ls": "", "marker": ARCHITECTURE_MARKERS[kind], "color": "#555555"}
        marks.append(Line2D([], [], label=f"{network_name(kind)}, new family", ms=7, **look))
        if KNOWN in set(learned["origin"]):
            pale = look | {"color": PALE}
            marks.append(Line2D([], [], label=f"{network_name(kind)}, of the suite", ms=5, **pale))
    return marks
