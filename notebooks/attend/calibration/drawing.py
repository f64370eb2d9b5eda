"""Shares of parts against the effects of exchanging them, and which attributions name the largest effect."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.book.numbers import written
from companion.results.result import Result
from notebooks.shared.marks import error_bar, grid
from notebooks.shared.style import (
    ARCHITECTURE_MARKERS,
    ARROW,
    GREEN,
    INK,
    PART_COLOURS,
    PART_NAMES,
    PART_SYMBOLS,
    PURPLE,
    WINE,
    network_name,
)

ATTRIBUTIONS = {
    "own": "own term",
    "split": "split share",
    "any_term": "any-term share",
    "mean_absolute": "size of terms",
    "substitution": "substitution",
}
SIDES = {  # side that is exchanged → label, colour
    "query": ("in the queries", GREEN),
    "keys": ("in the keys", PURPLE),
    "both": ("on both sides", WINE),
}
BARS = {"query": -0.27, "keys": 0.0, "both": 0.27}  # side → place of its bar in a row
BY_CHANCE = 1 / 3  # of the hits: there are three parts


def over(result: Result) -> dict:
    """Numbers over families of tasks; along the dial where there are too few families."""
    everywhere = result.values
    ranks = everywhere["rank"]["exchange"]["both"]["attention"]["every"]
    return everywhere["dial"] if ranks["split"]["value"] is None else everywhere


def shares_against_effects(points: pd.DataFrame, result: Result) -> Figure:
    """Draw own terms and split shares against the attention moved, and the hits of every attribution."""
    with grid(1, 3, size=(8.6, 4.2), width_ratios=(1, 1, 0.85)) as (figure, ((left, middle, right),)):
        draw_points(left, points, "own", result)
        draw_points(middle, points, "split", result)
        left.set_ylabel("attention moved by exchanging the part")
        annotate_shuffled(left, points)
        draw_hits(right, over(result)["hits"]["exchange"])
        for part in PART_NAMES:
            left.plot([], [], "o", color=PART_COLOURS[part], label=f"{part} {PART_SYMBOLS[part]}")
        for kind in points["kind"].unique():
            left.plot([], [], ARCHITECTURE_MARKERS[kind], color=INK, mfc="white", label=network_name(kind))
        look = {"frameon": False, "fontsize": 8.5, "handletextpad": 0.4, "columnspacing": 1}
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=3, **look)
        figure.legend(*right.get_legend_handles_labels(), loc="outside upper right", **look)
    return figure


def draw_points(axes: Axes, points: pd.DataFrame, attribution: str, result: Result) -> None:
    """Draw a point for each network and part; hollow where the network has not learned its task."""
    for (part, kind, learned), group in points.groupby(["part", "kind", "learned"], sort=False):
        colour = PART_COLOURS[part]
        axes.plot(
            group[attribution], group["exchange_attention"], ls="", marker=ARCHITECTURE_MARKERS[kind], ms=4.5,
            alpha=0.7, color=colour, mfc=colour if learned else "white",
        )  # fmt: skip
    rank = over(result)["rank"]["exchange"]["both"]["attention"]["every"][attribution]
    axes.set_title(f"rank correlation {written(rank)}", loc="left", fontsize=8.5)
    axes.set_xlabel(f"{ATTRIBUTIONS[attribution]} of the part", fontsize=9.5)
    axes.set_xlim(-0.05, 1)
    axes.set_ylim(0, 1)


def annotate_shuffled(axes: Axes, points: pd.DataFrame) -> None:
    """Point at the temporal parts where all sentences may change their order."""
    shuffled = points[(points["task"] == "reordering_100") & (points["part"] == "temporal")]
    if len(shuffled):
        middle = shuffled["own"].mean(), shuffled["exchange_attention"].mean()
        text = "little of its own,\nand still the furthest"
        axes.annotate(text, middle, (0.66, 0.3), arrowprops=ARROW, fontsize=8.5, ha="center", va="center")


def draw_hits(axes: Axes, hits: dict) -> None:
    """Draw how often each attribution names the part whose exchange moves attention furthest."""
    for side, (label, colour) in SIDES.items():
        for row, attribution in enumerate(ATTRIBUTIONS):
            rate, place = hits[side]["attention"][attribution], row + BARS[side]
            if rate["value"] is not None:
                axes.barh(place, rate["value"], height=0.25, color=colour)
                error_bar(axes, rate, place, INK, lw=1)
        axes.barh([0], [0], color=colour, label=label)
    axes.axvline(BY_CHANCE, color=INK, lw=0.9, ls=":")
    axes.set_yticks(range(len(ATTRIBUTIONS)), list(ATTRIBUTIONS.values()), fontsize=8.5)
    axes.set_ylim(len(ATTRIBUTIONS) - 0.5, -0.5)
    axes.set_xlim(0, 1.03)
    axes.set_xlabel("share of networks", fontsize=9.5)
    axes.set_title("networks whose strongest\npart is named correctly", loc="left", fontsize=8.5)
