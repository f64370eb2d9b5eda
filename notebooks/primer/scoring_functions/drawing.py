"""How many updates each choice saves or costs."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import Estimate, dot, grid
from notebooks.shared.style import INK, WINE, blank, task_name

EFFECTS = {
    "two_directions": "two directions, against one",
    "additive": "additive, against dot",
    "concat": "concat, against dot",
    "scaled_dot": "scaled dot, against dot",
    "general": "general, against dot",
    "luong_feeding": "input feeding, against none",
    "bahdanau": "Bahdanau's decoder, against Luong's",
    "previous_state": "previous state as query, against present",
}
UNSURE = "#767676"  # of effects that may be of either sign

Updates = Mapping[str, Estimate]  # saved or cost, by choice


def updates_of(result: Result) -> dict[str, Updates]:
    """The effects of choices on the updates, by task; those that were measured."""
    by_task = {}
    for task in result.config["task"]:
        effects = result.values.get(task, {}).get("effects", {})
        updates = {choice: numbers["updates"] for choice, numbers in effects.items() if "updates" in numbers}
        by_task[task] = {choice: estimate for choice, estimate in updates.items() if estimate["n"]}
    return by_task


def effects(result: Result) -> Figure:
    """Draw a panel for each task, a row for each choice; dark where the effect is clear of zero."""
    by_task = updates_of(result)
    rows = [choice for choice in EFFECTS if any(choice in updates for updates in by_task.values())]
    if not rows:
        return blank()
    size = (8.6, 0.32 * len(rows) + 1.2)
    with grid(1, len(by_task), size=size, sharey=True, sharex=True) as (figure, (panels,)):
        for axes, (task, updates) in zip(panels, by_task.items(), strict=True):
            draw_updates(axes, updates, rows)
            axes.set_title(task_name(task))
            axes.set_xlabel("updates more (right) or fewer (left)")
        if len(by_task) > 1:
            say_where_all_agree(panels[-1], list(by_task.values()), rows)
        first = panels[0]
        first.set_yticks(range(len(rows)), [EFFECTS[choice] for choice in rows])
        first.set_ylim(len(rows) - 0.5, -0.7)
        first.tick_params(axis="y", length=0)
        first.annotate("faster", (0.03, 0.04), xycoords="axes fraction", fontsize=9.5)
        first.annotate("slower", (0.97, 0.04), xycoords="axes fraction", fontsize=9.5, ha="right")
    return figure


def draw_updates(axes: Axes, updates: Updates, rows: Sequence[str]) -> None:
    """Draw the updates that each choice saves or costs on a task."""
    axes.axvline(0, color=INK, lw=0.8)
    for place, choice in enumerate(rows):
        if choice in updates:
            dot(axes, updates[choice], place, WINE if is_clear(updates[choice]) else UNSURE)


def is_clear(estimate: Estimate) -> bool:
    """Return True if the whole interval is on one side of zero."""
    return estimate["low"] is not None and estimate["low"] * estimate["high"] > 0


def say_where_all_agree(axes: Axes, tasks: Sequence[Updates], rows: Sequence[str]) -> None:
    """Say beside a choice that it is slower on all tasks, or faster."""
    note = {"va": "center", "fontsize": 9.5, "transform": axes.get_yaxis_transform()}
    for place, choice in enumerate(rows):
        lows, highs = (
            [updates.get(choice, {}).get(end) or 0 for updates in tasks] for end in ("low", "high")
        )
        if min(lows) > 0:
            axes.text(0.02, place, "slower on both", ha="left", **note)
        elif max(highs) < 0:
            axes.text(0.98, place, "faster on both", ha="right", **note)
