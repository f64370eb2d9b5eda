"""How long attention takes in two orders, and the gap between them, over the scale of position codes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from companion.results.result import Result
from notebooks.shared.marks import grid, line_of_dots, rule
from notebooks.shared.style import AMBER, INK, PURPLE

ORDERS = {  # what it is called, its colour, and where its name is from the second point of its line
    "copy": ("copied", PURPLE, (-12, -12)),
    "permuted": ("in one fixed\nshuffled order", AMBER, (14, 8)),
}
NARROW = 3.75  # inches, which a telephone shows whole
PALE = "#9a9a9a"
TICKS = (10, 20, 50, 100, 200, 400)  # updates


def gap_over_scale(result: Result) -> Figure:
    """Draw the updates that attention takes in each order, and the doublings between the orders."""
    scales = result.config["scales"]
    with grid(2, 1, size=(NARROW, 6.2)) as (figure, panels):
        panels = panels[:, 0]
        draw_updates(panels[0], result, scales)
        draw_gap(panels[1], result, scales)
        for axes in panels:
            axes.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
            axes.set_xlim(-0.4, len(scales) - 0.6)
        panels[0].set_title("Codes close the gap", loc="left")
        panels[1].set_xlabel("scale of the position codes")
    return figure


def draw_updates(axes: Axes, result: Result, scales: Sequence[float]) -> None:
    """Draw the mean updates by order on a logarithmic axis, and every network as a pale point."""
    networks = pd.DataFrame(result.tables["networks"])
    for order, (label, colour, offset) in ORDERS.items():
        of_order = networks[networks["order"] == order]
        draw_networks(axes, of_order, scales, colour)
        means = [_counted(of_order[of_order["scale"] == scale]).mean() for scale in scales]
        axes.plot(range(len(scales)), means, "o-", color=colour)
        axes.annotate(
            label, (1, means[1]), offset, textcoords="offset points", color=colour, fontsize=9.5, va="center",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks(shown, [str(tick) for tick in shown])
    axes.set_ylabel("updates until attention is\non the correct word")


def draw_networks(axes: Axes, networks: pd.DataFrame, scales: Sequence[float], colour: str) -> None:
    """Draw each network as a pale point, as a triangle where it never gets there."""
    for place, scale in enumerate(scales):
        of_scale = networks[networks["scale"] == scale]
        arrived = of_scale["attended"].notna().to_numpy()
        heights = _counted(of_scale).to_numpy()
        across = place + spread(len(of_scale))
        axes.plot(across[arrived], heights[arrived], ".", color=colour, alpha=0.45, ms=5, zorder=1)
        axes.plot(across[~arrived], heights[~arrived], "^", color=colour, alpha=0.7, ms=6, mew=0, zorder=3)


def _counted(networks: pd.DataFrame) -> pd.Series:
    """Return the updates until attention is there, all updates where it never is."""
    return networks["attended"].astype(float).fillna(networks["steps"])


def draw_gap(axes: Axes, result: Result, scales: Sequence[float]) -> None:
    """Draw the doublings at each scale: every pair as a pale point, the mean with its interval."""
    gaps = pd.DataFrame(result.tables["gaps"])
    estimates = pd.DataFrame(result.tables["estimates"])
    shown = estimates[(estimates["reached"] == "attention") & (estimates["quantity"] == "gap")]
    for place, scale in enumerate(scales):
        pairs = gaps[gaps["scale"] == scale]
        bound = pairs["most"].isna().to_numpy()
        heights = pairs["doublings"].astype(float).to_numpy()
        across = place + spread(len(pairs))
        axes.plot(across[~bound], heights[~bound], ".", color=PALE, ms=5, zorder=1)
        axes.plot(across[bound], heights[bound], "^", color=PALE, ms=6, mew=0, zorder=3)
    rows = shown.set_index("scale").reindex(scales).to_dict("records")
    line_of_dots(axes, range(len(scales)), [without_end(row) for row in rows], INK)
    rule(axes, 0, "#999999")
    highest = int(np.floor(axes.get_ylim()[1]))
    axes.set_yticks(range(highest + 1), [f"× {2**doublings}" for doublings in range(highest + 1)])
    axes.set_ylabel("times as many updates\nas in copying")


def without_end(estimate: dict) -> dict:
    """Return an estimate whose interval, if it has no upper end, is drawn up to its value."""
    if pd.isna(estimate["high"]) and pd.notna(estimate["low"]):
        return estimate | {"high": estimate["value"]}
    return estimate


def spread(points: int) -> np.ndarray:
    """Return how far points at one place are moved apart, (points,)."""
    return np.linspace(-0.16, 0.16, points) if points > 1 else np.zeros(points)
