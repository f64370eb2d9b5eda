"""Dots with intervals over seeds: a row for each task and kind of model, a panel for each question."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.book.style import style, task_name
from companion.results.result import Result, kinds_of
from notebooks.shared.style import blank, row_name


@dataclass(frozen=True)
class Dot:
    """One quantity of every row: where it stands in the values of a kind, and how it is drawn."""

    key: str  # dotted, below ``<task>.<kind>``; leads to an interval or a plain number
    label: str
    colour: str
    marker: str = "o"  # filled unless ``open``
    open: bool = False
    shift: float = 0.0  # vertical place in the row, in rows; 0 is the middle


def dot_rows(
    result: Result, panels: dict[str, list[Dot]], *, xlabel: str,
    xlim: tuple[float, float] | None = (-0.02, 1.03), rows: list[tuple[str, dict]] | None = None,
    legend: list[Dot] | None = None, row_height: float = 0.56, columns: int = 4,
) -> Figure:  # fmt: skip
    """A panel for each title, side by side over the same rows; one legend above, by default the first's.

    ``rows`` are a label and what dots' keys lead into; by default all tasks and kinds of network.
    """
    rows = rows or [(f"{task_name(task)}, {row_name(kind)}", found) for task, kind, found in kinds_of(result)]
    if not rows:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, row_height * len(rows) + 1.7))
        grid = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[0]
        for axes, (title, dots) in zip(grid, panels.items(), strict=True):
            for place, (_, found) in enumerate(reversed(rows)):
                axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
                for dot in dots:
                    draw_dot(axes, dot, found, place)
            axes.set_title(title, loc="left")
            axes.set_xlabel(xlabel)
            if xlim is not None:
                axes.set_xlim(*xlim)
            axes.set_ylim(-0.6, len(rows) - 0.4)
        grid[0].set_yticks(range(len(rows)), [label for label, _ in reversed(rows)])
        shown = legend if legend is not None else next(iter(panels.values()))
        figure.legend(
            handles=[Line2D([], [], marker=dot.marker, label=dot.label, **_props(dot)) for dot in shown],
            loc="outside upper center", ncols=columns, frameon=False, fontsize=9, handletextpad=0.2,
            columnspacing=1.2,
        )  # fmt: skip
    return figure


def at(found: dict, key: str) -> dict | float | None:
    """What stands at a dotted key; None where nothing does."""
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def draw_dot(axes: Axes, dot: Dot, found: dict, place: float) -> None:
    """A dot and its interval in the row at a place."""
    interval = at(found, dot.key)
    if isinstance(interval, dict):
        value, low, high = interval["value"], interval["low"], interval["high"]
    else:
        value, low, high = interval, None, None
    if value is None:
        return
    height = place + dot.shift
    if low is not None:
        axes.plot([low, high], [height, height], color=dot.colour, lw=1.3, solid_capstyle="butt")
    axes.plot(value, height, dot.marker, **_props(dot))


def _props(dot: Dot) -> dict[str, object]:
    face = "white" if dot.open else dot.colour
    return {"color": dot.colour, "markerfacecolor": face, "markeredgewidth": 1.4, "ms": 5.5, "ls": ""}
