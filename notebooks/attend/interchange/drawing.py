"""Shares of parts, how far attention moves when they are exchanged, what that costs, and transplants."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.attend.interchange.transplants import TRANSPLANTS
from notebooks.shared.marks import grid
from notebooks.shared.style import (
    ARCHITECTURE_MARKERS,
    GREEN,
    PART_COLOURS,
    PURPLE,
    REMARK,
    network_name,
    task_name,
)

SHARE = "share of the part’s own term"
MOVED = "attention moved by its exchange"
NAMES = {"temporal": "temporal part", "input": "input part", "residual": "memory"}
FAINT, GREY = "#d0d0d0", "#777777"
SIDES = {"none": "nothing", "keys": "the keys", "query": "the queries", "both": "both sides"}
ORDERS = (("own", "its own order", GREEN), ("other", "the other order", PURPLE))
ELSEWHERE = "#e5e5e5"
LEAST_WRITTEN, TOO_NARROW = 0.03, 0.12  # for its number, and for the percent sign behind it


def moves_over_shares(effects: pd.DataFrame) -> Figure:
    """Draw how far attention moves over the share of a part: position in colour, the other parts faint."""
    with grid(1, 1, size=(3.7, 4.1)) as (figure, ((axes,),)):
        faint = dict.fromkeys(PART_COLOURS, FAINT)
        of_position = effects["part"] == "temporal"
        others = effects[~of_position & effects["learned"]]
        draw_points(axes, others, "share", "moves", faint, size=3)
        draw_points(axes, effects[of_position], "share", "moves", PART_COLOURS)
        axes.set_title("The larger the temporal part’s share,\nthe further attention moves", loc="left")
        axes.set_xlabel(SHARE)
        axes.set_ylabel(MOVED)
        axes.set_ylim(-0.03, 1.05)
        scan = {"task": "scan", "architecture": "AED", "part": "temporal"}
        remark(axes, rows_with(effects, scan), ("share", "moves"), "SCAN", (0.27, 0.3))
        alone = {"task": "one_to_one", "architecture": "AO", "part": "temporal"}
        remark(
            axes, rows_with(effects, alone), ("share", "moves"), "one-to-one,\nattention only", (0.62, 0.98)
        )
        rest = {"part": "residual", "architecture": "AO"}
        remark(axes, rows_with(effects, rest), ("share", "moves"), "input parts and memory", (0.3, 0.08))
        name_networks(axes, effects, loc="lower right", bbox_to_anchor=(1.02, 0.1))
    return figure


def costs_over_moves(effects: pd.DataFrame) -> Figure:
    """Draw how much accuracy is lost over how far attention moves, each part in its colour."""
    with grid(1, 1, size=(3.7, 3.9)) as (figure, ((axes,),)):
        draw_points(axes, effects, "moves", "costs", PART_COLOURS)
        axes.set_title("The further it moves, the more words are lost", loc="left")
        axes.set_xlabel("attention moved")
        axes.set_ylabel("word accuracy lost")
        for part, name in NAMES.items():
            axes.plot([], [], "o", color=PART_COLOURS[part], label=f"another {name}")
        name_networks(axes, effects, loc="upper left")
    return figure


def rows_with(effects: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Keep the rows that have these values in these columns."""
    return effects[(effects[list(names)] == names).all(axis="columns")]


def draw_points(
    axes: Axes, effects: pd.DataFrame, x: str, y: str, colours: Mapping[str, str], *, size: float = 5.5
) -> None:
    """Draw a point for each network and part; hollow where the network has not learned its task."""
    for (part, kind), rows in effects.groupby(["part", "architecture"], sort=False):
        colour = colours[part]
        look = {"ls": "", "marker": ARCHITECTURE_MARKERS[kind], "ms": size, "alpha": 0.85, "color": colour}
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


def name_networks(axes: Axes, effects: pd.DataFrame, **placed: object) -> None:
    """Say inside the panel which marker is which kind of network, below what is named already."""
    for kind in effects["architecture"].unique():
        axes.plot([], [], ARCHITECTURE_MARKERS[kind], color=GREY, ls="", label=network_name(kind))
    axes.plot([], [], "o", color=GREY, mfc="white", label="has not learned its task")
    axes.legend(frameon=False, fontsize=9, handletextpad=0.2, **placed)


def transplants(by_task: Mapping[str, Mapping], tasks: Sequence[str]) -> Figure:
    """Draw where the largest weight goes, by where memory of the other sentence was put, task by task."""
    alone = len(tasks) == 1
    with grid(1, len(tasks), size=(3.7, 3.3) if alone else (8.6, 2.7), sharey=True) as (figure, (panels,)):
        for axes, task in zip(panels, tasks, strict=True):
            for place, name in enumerate(TRANSPLANTS):
                draw_bar(
                    axes, place, [by_task[task][name][order]["value"] for order, *_ in ORDERS], numbered=alone
                )
            title = "The order turns only if\nboth sides remember it" if alone else task_name(task)
            axes.set_title(title, fontsize=9.5, loc="left")
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.set_yticks(range(len(TRANSPLANTS)), [SIDES[name] for name in TRANSPLANTS])
            axes.set_ylim(len(TRANSPLANTS) - 0.5, -0.5)
            axes.set_xlabel("share of words", fontsize=9)
        panels[0].set_ylabel("memory put into", fontsize=9)
        for _, label, colour in (*ORDERS, ("", "elsewhere", ELSEWHERE)):
            panels[0].barh([0], [0], color=colour, label=label)
        figure.legend(
            loc="outside upper center", ncols=2 if alone else 3, frameon=False, fontsize=9,
            title="largest weight where the word is in", title_fontsize=9,
        )  # fmt: skip
    return figure


def draw_bar(axes: Axes, place: int, shares: Sequence[float], *, numbered: bool) -> None:
    """Draw the shares of words at either order, the rest in grey, and numbers where there is room."""
    left = 0.0
    for share, (_, _, colour) in zip(shares, ORDERS, strict=True):
        axes.barh(place, share, left=left, color=colour, height=0.62)
        if numbered and share > LEAST_WRITTEN:
            middle, label = left + share / 2, f"{100 * share:.0f}" + (" %" if share > TOO_NARROW else "")
            axes.text(middle, place, label, color="white", ha="center", va="center", fontsize=9)
        left += share
    axes.barh(place, 1 - left, left=left, color=ELSEWHERE, height=0.62)
