"""Courses of networks that write sentences in their order, or in one fixed random order."""

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure

from notebooks.shared.marks import grid
from notebooks.shared.style import AMBER, ARROW, PURPLE, curves, legend_above

ORDERS = {"copy": ("copied", PURPLE), "permuted": ("in one fixed random order", AMBER)}
ACCURACIES = {
    "accuracy": "accuracy on new sentences",
    "attention_accuracy": "largest weight on\nthe correct word (share)",
}
NOTES = (  # of the panels of ACCURACIES: text, where to look, and where it is written
    ("copying is learned\nat once …", (0.14, 0.85), (0.3, 0.75)),
    ("… and attention does not find\na fixed random order", (0.7, 0.24), (0.3, 0.6)),
)


def order_panels(
    courses: pd.DataFrame,
    network: str,
    columns: Mapping[str, str],
    *,
    orders: Iterable[str] = tuple(ORDERS),
    notes: Iterable[tuple] = (),
) -> Figure:
    """Draw a panel for each column of the courses of one kind of network, a curve for each network."""
    courses = courses[courses["network"] == network]
    with grid(1, len(columns), size=(8.6, 3.2), sharex=True, sharey=True) as (figure, (panels,)):
        for axes, (column, ylabel) in zip(panels, columns.items(), strict=True):
            for order in orders:
                label, colour = ORDERS[order]
                curves(
                    axes, courses[courses["order"] == order], column, label, color=colour, lw=1.1, alpha=0.75
                )
            axes.set_ylim(-0.03, 1.03)
            axes.set_xlabel("updates")
            axes.set_ylabel(ylabel)
        for axes, (text, place, written) in zip(panels, notes, strict=False):
            inside = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
            axes.annotate(text, place, written, arrowprops=ARROW, va="center", **inside)
        legend_above(figure)
    return figure
