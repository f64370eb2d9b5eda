"""Effects and shares of the parts over the dial, in both sides of a score together and in each."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import error_bar
from notebooks.shared.style import PART_COLOURS, style
from notebooks.shared.suite import DIAL

Lines = dict[str, tuple[str, str]]  # column → label and colour
KIND = "AED"
NAMED = {"temporal": "temporal part", "input": "input part", "residual": "memory"}


def lines_of_parts(column: str, names: Mapping[str, str] = NAMED) -> Lines:
    """Return a line for each part, from the name of its column and what the line is called."""
    return {column.format(part): (name, PART_COLOURS[part]) for part, name in names.items()}


BY_SHARES = {
    "own terms": {
        "temporal_share": (NAMED["temporal"], PART_COLOURS["temporal"]),
        "input_share": (NAMED["input"], PART_COLOURS["input"]),
        "residual_own": (NAMED["residual"], PART_COLOURS["residual"]),
    },
    "split shares": lines_of_parts("{}_split"),
}
SIDES = {"query": "exchanged in the queries", "keys": "exchanged in the keys"}
MOVES = "share of the attention that moves"
NARROW = 4.7  # inches, which a telephone shows whole
APART = 0.075  # between the names of two lines


def settings_of(result: Result) -> dict[str, int]:
    """Return the settings of the dial that a result has: task → percent of sentences."""
    return {task: int(task.rpartition("_")[2]) for task in DIAL if task in result.values["by_task"]}


def has_the_dial(result: Result) -> bool:
    """Return True if a result has three settings of the dial or more, each with recurrent networks."""
    settings = settings_of(result)
    return len(settings) > 2 and all(KIND in result.values["by_task"][task] for task in settings)


def by_exchange(
    result: Result,
    names: Mapping[str, str] = NAMED,
    *,
    title: str = "The freer the order, the less attention\nanother temporal part moves",
    width: float = 3.65,
    right: float = 155,
) -> Figure:
    """Draw how far attention moves when a part is exchanged; the axis ends at ``right``, after the names."""
    with style():
        figure = Figure(figsize=(width, 3.4))
        axes = figure.subplots()
        draw_lines(axes, result, lines_of_parts("{}_moves", names))
        axes.set_xlim(-4, right)
        axes.set_xlabel("sentences that may change their word order, %", fontsize=9)
        axes.set_ylabel(MOVES)
        axes.set_title(title, loc="left", fontsize=10)
    return figure


def by_shares(result: Result) -> Figure:
    """Draw a panel for own terms and one for split shares."""
    return in_one_column(result, BY_SHARES, "share of the scores’ covariance")


def by_sides(result: Result) -> Figure:
    """Draw how far attention moves in a panel for queries and one for keys."""
    panels = {title: lines_of_parts(f"{side}_{{}}_moves") for side, title in SIDES.items()}
    return in_one_column(result, panels, MOVES)


def by_shares_of_sides(result: Result) -> Figure:
    """Draw the terms in which a part is on one side, in a panel for queries and one for keys."""
    panels = {
        "terms of the queries": lines_of_parts("query_{}"),
        "terms of the keys": lines_of_parts("keys_{}"),
    }
    return in_one_column(result, panels, "share of the scores’ covariance")


def in_one_column(result: Result, lines_of_panels: dict[str, Lines], label: str) -> Figure:
    """Draw a panel for each title, one below the other; all have the same scale."""
    with style():
        figure = Figure(figsize=(NARROW, 2.9 * len(lines_of_panels)))
        panels = figure.subplots(len(lines_of_panels), 1, sharex=True)
        for axes, (title, lines) in zip(panels, lines_of_panels.items(), strict=True):
            draw_lines(axes, result, lines)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlim(-4, 146)
            axes.set_ylabel(label, fontsize=9)
            axes.label_outer()
    return figure


def draw_lines(axes: Axes, result: Result, lines: Lines) -> None:
    """Draw numbers of recurrent networks along the dial, with the lines' names at their right ends."""
    by_task = result.values["by_task"]
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    ends = []
    for column, (label, colour) in lines.items():
        estimates = {x: by_task[task][KIND][column] for task, x in settings_of(result).items()}
        known = {x: estimate for x, estimate in estimates.items() if estimate["value"] is not None}
        heights = [estimate["value"] for estimate in known.values()]
        axes.plot(list(known), heights, "o-", color=colour, ms=4, lw=1.6)
        for x, estimate in known.items():
            error_bar(axes, estimate, x, colour, upright=True, lw=1.2)
        if heights:
            ends.append((heights[-1], label, colour))
    write_names(axes, ends)
    axes.set_ylim(-0.08, 1.05)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.set_xlabel("sentences that may reorder, %", fontsize=9)


def write_names(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write the name of each line at its right end, moved apart where lines end together."""
    height = -1.0
    for value, label, colour in sorted(ends):
        height = max(value, height + APART)
        ink = "#666666" if colour == PART_COLOURS["residual"] else colour
        axes.text(105, height, label, va="center", color=ink, fontsize=9.5)
