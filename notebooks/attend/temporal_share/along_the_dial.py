"""Shares and effects of the parts over the dial: by three readings, and on either side of a score."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import error_bar
from notebooks.shared.style import ARROW, INK, PART_COLOURS, PART_NAMES, PART_SYMBOLS, style
from notebooks.shared.suite import DIAL

Lines = dict[str, tuple[str, str, str]]  # column → label, colour and dashes
KIND = "AED"
BY_READING: dict[str, Lines] = {
    "own terms": {
        "temporal_share": ("μ·μ", PART_COLOURS["temporal"], "-"),
        "input_share": ("χ·χ", PART_COLOURS["input"], "-"),
        "residual_own": ("Δ·Δ", PART_COLOURS["residual"], "-"),
        "temporal_input_delta": ("μ·(χ+Δ)", PART_COLOURS["temporal"], "--"),
    },
    "split shares": {f"{part}_split": (PART_SYMBOLS[part], PART_COLOURS[part], "-") for part in PART_NAMES},
    "effects of exchange": {
        f"{part}_moves": (PART_SYMBOLS[part], PART_COLOURS[part], "-") for part in PART_NAMES
    },
}
SIDES = {"query": "queries (decoder)", "keys": "keys (encoder)"}
APART = 0.075  # between the names of two lines


def settings_of(result: Result) -> dict[str, int]:
    """Return the settings of the dial that a result has: task → percent of sentences."""
    return {task: int(task.rpartition("_")[2]) for task in DIAL if task in result.values["by_task"]}


def has_the_dial(result: Result) -> bool:
    """Return True if a result has three settings of the dial or more, each with recurrent networks."""
    settings = settings_of(result)
    return len(settings) > 2 and all(KIND in result.values["by_task"][task] for task in settings)


def by_readings(result: Result) -> Figure:
    """Draw a panel for each way to count a part."""
    with style():
        figure = Figure(figsize=(8.6, 3.6))
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (reading, lines) in zip(panels, BY_READING.items(), strict=True):
            draw_lines(axes, result, lines)
            axes.set_title(reading, loc="left", fontsize=10)
            axes.set_xlim(-4, 150 if reading == "own terms" else 120)
        panels[0].annotate(
            "the cross term that\nown terms leave out", (60, 0.52), (12, 0.99), fontsize=8.5, va="top",
            arrowprops=ARROW,
        )  # fmt: skip
        panels[0].set_ylabel("share of the covariance, or attention moved")
    return figure


NAMED = {"temporal": "position", "input": "word", "residual": "memory"}


def by_exchange(result: Result) -> Figure:
    """Draw how far attention moves when a part is exchanged, with the parts named in plain words."""
    with style():
        figure = Figure(figsize=(6.4, 3.4))
        axes = figure.subplots()
        lines = {}
        for part, name in NAMED.items():
            lines[f"{part}_moves"] = f"another {name}", PART_COLOURS[part], "-"
        draw_lines(axes, result, lines)
        axes.set_xlim(-4, 135)
        axes.set_xlabel("sentences that may change their word order, %", fontsize=9)
        axes.set_ylabel("share of the attention that moves")
    return figure


def by_sides(result: Result) -> Figure:
    """Draw a panel for queries and one for keys: shares solid, effects of exchange dotted."""
    with style():
        figure = Figure(figsize=(8.6, 3.8))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (side, title) in zip(panels, SIDES.items(), strict=True):
            effects = {f"{side}_{part}_moves": ("", PART_COLOURS[part], ":") for part in PART_NAMES}
            shares = {f"{side}_{part}": (PART_SYMBOLS[part], PART_COLOURS[part], "-") for part in PART_NAMES}
            draw_lines(axes, result, effects)
            draw_lines(axes, result, shares)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlim(-4, 118)
        for dashes, label in (("-", "share of the covariance"), (":", "attention moved by exchange")):
            panels[1].plot([], [], color=INK, ls=dashes, label=label)
        panels[1].legend(loc="upper right", bbox_to_anchor=(1.0, 1.16), ncols=2, frameon=False, fontsize=8.5)
        panels[0].set_ylabel("share, or attention moved")
    return figure


def draw_lines(axes: Axes, result: Result, lines: Lines) -> None:
    """Draw numbers of recurrent networks along the dial, with the lines' names at their right ends."""
    by_task = result.values["by_task"]
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    ends = []
    for column, (label, colour, dashes) in lines.items():
        estimates = {x: by_task[task][KIND][column] for task, x in settings_of(result).items()}
        known = {x: estimate for x, estimate in estimates.items() if estimate["value"] is not None}
        heights = [estimate["value"] for estimate in known.values()]
        axes.plot(list(known), heights, "o", ls=dashes, color=colour, ms=4, lw=1.6)
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
        axes.text(105, height, label, va="center", color=ink, fontsize=9)
