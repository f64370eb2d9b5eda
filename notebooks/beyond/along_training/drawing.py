"""Quantities along training: lines over updates, and marks where each is halfway."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.beyond.along_training.tasks import TASKS
from notebooks.shared.marks import Mark, dot, grid, legend_of, line_with_band, name_ends
from notebooks.shared.style import GREEN, INK, PART_COLOURS, blank, legend_above, task_name

TEMPORAL, INPUT = PART_COLOURS["temporal"], PART_COLOURS["input"]
ROSE = "#aa4499"
NAMES = {task: task_name(task) for task in TASKS}
NAMES |= {"copying_sample": "copying samples", "copying_permutation": "copying permutations"}
NAMES |= {"multi30k_en_fr": "captions"}
ALONG = {  # quantity → label at the end of its line, colour
    "temporal": ("by position", TEMPORAL),
    "translation": ("knows words", GREEN),
    "token_accuracy": ("correct words", INK),
}
FOUND = {  # title of a task's panel
    "one_to_one": "one-to-one: attention by position first",
    "copying_permutation": "permutations: copied, never known",
}
TAKEOVERS = {
    "temporal": Mark("by position (μ·μ)", TEMPORAL, shift=0.36),
    "input": Mark("by word (χ·χ)", INPUT, "s", shift=0.216),
    "with_input": Mark("terms with a χ", INPUT, "D", shift=0.072, filled=False),
    "on_word": Mark("attends, by share", ROSE, "^", shift=-0.072),
    "translation": Mark("knows, by share", GREEN, shift=-0.216),
    "word_accuracy": Mark("knows, by rank", GREEN, "v", shift=-0.36, filled=False),
}
KNOWS, ATTENDS = Mark("knows it", GREEN), Mark("attends to it", ROSE, "^")
EVENTS = {  # knowledge and attention, each measured by rank and by share
    "word_accuracy": KNOWS,
    "attention_accuracy": ATTENDS,
    "translation": KNOWS,
    "on_word": ATTENDS,
    "temporal": TAKEOVERS["temporal"],
    "input": TAKEOVERS["input"],
}
IN_ORDER = ("one_to_one", "copying_sample", "reordering", "multi30k_en_fr")  # of the rows of each panel
ABOVE, BESIDE = (0, 0.33), (0.35, 0)  # how far to the right of a mark its name is, and how far above
ANSWERS = (  # title, names: quantity, row, text, which of its ends is at the mark, where
    (
        "By rank, a network knows the correct word\nbefore it attends to it",
        (
            ("word_accuracy", "copying_sample", "knows it", "right", (0.4, 0.33)),
            ("attention_accuracy", "copying_sample", "attends to it", "left", (-0.4, 0.33)),
        ),
    ),
    (
        "By share, the two come close together",
        (
            ("translation", "one_to_one", "knows it", "right", (-0.35, 0)),
            ("on_word", "one_to_one", "attends to it", "left", BESIDE),
        ),
    ),
    (
        "Attention by position can come long before\nknowledge by share",
        (
            ("temporal", "one_to_one", "by position", "center", ABOVE),
            ("input", "multi30k_en_fr", "by word", "center", ABOVE),
            ("translation", "multi30k_en_fr", "knows it", "left", BESIDE),
        ),
    ),
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


def two_tasks(result: Result, courses: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Draw one-to-one translation and copying permutations, or else the first two tasks."""
    chosen = [task for task in ("one_to_one", "copying_permutation") if task in tasks] or tasks[:2]
    if not chosen:
        return blank()
    learned = courses[courses["attention"] == "learned"]
    with grid(len(chosen), 1, size=(3.7, 2.7 * len(chosen) + 0.4)) as (figure, panels):
        for (axes,), task in zip(panels, chosen, strict=True):
            draw_named_lines(axes, learned[learned["task"] == task])
            last = across(learned["step"][learned["task"] == task].max())
            draw_chance(axes, result.values["last"][task]["chance"]["value"], last)
            axes.set_ylim(-0.06, 1.15)
            axes.set_title(FOUND.get(task, NAMES[task]), loc="left")
            axes.set_ylabel("share, or similarity")
            axes.spines["bottom"].set_bounds(0, last)
    return figure


def draw_chance(axes: Axes, chance: float, last: float) -> None:
    """Draw the share of β on the correct word of a network that knows no words, as far as lines go."""
    axes.plot([0, last], [chance, chance], color=GREEN, lw=1, ls=":", zorder=0)
    axes.text(last, chance + 0.01, "chance", color=GREEN, fontsize=9, ha="right", va="bottom")


def draw_named_lines(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw the quantities of :data:`ALONG` of one task, each with its name at the end."""
    ends = {}
    last = across(courses["step"].max())
    for quantity, (label, colour) in ALONG.items():
        rows = courses[courses["quantity"] == quantity].dropna(subset="value").sort_values("step")
        if len(rows):
            line_with_band(axes, across(rows["step"]), rows, colour, band=0.14, lw=2)
            ends[label] = (rows["value"].iloc[-1], colour)
    name_ends(axes, ends, last, closest=0.1)
    updates_axis(axes, last)
    axes.set_xlim(-0.1, last * 1.45)


def takeovers(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw a mark at the update at which each quantity is halfway, task by task."""
    if not tasks:
        return blank()
    rows = {(row["task"], row["quantity"]): row for row in result.tables["takeovers"]}
    last = last_of(result)
    places = {task: len(tasks) - 1 - above for above, task in enumerate(tasks)}
    with grid(1, 1, size=(8.6, 0.95 * len(tasks) + 1.4)) as (figure, ((axes,),)):
        for task, place in places.items():
            if place:
                axes.axhline(place - 0.5, color="#dddddd", lw=0.8)
            for quantity, mark in TAKEOVERS.items():
                height = place + mark.shift
                draw_takeover(axes, rows[task, quantity], mark, height)
                say_how_many_without_date(axes, rows[task, quantity], mark, (last, height))
        axes.set_yticks(list(places.values()), [NAMES[task] for task in places])
        axes.set_ylim(-0.55, len(tasks) - 0.45)
        powers = range(int(last) + 1)
        axes.set_xticks(powers, [f"{2**power:,}" for power in powers])
        axes.set_xlim(-1.1, last + 1.8)
        axes.set_xlabel("updates until it is halfway to its final value")
        legend_of(figure, TAKEOVERS.values(), ncols=3, mew=1.4, ms=6, handletextpad=0.3)
    return figure


def order_of_events(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw a panel for each answer, and in it a row for each task: its marks, joined."""
    rows = {(row["task"], row["quantity"]): row for row in result.tables["takeovers"]}
    of = [task for task in IN_ORDER if task in tasks]
    if not of:
        return blank()
    early = risen_at_the_first_look(result)
    size = (3.7, 0.38 * len(ANSWERS) * (len(of) + 0.3) + 1.9)
    with grid(len(ANSWERS), 1, size=size, sharex=True) as (figure, panels):
        for (axes,), (title, names) in zip(panels, ANSWERS, strict=True):
            places = {task: place for place, task in enumerate(reversed(of))}
            for task, place in places.items():
                events = {name: rows[task, name] for name, *_ in names}
                draw_order(axes, events, place)
                for name in events:
                    if (task, name) in early and not rises_in_most(events[name]):
                        draw_early(axes, early[task, name], EVENTS[name], place)
                if "temporal" in events and not rises_in_most(events["temporal"]):
                    axes.text(0.2, place, "by position: no date", color=TEMPORAL, va="center")
            for quantity, asked, text, end, (right, up) in names:
                task = asked if asked in places else of[0]
                if rows[task, quantity]["value"] is not None:
                    x, y = rows[task, quantity]["value"] + right, places[task] + up
                    axes.text(x, y, text, color=EVENTS[quantity].colour, ha=end, va="center")
            axes.set_title(title, loc="left", x=-0.34)
            axes.set_yticks(list(places.values()), [NAMES[task] for task in places], fontsize=9.5)
            axes.set_ylim(-0.4, len(of) - 0.4)
            axes.tick_params(left=False)
            axes.spines["left"].set_visible(False)
        last = last_of(result)
        powers = range(1, int(last) + 1, 2)
        axes.set_xticks(powers, [f"{2**power:,}" for power in powers])
        axes.set_xlim(0, last)
        axes.set_xlabel("updates until halfway to the final value")
    return figure


def draw_order(axes: Axes, events: Mapping[str, Mapping], place: float) -> None:
    """Join the marks of what rises in most networks on one task, in one row."""
    risen = {name: row for name, row in events.items() if rises_in_most(row)}
    updates = [row["value"] for row in risen.values()]
    if updates:
        axes.plot([min(updates), max(updates)], [place, place], color="#dddddd", lw=5, zorder=0)
    for name in sorted(risen, key=list(EVENTS).index):
        draw_takeover(axes, risen[name], EVENTS[name], place)


def draw_early(axes: Axes, step: float, mark: Mark, place: float) -> None:
    """Draw that a quantity was past the middle when it was first looked at after the start."""
    axes.plot(np.log2(step), place, "<", color=mark.colour, mfc="white", ms=6, mew=1.4)
    axes.text(np.log2(step) + 0.35, place, f"by update {step:.0f}", color=mark.colour, va="center")


def risen_at_the_first_look(result: Result) -> dict[tuple[str, str], float]:
    """Return, by task and quantity, the first update looked at, where the mean is past the middle there."""
    courses = pd.DataFrame(result.tables["courses"])
    learned = courses[courses["attention"] == "learned"].dropna(subset="value").sort_values("step")
    steps = {}
    for key, rows in learned.groupby(["task", "quantity"]):
        values = rows["value"].to_list()
        if (
            len(values) > 2
            and values[-1] - values[0] >= result.config["least"]
            and 2 * values[1] >= values[0] + values[-1]
        ):
            steps[key] = float(rows["step"].iloc[1])
    return steps


def last_of(result: Result) -> float:
    return np.log2(max(*(row["step"] for row in result.tables["courses"]), 8))


def rises_in_most(row: Mapping) -> bool:
    return row["n"] > row["left_out"]


def draw_takeover(axes: Axes, row: Mapping, mark: Mark, height: float) -> None:
    dot(axes, row, height, mark.colour, marker=mark.marker, filled=mark.filled, ms=6, mew=1.4)


def say_how_many_without_date(axes: Axes, row: Mapping, mark: Mark, end: tuple[float, float]) -> None:
    """Say beyond the last update how many networks have no date: never halfway, or at the first look."""
    left_out = row["left_out"]
    if not left_out:
        return
    networks = left_out + row["n"]
    text = "no date" if left_out == networks else f"no date in {left_out} of {networks}"
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
