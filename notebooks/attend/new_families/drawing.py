"""Families of tasks as points: what a part of the states does, or is given, against typicality."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.book.numbers import written
from companion.results.result import Result
from notebooks.attend.new_families.origins import EVERY, NEW
from notebooks.shared.families import family
from notebooks.shared.marks import grid, matrix
from notebooks.shared.style import ARCHITECTURE_MARKERS, PART_COLOURS, task_name, write_labels

PALE = "#b5b5b5"  # of known families
GREY = "#777777"  # the same, where they have names
KIND = "AED"  # of the matrices, and of the families
NARROW = (5.0, 4.2)  # inches, of a panel alone
WIDTH = 8.6  # inches, of a row of matrices
LOW = 0.3  # of an axis whose points are all below it
HEIGHT = 2.7  # inches, of one of several panels
NAMED_AT = {  # points so close together that a name could be either's: how far above, and its end there
    "captions": (7, "bottom"),
    "selective_copying": (-8, "top"),
}
Quantity = tuple[str, str]  # its column of the points, and what a reader calls it
OWN_TEMPORAL = ("temporal_own", "Share of μ·μ")
OTHERS = (
    ("temporal_moves", "Exchanging μ: whether it moves more is open"),
    ("input_own", "Share of χ·χ: whether it falls is open"),
    ("input_moves", "Exchanging χ: whether it moves less is open"),
)
SPLIT_SHARES = (("temporal_split", "Split share of μ"), ("input_split", "Split share of χ"))


def families_by_typicality(result: Result) -> Figure:
    """Draw the share of μ·μ against typicality, a named point for each family of tasks.

    Args:
        result: of the experiment.
    """
    points = pd.DataFrame(result.tables["points"])
    learned = points[points["learned"] & (points["kind"] == KIND)].dropna(subset=["typicality"])
    with grid(1, 1, size=(4.7, 4.4)) as (figure, ((axes,),)):
        labels = []
        for (origin, name), networks in learned.groupby(["origin", learned["task"].map(family)], sort=False):
            x, y = networks["typicality"].mean(), networks["temporal_own"].mean()
            colour = PART_COLOURS["temporal"] if origin == NEW else GREY
            axes.plot(x, y, "o", color=colour, ms=9 if origin == NEW else 6, zorder=3)
            if name in NAMED_AT:
                up, end = NAMED_AT[name]
                axes.annotate(
                    task_name(name), (x, y), (0, up), textcoords="offset points", ha="center", va=end,
                    fontsize=9, color=colour,
                )  # fmt: skip
            else:
                labels.append((x, y, task_name(name), colour))
        axes.set_ylabel("share of the position term")
        axes.set_title(
            "More typical attention, larger share of position", loc="left", fontsize=9.5, fontweight="bold"
        )
        axes.set_xlim(0.1, 1.05)
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0, 0.5, 1], ["none", "half", "all"])
        axes.set_xlabel("typicality", fontweight="bold")
        ends = {"va": "top", "fontsize": 9, "transform": axes.transAxes}
        axes.text(0, -0.075, "attention differs\nbetween sentences", ha="left", **ends)
        axes.text(1, -0.075, "alike in\nevery sentence", ha="right", **ends)
        axes.text(0.02, 0.97, "new families", color=PART_COLOURS["temporal"], fontweight="bold", **ends)
        axes.text(0.02, 0.91, "known families", color=GREY, fontweight="bold", **ends)
        write_labels(axes, labels, size=9)
    return figure


def one_share(result: Result, quantity: Quantity = OWN_TEMPORAL) -> Figure:
    """Draw one quantity against typicality, with the meaning of marks in the lower right corner.

    Args:
        result: of the experiment.
        quantity: its column of the points, and what a reader calls it.
    """
    with grid(1, 1, size=NARROW) as (figure, ((axes,),)):
        draw_panel(axes, result, quantity)
        axes.legend(
            handles=handles(quantity), loc="lower right", frameon=False, fontsize=8.5, handletextpad=0.2
        )
    return figure


def row_of_quantities(result: Result, quantities: Sequence[Quantity]) -> Figure:
    """Draw quantities against typicality, a panel each, one below the other.

    Args:
        result: of the experiment.
        quantities: for each panel, a column of the points and what a reader calls it.
    """
    with grid(len(quantities), 1, size=(NARROW[0], HEIGHT * len(quantities))) as (figure, panels):
        for axes, quantity in zip(panels.flat, quantities, strict=True):
            draw_panel(axes, result, quantity)
    return figure


def draw_panel(axes: Axes, result: Result, quantity: Quantity) -> None:
    """Draw the mean over networks of each task and kind, with the names of new families beside theirs."""
    column, label = quantity
    points = pd.DataFrame(result.tables["points"])
    learned = points[points["learned"]].dropna(subset=["typicality"])
    colour = PART_COLOURS[column.partition("_")[0]]
    labels = []
    for (origin, task, kind), networks in learned.groupby(["origin", "task", "kind"], sort=False):
        x, y = networks["typicality"].mean(), networks[column].mean()
        if origin == NEW:
            axes.plot(x, y, ARCHITECTURE_MARKERS[kind], color=colour, ms=7, zorder=3)
            labels.append((x, y, task_name(task), colour))
        else:
            axes.plot(x, y, ARCHITECTURE_MARKERS[kind], color=PALE, ms=5, zorder=2)
    correlation = result.values[EVERY]["all"][column]
    number = "" if correlation["value"] is None else f"\nrank correlation {written(correlation)}"
    axes.set_title(f"{label}{number}", loc="left", fontsize=9.5, fontweight="bold")
    axes.set_xlabel("typicality of attention")
    axes.set_xlim(0, 1.05)
    top = LOW if learned[column].max() < LOW else 1
    axes.set_ylim(-0.08 * top, 1.05 * top)
    write_labels(axes, labels, size=9.5)


def handles(quantity: Quantity) -> list[Line2D]:
    """Say which points are of new families, and which networks have no recurrence."""
    column, _ = quantity
    colour = PART_COLOURS[column.partition("_")[0]]
    return [
        Line2D([], [], ls="", marker="o", color=colour, ms=7, label="new families"),
        Line2D([], [], ls="", marker="o", color=PALE, ms=5, label="known families"),
        Line2D([], [], ls="", marker="s", color=PALE, ms=5, label="squares: attention only"),
    ]


def average_matrices(result: Result) -> Figure:
    """Draw the average attention of the first recurrent network with attention on each new task.

    Shades are square roots of weights, so that lines which several orders share can be seen.

    Args:
        result: of the experiment.
    """
    averages = pd.DataFrame(result.tables["averages"])
    of_kind = averages[averages["kind"] == KIND] if len(averages) else averages
    by_task = dict(list(of_kind.groupby("task", sort=False))) if len(of_kind) else {}
    points = pd.DataFrame(result.tables["points"])
    learned = set(points.loc[points["learned"] & (points["kind"] == KIND), "task"])
    with grid(1, max(len(by_task), 1), size=(WIDTH, 2.5)) as (figure, panels):
        for axes, (task, weights) in zip(panels.flat, by_task.items(), strict=False):
            matrix(axes, np.sqrt(weights.pivot(index="step", columns="place", values="weight").to_numpy()))
            name = task_name(task) if task in learned else f"{task_name(task)} (not learned)"
            axes.set_title(name, loc="left", fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel("source, end token last", fontsize=8)
        panels[0, 0].set_ylabel("step", fontsize=8)
    return figure
