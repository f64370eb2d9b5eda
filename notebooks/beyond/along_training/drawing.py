"""Along training: what attention is made of and what is known, when each takes over, and their agreement."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.plots.style import INK, PART_COLOURS, style, task_name
from companion.results.result import Result
from notebooks.beyond.along_training.experiment import TASKS
from notebooks.shared.style import blank

# Quantity: label, colour, line.
GREEN, PURPLE, GREY = "#009e73", "#aa4499", "#8a8a8a"
COURSES = {
    "temporal": ("temporal terms", PART_COLOURS["temporal"], "-"),
    "input": ("input terms", PART_COLOURS["input"], "-"),
    "with_input": ("terms with an input", PART_COLOURS["input"], "--"),
    "translation": ("translation", GREEN, "-"),
    "token_accuracy": ("words right", GREY, "-"),
}
KNOWLEDGE = {
    "on_word": ("attention on it", PURPLE, "-"),
    "translation": ("translation", GREEN, "-"),
    "word_accuracy": ("largest β on it", GREEN, ":"),
    "agreement": ("agreement", INK, "-"),
    "agreement_by_chance": ("by chance", INK, ":"),
}
DOTS = {
    "temporal": ("temporal terms", PART_COLOURS["temporal"], "o"),
    "input": ("input terms", PART_COLOURS["input"], "s"),
    "with_input": ("terms with an input component", PART_COLOURS["input"], "D"),
    "on_word": ("attention on the right word", PURPLE, "^"),
    "translation": ("translation (β on the right word)", GREEN, "o"),
    "word_accuracy": ("largest β on the right word", GREEN, "v"),
}
OPEN = ("with_input", "word_accuracy")
NAMES = {"copying_sample": "copying samples", "copying_permutation": "copying permutations"}
COLUMNS = 2


def name_of(task: str) -> str:
    """A task as the chapter calls it."""
    return NAMES.get(task, task_name(task))


def tasks_of(result: Result) -> list[str]:
    """Tasks that the result has, in the order of the figures."""
    return [task for task in TASKS if task in result.values["last"]]


def courses(result: Result) -> Figure:
    """What terms rebuild of attention, knowledge of words and words right, a panel a task."""
    return _panels(result, COURSES, "share, or similarity\nbeyond uniform")


def knowledge(result: Result) -> Figure:
    """Attention on the right word, knowledge of it, and the agreement of the two with its chance."""
    return _panels(result, KNOWLEDGE, "share of words,\nof attention or of β")


def _panels(result: Result, shown: dict[str, tuple[str, str, str]], label: str) -> Figure:
    tasks = tasks_of(result)
    if not tasks:
        return blank()
    rows = -(-len(tasks) // COLUMNS)
    with style():
        figure = Figure(figsize=(8.6, 2.75 * rows + 0.2))
        grid = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True)
        for axes in grid.flat[len(tasks) :]:
            axes.set_visible(False)
        for axes, task in zip(grid.flat, tasks, strict=False):
            ends = [_draw(axes, result, task, quantity, look) for quantity, look in shown.items()]
            axes.set_title(name_of(task), loc="left")
            axes.set_ylim(-0.06, 1.06)
            _update_axis(axes, max(end[0] for end in ends))
            _label_ends(axes, ends)
            axes.set_xlabel("updates")
        for row in grid:
            row[0].set_ylabel(label)
    return figure


def _draw(axes: Axes, result: Result, task: str, quantity: str, look: tuple[str, str, str]) -> tuple:
    """Draws a line and its band; returns where it ends, with its label and colour."""
    label, colour, line = look
    rows = [
        row
        for row in result.tables["courses"]
        if (row["task"], row["attention"], row["quantity"]) == (task, "learned", quantity)
    ]
    across = [np.log2(1 + row["step"]) for row in rows]
    thin = quantity in ("token_accuracy", "agreement_by_chance")
    values = [np.nan if row["value"] is None else row["value"] for row in rows]
    axes.plot(across, values, color=colour, ls=line, lw=1.0 if thin else 1.9, zorder=1 if thin else 2)
    low, high = ([np.nan if row[end] is None else row[end] for row in rows] for end in ("low", "high"))
    axes.fill_between(across, low, high, color=colour, alpha=0.06 if thin else 0.14, lw=0)
    return across[-1], values[-1], label, colour


def _update_axis(axes: Axes, end: float) -> None:
    steps = [0, *(step for step in (2, 8, 32, 128, 512, 2048) if np.log2(1 + step) <= end)]
    axes.set_xticks([np.log2(1 + step) for step in steps], [f"{step:,}" for step in steps])
    axes.set_xlim(-0.1, end * 1.5)


def _label_ends(axes: Axes, ends: list[tuple], least: float = 0.105) -> None:
    """Labels at the ends of lines, moved apart where they would touch."""
    ordered = sorted((end for end in ends if np.isfinite(end[1])), key=lambda end: end[1])
    for (across, value, label, colour), height in zip(
        ordered, spread([end[1] for end in ordered], least), strict=True
    ):
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


def takeovers(result: Result) -> Figure:
    """Takeover steps as dots with intervals: tasks down, quantities by colour and shape."""
    tasks = tasks_of(result)
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 0.95 * len(tasks) + 1.4))
        axes = figure.subplots()
        heights = np.linspace(0.36, -0.36, len(DOTS))
        place_of = {task: len(tasks) - 1 - i for i, task in enumerate(tasks)}
        largest = max(max(row["step"] for row in result.tables["courses"]), 8)
        for task, place in place_of.items():
            if place:
                axes.axhline(place - 0.5, color="#dddddd", lw=0.8)
            for (quantity, look), height in zip(DOTS.items(), heights, strict=True):
                _dot(axes, _takeover(result, task, quantity), place + height, quantity, look, largest)
        axes.set_yticks(list(place_of.values()), [name_of(task) for task in tasks])
        axes.set_ylim(-0.55, len(tasks) - 0.45)
        ticks = [2**power for power in range(int(np.log2(largest)) + 1)]
        axes.set_xticks([np.log2(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
        axes.set_xlim(-1.1, np.log2(largest) + 1.6)
        axes.set_xlabel("updates at which half of the way is made")
        figure.legend(
            handles=[_handle(quantity, *look) for quantity, look in DOTS.items()],
            loc="outside upper center", ncols=3, frameon=False, fontsize=9, handletextpad=0.3,
        )  # fmt: skip
    return figure


def _takeover(result: Result, task: str, quantity: str) -> dict:
    return next(
        row for row in result.tables["takeovers"] if (row["task"], row["quantity"]) == (task, quantity)
    )


def _dot(axes: Axes, row: dict, height: float, quantity: str, look: tuple, largest: int) -> None:
    _, colour, marker = look
    if row["value"] is not None:
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [height] * 2, color=colour, lw=1.4, clip_on=True)
        face = "white" if quantity in OPEN else colour
        axes.plot(row["value"], height, marker, color=colour, mfc=face, ms=6, mew=1.4)
    if row["left_out"]:
        networks = row["left_out"] + row["n"]
        text = "never" if row["left_out"] == networks else f"never in {row['left_out']} of {networks}"
        axes.plot(np.log2(largest) + 0.25, height, marker, color=colour, mfc="white", ms=4, mew=1, alpha=0.7)
        axes.text(np.log2(largest) + 0.4, height, text, color=colour, fontsize=8, va="center")


def _handle(quantity: str, label: str, colour: str, marker: str) -> Line2D:
    face = "white" if quantity in OPEN else colour
    return Line2D([], [], color=colour, marker=marker, mfc=face, mew=1.4, ms=6, ls="", label=label)


def held_uniform(result: Result) -> Figure:
    """Translation along training with attention held uniform and learned, a panel a task."""
    tasks = [task for task in TASKS if task in result.values["uniform"]]
    if not tasks:
        return blank()
    looks: dict[str, tuple[str, str]] = {"learned": (GREEN, "-"), "uniform": ("#cc8800", "--")}
    with style():
        figure = Figure(figsize=(8.6, 2.7))
        for axes, task in zip(
            figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0], tasks, strict=True
        ):
            ends = [_twin(axes, result, task, attention, *look) for attention, look in looks.items()]
            ends = [end for end in ends if end]
            chance = result.values["uniform"][task]["chance"]["value"]
            axes.axhline(chance, color=INK, lw=0.8, ls=":")
            axes.text(0, chance - 0.02, "chance", fontsize=8, va="top")
            axes.set_title(name_of(task), loc="left")
            axes.set_ylim(-0.06, 1.06)
            _update_axis(axes, max(end[0] for end in ends))
            _label_ends(axes, ends)
            axes.set_xlabel("updates")
        figure.axes[0].set_ylabel("share of β\non the right word")
    return figure


def _twin(axes: Axes, result: Result, task: str, attention: str, colour: str, line: str) -> tuple | None:
    rows = [
        row
        for row in result.tables["courses"]
        if (row["task"], row["attention"], row["quantity"]) == (task, attention, "translation")
    ]
    if not rows:
        return None
    across = [np.log2(1 + row["step"]) for row in rows]
    values = [row["value"] for row in rows]
    axes.plot(across, values, color=colour, ls=line, lw=1.9)
    if rows[0]["low"] is not None:
        low, high = ([row[end] for row in rows] for end in ("low", "high"))
        axes.fill_between(across, low, high, color=colour, alpha=0.14, lw=0)
    return across[-1], values[-1], attention, colour


FIGURES: tuple[Callable[[Result], Figure], ...] = (courses, takeovers, knowledge, held_uniform)
