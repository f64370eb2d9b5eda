"""Quantities along training: lines over updates, and marks where each is halfway."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.beyond.along_training.tasks import TASKS
from notebooks.shared.marks import Mark, dot, grid, legend_of, line_with_band, name_ends
from notebooks.shared.style import ARROW, GREEN, INK, PART_COLOURS, blank, legend_above, task_name

TEMPORAL, INPUT = PART_COLOURS["temporal"], PART_COLOURS["input"]
ROSE = "#aa4499"
NAMES = {task: task_name(task) for task in TASKS}
NAMES |= {"copying_sample": "copying samples", "copying_permutation": "copying permutations"}
ALONG = {  # quantity → label at the end of its line, colour
    "temporal": ("rebuilt from positions", TEMPORAL),
    "translation": ("words known (β)", GREEN),
    "token_accuracy": ("word accuracy", INK),
}
TAKEOVERS = {
    "temporal": Mark("temporal terms", TEMPORAL, shift=0.36),
    "input": Mark("input terms", INPUT, "s", shift=0.216),
    "with_input": Mark("terms with an input component", INPUT, "D", shift=0.072, filled=False),
    "on_word": Mark("attention on the correct word", ROSE, "^", shift=-0.072),
    "translation": Mark("translation (β on the correct word)", GREEN, shift=-0.216),
    "word_accuracy": Mark("largest β on the correct word", GREEN, "v", shift=-0.36, filled=False),
}
NOTES = (  # task, quantity, what is said of it, how far to the right and above
    ("one_to_one", "temporal", "positions come first", (1.3, 0.05)),
    ("multi30k_en_fr", "with_input", "words before their translation", (0.5, -0.33)),
    ("reordering", "word_accuracy", "the correct word has the largest probe", (0.8, -0.02)),
)
ANSWERS = {  # what the chapter's question is about, in its words
    "temporal": Mark("attention follows positions", TEMPORAL, shift=0.3),
    "input": Mark("attention follows words", INPUT, "s", shift=0.15),
    "word_accuracy": Mark("the correct word is ranked first", GREEN, "v", shift=0.0, filled=False),
    "on_word": Mark("attention finds the correct word", ROSE, "^", shift=-0.15),
    "translation": Mark("the word can be translated", GREEN, shift=-0.3),
}
ANSWERED = (
    ("one_to_one", "temporal", "positions come first", (1.0, 0.05)),
    ("multi30k_en_fr", "input", "words before their translation", (-4.4, -0.25)),
    ("copying_sample", "word_accuracy", "ranked first long before attention finds it", (-3.4, 0.33)),
)
THIN = ("token_accuracy", "agreement_by_chance")  # lines for comparison
TICKS = (2, 8, 32, 128, 512, 2048)  # updates

Styles = Mapping[str, tuple[str, str, str]]  # quantity → label, colour, line style


def across(steps: pd.Series | float) -> pd.Series | float:
    """Where a number of updates is on the logarithmic axis; none is at 0."""
    return np.log2(1 + steps)


def updates_axis(axes: Axes, last: float, ticks: Sequence[int] = TICKS) -> None:
    """Write updates below an axis, as far as the place of the last one."""
    shown = [0, *(step for step in ticks if across(step) <= last)]
    axes.set_xticks([across(step) for step in shown], [f"{step:,}" for step in shown])
    axes.set_xlabel("updates")


def two_tasks(courses: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Draw one-to-one translation and copying permutations, or else the first two tasks."""
    chosen = [task for task in ("one_to_one", "copying_permutation") if task in tasks] or tasks[:2]
    if not chosen:
        return blank()
    learned = courses[courses["attention"] == "learned"]
    with grid(1, len(chosen), size=(8.6, 3.4), sharey=True) as (figure, (panels,)):
        for axes, task in zip(panels, chosen, strict=True):
            draw_named_lines(axes, learned[learned["task"] == task])
            axes.set_ylim(-0.06, 1.15)
            axes.set_title(NAMES[task], loc="left")
        panels[0].set_ylabel("share, or similarity\nbeyond uniform attention")
    return figure


def draw_named_lines(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw the quantities of :data:`ALONG` of one task, each with its name at the end."""
    ends = {}
    last = across(courses["step"].max())
    for quantity, (label, colour) in ALONG.items():
        rows = courses[courses["quantity"] == quantity].dropna(subset="value").sort_values("step")
        if len(rows):
            line_with_band(axes, across(rows["step"]), rows, colour, band=0.14, lw=2)
            ends[label] = (rows["value"].iloc[-1], colour)
    name_ends(axes, ends, last, closest=0.085)
    updates_axis(axes, last)
    axes.set_xlim(-0.1, last * 1.5)


def takeovers(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw a mark at the update at which each quantity is halfway, task by task."""
    figure = halfway(result, tasks, TAKEOVERS, NOTES, room=1.6)
    rows = {(row["task"], row["quantity"]): row for row in result.tables["takeovers"]}
    for axes in figure.axes[:1] if tasks else ():
        for place, task in enumerate(reversed(tasks)):
            for quantity, mark in TAKEOVERS.items():
                say_how_many_never(axes, rows[task, quantity], mark, (last_of(result), place + mark.shift))
    return figure


def order_of_events(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw the quantities that answer the question, where they rise in most networks."""
    return halfway(result, tasks, ANSWERS, ANSWERED, room=0.4)


def last_of(result: Result) -> float:
    return np.log2(max(*(row["step"] for row in result.tables["courses"]), 8))


def halfway(
    result: Result, tasks: Sequence[str], marks: Mapping[str, Mark], notes: Sequence[tuple], *, room: float
) -> Figure:
    """Draw a row for each task; ``room`` is left beyond the last update, in doublings."""
    if not tasks:
        return blank()
    rows = {(row["task"], row["quantity"]): row for row in result.tables["takeovers"]}
    last = last_of(result)
    places = {task: len(tasks) - 1 - above for above, task in enumerate(tasks)}
    with grid(1, 1, size=(8.6, 0.95 * len(tasks) + 1.4)) as (figure, ((axes,),)):
        for task, place in places.items():
            if place:
                axes.axhline(place - 0.5, color="#dddddd", lw=0.8)
            for quantity, mark in marks.items():
                if marks is TAKEOVERS or rises_in_most(rows[task, quantity]):
                    draw_takeover(axes, rows[task, quantity], mark, place + mark.shift)
        axes.set_yticks(list(places.values()), [NAMES[task] for task in places])
        axes.set_ylim(-0.55, len(tasks) - 0.45)
        powers = range(int(last) + 1)
        axes.set_xticks(powers, [f"{2**power:,}" for power in powers])
        axes.set_xlim(-1.1, last + room)
        axes.set_xlabel("updates until it is halfway to its final value")
        for task, quantity, text, (right, up) in notes:
            if task in places and rows[task, quantity]["value"] is not None:
                x, y = rows[task, quantity]["value"], places[task] + marks[quantity].shift
                axes.annotate(text, (x, y), (x + right, y + up), fontsize=9, va="center", arrowprops=ARROW)
        legend_of(figure, marks.values(), ncols=3, mew=1.4, ms=6, handletextpad=0.3)
    return figure


def rises_in_most(row: Mapping) -> bool:
    return row["n"] > row["left_out"]


def draw_takeover(axes: Axes, row: Mapping, mark: Mark, height: float) -> None:
    dot(axes, row, height, mark.colour, marker=mark.marker, filled=mark.filled, ms=6, mew=1.4)


def say_how_many_never(axes: Axes, row: Mapping, mark: Mark, end: tuple[float, float]) -> None:
    """Say beyond the last update, where some networks never get halfway, how many they are."""
    left_out = row["left_out"]
    if not left_out:
        return
    networks = left_out + row["n"]
    text = "never" if left_out == networks else f"never in {left_out} of {networks}"
    last, height = end
    axes.plot(last + 0.25, height, mark.marker, color=mark.colour, mfc="white", ms=4, mew=1, alpha=0.7)
    axes.text(last + 0.4, height, text, color=mark.colour, fontsize=8, va="center")


def task_panels(courses: pd.DataFrame, tasks: Sequence[str], styles: Styles, ylabel: str) -> Figure:
    """Draw a panel for each task, a line for each quantity."""
    if not tasks:
        return blank()
    learned = courses[courses["attention"] == "learned"]
    columns = 2 if len(tasks) in (2, 4) else 3
    rows = -(-len(tasks) // columns)
    with grid(rows, columns, size=(8.6, 2.5 * rows + 0.5), sharey=True) as (figure, panels):
        for axes in panels.flat[len(tasks) :]:
            axes.set_visible(False)
        for axes, task in zip(panels.flat, tasks, strict=False):
            of_task = learned[learned["task"] == task]
            for quantity, (label, colour, line) in styles.items():
                draw_quantity(axes, of_task, quantity, label=label, color=colour, ls=line)
            finish(axes, task)
        for row in panels:
            row[0].set_ylabel(ylabel)
        legend_above(figure, len(styles))
    return figure


def draw_quantity(axes: Axes, courses: pd.DataFrame, quantity: str, *, color: str, **line: object) -> None:
    """Draw a quantity of one task over updates; what is there for comparison is thin."""
    rows = courses[courses["quantity"] == quantity]
    if quantity in THIN:
        line_with_band(axes, across(rows["step"]), rows, color, band=0.06, lw=1.0, zorder=1, **line)
    else:
        line_with_band(axes, across(rows["step"]), rows, color, band=0.14, lw=1.9, zorder=2, **line)


def finish(axes: Axes, task: str, ticks: Sequence[int] = TICKS) -> None:
    """Write the title of a task's panel, and an axis of updates."""
    axes.set_title(NAMES[task], loc="left")
    axes.set_ylim(-0.06, 1.06)
    last = axes.dataLim.x1
    updates_axis(axes, last, ticks)
    axes.set_xlim(-0.1, last + 0.1)
