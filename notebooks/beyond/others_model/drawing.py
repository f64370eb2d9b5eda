"""Shares of a Transformer's heads, by layer and by how much they look at the symbol to be copied."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import apart, dot, grid, rule
from notebooks.shared.style import (
    ATTRIBUTION_LABELS,
    GREEN,
    INK,
    PART_COLOURS,
    PART_NAMES,
    PART_SYMBOLS,
    PURPLE,
    REMARK,
)

SHIFTS = {"temporal": -0.12, "input": 0.0, "residual": 0.12}  # of points, so that all are seen
NARROW = 4.7  # inches, which a telephone shows whole
WORDS = {"temporal": "position", "input": "symbol", "residual": "context"}
SIDES = {  # side → what it is called, its colour, and its shift within a row
    "query": ("in queries", GREEN, -0.2),
    "keys": ("in keys", PURPLE, 0.0),
    "both": ("in both", INK, 0.2),
}
INKS = PART_COLOURS | {"residual": "#666666"}  # of text


def shares_of_heads(heads: pd.DataFrame) -> Figure:
    """Draw three shares of each head, above by layer, below by its attention on the symbol to be copied."""
    with grid(2, 1, size=(NARROW, 6.2), sharey=True) as (figure, ((above,), (below,))):
        for part in PART_NAMES:
            draw_layers(above, heads, part)
            below.plot(
                heads["copies"], heads[f"{part}_share"], "o", ms=5, alpha=0.8, color=PART_COLOURS[part]
            )
        name_parts(above, heads)
        above.set_title("Context replaces the symbol", loc="left", fontsize=9.5, fontweight="bold")
        above.set_xlabel("layer of the decoder")
        title = "Copying heads attend by context; so do many others"
        below.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
        below.set_xlabel("attention on the symbol to be copied")
        for axes in (above, below):
            axes.set_ylabel("share of the scores")
        most = heads.loc[heads["copies"].idxmax()]
        text = "their scores are\nmostly context"
        below.annotate(text, (most["copies"], most["residual_share"]), (0.6, 0.46), **REMARK)
    return figure


def draw_layers(axes: Axes, heads: pd.DataFrame, part: str) -> None:
    """Draw a share of each head by layer, and a line through the means of layers."""
    share, layer = heads[f"{part}_share"], heads["layer"] + 1
    look = {"color": PART_COLOURS[part]}
    axes.plot(layer + SHIFTS[part], share, "o", ms=4.5, alpha=0.45, mew=0, **look)
    means = share.groupby(layer).mean()
    axes.plot(means.index + SHIFTS[part], means, "-", lw=2.2, **look)


def name_parts(axes: Axes, heads: pd.DataFrame) -> None:
    """Write the name of each part beside the mean of the last layer."""
    last = heads["layer"].max()
    of_last_layer = heads[heads["layer"] == last]
    ends = {part: of_last_layer[f"{part}_share"].mean() for part in PART_NAMES}
    for part, height in apart(ends, 0.06).items():
        name = f"{WORDS[part]} {PART_SYMBOLS[part]}"
        axes.annotate(name, (last + 1.19, height), va="center", fontsize=9.5, color=INKS[part])
    axes.set_xticks(sorted(set(heads["layer"] + 1)))
    axes.set_xlim(0.6, last + 1.75)


def ranks_over_heads(result: Result) -> Figure:
    """Draw for every attribution its rank correlation with the attention moved by exchange, by side.

    Args:
        result: of the experiment.
    """
    ranks = result.values["compared"]["rank"]["exchange"]
    with grid(1, 1, size=(NARROW, 3.2)) as (figure, ((axes,),)):
        for side, (name, colour, shift) in SIDES.items():
            by_attribution = ranks[side]["attention"]["every"]
            for place, attribution in enumerate(ATTRIBUTION_LABELS):
                dot(axes, by_attribution[attribution], place + shift, colour, bar={"lw": 1.6}, ms=6)
            above_first = (by_attribution["own"]["value"], -0.55)
            axes.annotate(name, above_first, ha="center", fontsize=9, color=colour)
        for place in range(len(ATTRIBUTION_LABELS)):
            rule(axes, place)
        axes.set_yticks(range(len(ATTRIBUTION_LABELS)), list(ATTRIBUTION_LABELS.values()))
        axes.set_ylim(len(ATTRIBUTION_LABELS) - 0.5, -0.95)
        axes.set_xlim(right=1.02)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("rank correlation with the attention moved")
        title = "Shares predict exchange in queries, less so in keys"
        axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
    return figure
