"""Courses of networks that write sentences in their order, or in one fixed random order."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from notebooks.shared.marks import grid
from notebooks.shared.style import AMBER, ARROW, PURPLE, curves, legend_above
from notebooks.shared.thresholds import enough

ORDERS = {"copy": ("copied", PURPLE), "permuted": ("in one fixed random order", AMBER)}
ACCURACIES = {
    "accuracy": "correct words in\nnew sentences (share)",
    "attention_accuracy": "largest weight on\nthe correct word (share)",
}
NARROW = 4.7  # inches, which a telephone shows whole
DARK_AMBER = "#8f6200"  # of texts about amber curves
NOTES = (  # of the panels of ACCURACIES: row, text (with when copying is learned), colour, place, where it is
    (0, "copying is learned\nwithin {} updates", PURPLE, (0.11, 0.8), (0.2, 0.72)),
    (0, "one fixed random order", DARK_AMBER, (0.7, 0.26), (0.3, 0.48)),
    (1, "copying finds it", PURPLE, (0.11, 0.8), (0.2, 0.82)),
    (1, "attention does not find\na fixed random order", DARK_AMBER, (0.7, 0.24), (0.3, 0.56)),
)


def learned_within(courses: pd.DataFrame) -> str:
    """The updates after which every network that learns to copy has done so."""
    learned = courses[(courses["order"] == "copy") & courses["accuracy"].map(enough)]
    last = learned.groupby("seed")["steps"].min().max()
    return "–" if pd.isna(last) else f"{last:.0f}"


def order_panels(
    courses: pd.DataFrame,
    network: str,
    columns: Mapping[str, str],
    *,
    orders: Sequence[str] = tuple(ORDERS),
    notes: Sequence[tuple] = (),
) -> Figure:
    """Draw a panel for each column of the courses of one kind of network, a curve for each network.

    Notes name the curves; without them a legend does, if there are several orders.
    """
    courses = courses[courses["network"] == network]
    size = (NARROW, 2.3 * len(columns) + 0.5)
    with grid(len(columns), 1, size=size, sharex=True, sharey=True) as (figure, grid_of_panels):
        panels = grid_of_panels[:, 0]
        for axes, (column, ylabel) in zip(panels, columns.items(), strict=True):
            for order in orders:
                label, colour = ORDERS[order]
                curves(
                    axes, courses[courses["order"] == order], column, label, color=colour, lw=1.1, alpha=0.75
                )
            axes.set_ylim(-0.03, 1.03)
            axes.set_ylabel(ylabel)
        panels[-1].set_xlabel("updates")
        for row, text, colour, place, written in notes:
            look = {"arrowprops": ARROW, "va": "center", "color": colour}
            inside = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
            panels[row].annotate(text.format(learned_within(courses)), place, written, **look, **inside)
        if not notes and len(orders) > 1:
            legend_above(figure)
    return figure
