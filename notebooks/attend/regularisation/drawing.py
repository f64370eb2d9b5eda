"""Outcomes over levels of weight decay, hollow where networks have not learned their task."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.claims.presupposed import holds
from companion.results.result import Result
from notebooks.shared.marks import error_bar, grid, key_above
from notebooks.shared.style import INK, PART_COLOURS, blank, task_name
from notebooks.shared.summaries import level_key

GREY = PART_COLOURS["residual"]
SHOWN = {  # outcome → label, colour, line style
    "temporal_share": ("temporal share μ·μ", PART_COLOURS["temporal"], "-"),
    "residual_share": ("share of the five terms with Δ", GREY, "-"),
    "no_residual": ("attention rebuilt without residuals", INK, "-"),
    "accuracy": ("word accuracy", INK, ":"),
}
REMARKS = {  # task → words, level and outcome that they point to, their place
    "reordering_100": ("residuals stay while\nthe task is learned", 3, "residual_share", (1.5, 0.86))
}
TITLES = {
    "one_to_one": "One order for all sentences",
    "reordering_100": "All sentences may change their order",
}
NARROW = (4.7, 7.0)  # inches, which a telephone shows nearly whole
NAMED = {  # outcome → its name at the upper panel, and where
    "accuracy": ("words correct", (0.05, 1.03)),
    "temporal_share": ("share of position, μ·μ", (2.1, 0.73)),
    "no_residual": ("attention rebuilt from\nposition and word", (2.1, 0.33)),
    "residual_share": ("share of terms\nwith a residual Δ", (0.05, 0.21)),
}
ARROW = {"arrowstyle": "->", "color": INK, "lw": 0.9, "shrinkB": 4}

Levels = Mapping[str, Mapping]  # numbers of one kind of network on a task, by key of the level


def levels_of(result: Result) -> list[tuple[str, str]]:
    """Levels of weight decay, by key and as they are written."""
    return [(level_key(level), f"{level:g}") for level in result.config["weight_decay"]]


def two_tasks(result: Result) -> Figure:
    """Draw one-to-one translation and full reordering, with a remark on each."""
    kinds = result.values["levels"]
    tasks = [task for task in TITLES if "AED" in kinds.get(task, {})]
    if not tasks:
        return blank()
    with grid(len(tasks), 1, size=(NARROW[0], NARROW[1] / 2 * len(tasks)), sharex=True) as (figure, panels):
        for axes, task in zip(panels.flat, tasks, strict=True):
            draw_outcomes(axes, result, task, "AED")
            axes.set_title(TITLES[task], loc="left", fontsize=9.5, fontweight="bold")
            axes.set_yticks([0, 0.5, 1], ["none", "half", "all"])
            remark(axes, result, task)
        name_outcomes(panels.flat[0])
        panels.flat[-1].set_xlabel("weight decay")
    return figure


def name_outcomes(axes: Axes) -> None:
    """Write at each line what it is."""
    axes.set_ylim(-0.08, 1.16)
    for outcome, (name, place) in NAMED.items():
        _, colour, _ = SHOWN[outcome]
        ink = "#777777" if colour == GREY else colour
        axes.text(*place, name, color=ink, fontsize=9, va="bottom" if outcome != "residual_share" else "top")


def remark(axes: Axes, result: Result, task: str) -> None:
    """Write what is remarkable of a task, if its level was measured."""
    if task not in REMARKS:
        return
    text, place, outcome, written = REMARKS[task]
    levels = levels_of(result)
    if len(levels) <= place:
        return
    key, _ = levels[place]
    value = result.values["levels"][task]["AED"][key][outcome]["value"]
    axes.annotate(text, (place, value), written, fontsize=9, ha="center", va="center", arrowprops=ARROW)


def draw_outcomes(axes: Axes, result: Result, task: str, kind: str) -> None:
    """Draw all outcomes of one kind of network on a task."""
    numbers = result.values["levels"][task][kind]
    for outcome, (label, colour, line) in SHOWN.items():
        draw_outcome(axes, result, numbers, outcome, label=label, color=colour, ls=line)
    axes.axhline(0.5, color="#cccccc", lw=0.8, zorder=0)
    axes.set_ylim(-0.08, 1.08)


def draw_outcome(
    axes: Axes,
    result: Result,
    numbers: Levels,
    outcome: str,
    *,
    color: str,
    label: str | None,
    **line: object,
) -> None:
    """Draw one outcome over the levels, with its intervals; hollow where the task has not been learned."""
    measured = [key for key, _ in levels_of(result) if key in numbers]
    estimates = {place: numbers[key][outcome] for place, key in enumerate(measured)}
    known = {place: estimate for place, estimate in estimates.items() if estimate["value"] is not None}
    axes.plot(
        list(known),
        [estimate["value"] for estimate in known.values()],
        color=color,
        lw=1.4,
        label=label,
        **line,
    )
    for place, estimate in known.items():
        learned = holds("learned-cells", accuracy=numbers[measured[place]]["accuracy"]["value"])
        axes.plot(place, estimate["value"], "o", color=color, ms=5, mfc=color if learned else "white")
        error_bar(axes, estimate, place, color, upright=True, lw=1)
    names = [name for _, name in levels_of(result)]
    axes.set_xticks(range(len(measured)), names[: len(measured)], fontsize=8)


def all_tasks(result: Result, kind: str) -> Figure:
    """Draw a panel for each task of one kind of network, three in a row."""
    tasks = [task for task in result.config["task"] if kind in result.values["levels"].get(task, {})]
    if not tasks:
        return blank()
    rows = -(-len(tasks) // 3)
    with grid(rows, 3, size=(8.6, 2.4 * rows + 0.6), sharey=True) as (figure, panels):
        for axes, task in zip(panels.flat, tasks, strict=False):
            draw_outcomes(axes, result, task, kind)
            axes.set_title(task_name(task))
        for axes in panels.flat[len(tasks) :]:
            axes.set_visible(False)
        for axes in panels[-1]:
            axes.set_xlabel("weight decay")
        handles, _ = panels[0, 0].get_legend_handles_labels()
        key_above(figure, handles, ncols=4, columnspacing=1.2)
    return figure
