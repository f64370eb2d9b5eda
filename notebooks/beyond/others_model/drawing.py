"""Shares of a Transformer's heads, by layer and by how much they look at the symbol to be copied."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import apart, grid
from notebooks.shared.style import PART_COLOURS, PART_NAMES, PART_SYMBOLS, REMARK

SHIFTS = {"temporal": -0.12, "input": 0.0, "residual": 0.12}  # of points, so that all are seen
NARROW = 4.7  # inches, which a telephone shows whole
WORDS = {"temporal": "position", "input": "symbol", "residual": "context"}
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
