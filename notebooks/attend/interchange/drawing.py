"""Shares of parts, how far attention moves when they are exchanged, and what that costs."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import grid
from notebooks.shared.style import (
    ARCHITECTURE_MARKERS,
    INK,
    PART_COLOURS,
    PART_NAMES,
    PART_SYMBOLS,
    REMARK,
    network_name,
)

SHARE = "share of the part's own term (μ·μ, χ·χ, Δ·Δ)"
MOVED = "attention moved (0: none, 1: all of it)"


def moves_and_costs(effects: pd.DataFrame) -> Figure:
    """Draw how far attention moves over the share of a part, and over that the accuracy that is lost."""
    with grid(1, 2, size=(8.6, 4.1)) as (figure, ((left, right),)):
        draw_points(left, effects, "share", "moves")
        left.set_xlabel(SHARE)
        left.set_ylabel(MOVED)
        scan = {"task": "scan", "architecture": "AED", "part": "temporal"}
        remark(
            left,
            rows_with(effects, scan),
            ("share", "moves"),
            "SCAN: small share,\na third moved",
            (0.36, 0.2),
        )
        alone = {"task": "one_to_one", "architecture": "AO", "part": "temporal"}
        remark(
            left, rows_with(effects, alone), ("share", "moves"), "one-to-one,\nattention only", (0.72, 0.44)
        )
        draw_points(right, effects, "moves", "costs")
        right.set_xlabel(MOVED)
        right.set_ylabel("accuracy lost")
        recurrent = {"task": "one_to_one", "architecture": "AED", "part": "temporal"}
        text = "the more it moves,\nthe more words are lost"
        remark(right, rows_with(effects, recurrent), ("moves", "costs"), text, (0.36, 0.7))
        name_points(figure, effects)
    return figure


def rows_with(effects: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Keep the rows that have these values in these columns."""
    return effects[(effects[list(names)] == names).all(axis="columns")]


def draw_points(axes: Axes, effects: pd.DataFrame, x: str, y: str) -> None:
    """Draw a point for each network and part; hollow where the network has not learned its task."""
    for (part, kind), rows in effects.groupby(["part", "architecture"], sort=False):
        colour = PART_COLOURS[part]
        look = {"ls": "", "marker": ARCHITECTURE_MARKERS[kind], "ms": 5.5, "alpha": 0.85, "color": colour}
        learned = rows[rows["learned"]]
        axes.plot(learned[x], learned[y], mfc=colour, **look)
        others = rows[~rows["learned"]]
        axes.plot(others[x], others[y], mfc="white", **look)


def remark(
    axes: Axes, rows: pd.DataFrame, columns: tuple[str, str], words: str, written: tuple[float, float]
) -> None:  # fmt: skip
    """Draw an arrow from words to the mean of some points, where there are any."""
    if len(rows):
        x, y = columns
        axes.annotate(words, (rows[x].mean(), rows[y].mean()), written, **REMARK)


def name_points(figure: Figure, effects: pd.DataFrame) -> None:
    """Say above the figure which colour is which part, and which marker which kind of network."""
    axes = figure.axes[0]
    for part in PART_NAMES:
        axes.plot([], [], "o", color=PART_COLOURS[part], label=f"{part} {PART_SYMBOLS[part]}")
    for kind in effects["architecture"].unique():
        axes.plot([], [], ARCHITECTURE_MARKERS[kind], color=INK, mfc="white", label=network_name(kind))
    figure.legend(
        loc="outside upper center", ncols=5, frameon=False, fontsize=9, handletextpad=0.2, columnspacing=1.2
    )
