"""Small panels for many tasks: a column a task, a row an architecture, in bands like lines of text."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.book.style import style, task_name
from notebooks.shared.style import blank

PER_BAND = 4


def panels(
    tasks: list[str],
    kinds: list[str],
    draw: Callable[[Axes, str, str, bool, bool], bool],
    *,
    width: float,
    height: float,
) -> Figure:
    """A figure of one panel for each task and kind.

    Args:
        draw: called with (axes, task, kind, leftmost, lowest); False leaves the panel empty.
        width, height: of a panel, in inches.
    """
    if not tasks or not kinds:
        return blank()
    bands = [tasks[first : first + PER_BAND] for first in range(0, len(tasks), PER_BAND)]
    columns = max(min(len(tasks), PER_BAND), 2)
    rows = len(bands) * len(kinds)
    with style():
        figure = Figure(figsize=(width * columns, height * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for band, members in enumerate(bands):
            for below, kind in enumerate(kinds):
                for column, task in enumerate(members):
                    axes = grid[band * len(kinds) + below, column]
                    axes.set_title(f"{task_name(task)}, {kind}")
                    axes.set_visible(draw(axes, task, kind, column == 0, below == len(kinds) - 1))
    return figure
