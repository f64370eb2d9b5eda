"""Labels at the ends of lines, moved apart where they would touch."""

import numpy as np
from matplotlib.axes import Axes

End = tuple[float, float, str, str]  # where a line ends, its label and colour


def label_ends(axes: Axes, ends: list[End], least: float = 0.105) -> None:
    """Writes each label to the right of its line's end; lines that end nowhere have none."""
    ordered = sorted((end for end in ends if np.isfinite(end[1])), key=lambda end: end[1])
    heights = spread([end[1] for end in ordered], least)
    for (across, value, label, colour), height in zip(ordered, heights, strict=True):
        line = {"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 1, "relpos": (0, 0.5)}
        axes.annotate(
            label, (across, value), (across + 0.4, height), textcoords="data", va="center", fontsize=8.5,
            color=colour, arrowprops=line,
        )  # fmt: skip


def spread(heights: list[float], least: float, low: float = 0.0, high: float = 1.02) -> list[float]:
    """Ascending heights at least so far apart, moved as little as a few sweeps manage, within low and high.

    >>> spread([0.5, 0.5, 0.9], 0.1)
    [0.45, 0.55, 0.9]
    """
    found = list(heights)
    for _ in range(200):
        for place in range(len(found) - 1):
            lacking = least - (found[place + 1] - found[place])
            if lacking > 0:
                found[place] -= lacking / 2
                found[place + 1] += lacking / 2
        if found:
            found[0], found[-1] = max(found[0], low), min(found[-1], high)
    return [round(height, 4) for height in found]
