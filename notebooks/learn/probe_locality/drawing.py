"""Log odds from single positions over training, and where they stand early and late."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style
from companion.results.result import Result

# Name, colour and line of each place.
LOOKS = {
    "keyword": ("at the keyword", PART_COLOURS["input"], "-"),
    "next": ("one after it", "#e69f00", "-"),
    "last": ("last position", PART_COLOURS["temporal"], "-"),
    "first": ("first position", "#56b4e9", "--"),
    "mean": ("mean over positions", INK, ":"),
}


def locality_courses(result: Result, until: int | None = None) -> Figure:
    """Means over networks of γ by update, their range as bands; left the start alone, right all of it.

    Args:
        until: last update of the left panel; by default as far as looks are close together, but no more than
            a third of the course.
    """
    rows = result.tables["courses"]
    steps = sorted({row["step"] for row in rows})
    until = max(min(steps[-1] // 3, result.config["until"]), steps[1]) if until is None else until
    with style():
        figure = Figure(figsize=(8.6, 3.9))
        for axes, last, title in zip(
            figure.subplots(1, 2), (until, steps[-1]), ("the first updates", "the whole course"), strict=True
        ):
            _draw(axes, rows, [step for step in steps if step <= last])
            axes.set_title(title, loc="left")
            axes.set_xlabel("updates")
        figure.axes[0].set_ylabel("log odds of the right label, γ")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False, columnspacing=1.2)
    return figure


def _draw(axes: Axes, rows: list[dict], steps: list[int]) -> None:
    for place, (label, colour, line) in LOOKS.items():
        values = np.array([[row[place] for row in rows if row["step"] == step] for step in steps])
        axes.fill_between(steps, values.min(1), values.max(1), color=colour, alpha=0.15, lw=0)
        axes.plot(steps, values.mean(1), color=colour, ls=line, lw=1.6, label=label)
    axes.axhline(0, color="#cccccc", lw=0.8, zorder=0)
