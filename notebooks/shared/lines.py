"""Lines of means with their intervals as bands."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes


def lines(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    by: str,
    looks: Mapping[str, tuple[str, str, str]],
    *,
    lw: float = 1.7,
    band: float = 0.13,
) -> None:
    """A line for each group of a tidy table, with a band where it has intervals.

    Args:
        table: with the columns ``value``, ``low``, ``high``, ``x`` and ``by``.
        looks: name of a group in ``by`` → its label, colour and line style, in the order of the legend.
        band: opacity of the bands.
    """
    for name, (label, colour, line) in looks.items():
        own = table[table[by] == name]
        axes.plot(own[x], own["value"], color=colour, ls=line, lw=lw, label=label)
        if len(own) and pd.notna(own["low"].iloc[0]):
            low, high = own["low"].astype(float), own["high"].astype(float)
            axes.fill_between(own[x], low, high, color=colour, alpha=band, lw=0)
