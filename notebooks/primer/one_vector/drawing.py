"""What one wrong word costs the words after it, by its position."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from notebooks.shared.marks import grid
from notebooks.shared.style import ARROW, PINK, WINE, blank, legend_above, lines, task_name

WIDTH = 4.7  # inches, which a telephone shows nearly whole
NETWORKS = {"cho": ("Cho et al.", WINE, "-"), "sutskever": ("Sutskever et al.", PINK, "--")}
FIRST = "dates"  # the task with the clearest peaks
FOUND = {FIRST: "most is lost at the dashes"}
PEAKS = {  # what a replacement costs most, at these positions of these tasks
    ("number_words", 5): "a word of tens",
    ("dates", 8): "the dashes",
    ("multi30k_en_fr", 12): "the full stop",
}


def cost_of_a_word(damage: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Draw the share of later words that a replaced word makes wrong, a panel for each task."""
    if not tasks:
        return blank()
    shares = damage[damage["quantity"] == "share"]
    in_order = sorted(tasks, key=lambda task: task != FIRST)
    with grid(len(tasks), 1, size=(WIDTH, 2 * len(tasks) + 0.8), sharey=True) as (figure, panels):
        for axes, task in zip(panels.flat, in_order, strict=True):
            draw_task(axes, shares[shares["task"] == task], task)
        panels[-1, 0].set_xlabel("position of the wrong word")
        legend_above(figure)
    return figure


def draw_task(axes: Axes, shares: pd.DataFrame, task: str) -> None:
    """Draw a line for each network, with the name of the word that costs most."""
    measured = set(shares["network"])
    shown = {network: look for network, look in NETWORKS.items() if network in measured}
    lines(axes, shares, "place", "network", shown)
    for row in shares[shares["network"] == "cho"].itertuples():
        if row.value > shares["value"].max() - 0.01 and (task, row.place) in PEAKS:
            axes.annotate(
                PEAKS[task, row.place], (row.place, row.value), (row.place - 0.6, 1.12), ha="right",
                va="center", fontsize=9.5, arrowprops=ARROW,
            )  # fmt: skip
    finding = f": {FOUND[task]}" if task in FOUND else ""
    axes.set_title(f"{task_name(task)}{finding}", loc="left", fontsize=9.5, fontweight="bold")
    axes.set_ylabel("later words\nmade wrong")
    axes.set(ylim=(0, 1.2), yticks=(0, 0.5, 1), yticklabels=("none", "half", "all"))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
