"""How many updates each choice saves or costs."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import Estimate, dot, grid
from notebooks.shared.style import INK, WINE, blank, task_name

EFFECTS = {
    "two_directions": "two directions, not one",
    "additive": "additive score, not dot",
    "concat": "concat, not dot",
    "scaled_dot": "scaled dot, not dot",
    "general": "general, not dot",
    "luong_feeding": "input feeding, not none",
    "bahdanau": "Bahdanau's decoder, not Luong's",
    "previous_state": "query: previous state, not current",
}
NARROW = 4.7  # inches, which a telephone shows whole
BETWEEN = 0.26  # rows, between the marks of two tasks
ABOVE = 0.3  # rows, from the first mark to the name of the choice
MARKERS = "os^D"  # of the tasks
SYMBOLS = "●■▲◆"  # the same, in words
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
    """Draw a row for each choice, with a mark for each task; dark where the effect is clear of zero."""
    by_task = updates_of(result)
    rows = [choice for choice in EFFECTS if any(choice in updates for updates in by_task.values())]
    if not rows:
        return blank()
    with grid(1, 1, size=(NARROW, 0.55 * len(rows) + 0.9)) as (figure, ((axes,),)):
        axes.axvline(0, color=INK, lw=0.8)
        for place, choice in enumerate(rows):
            axes.text(0, place - ABOVE, EFFECTS[choice], va="center", fontsize=9, **beside(axes))
            for row, (task, updates) in enumerate(by_task.items()):
                draw_updates(axes, updates.get(choice), place + BETWEEN * row, MARKERS[row % len(MARKERS)])
                if choice == rows[0]:
                    name_task(
                        axes, updates.get(choice), task, SYMBOLS[row % len(SYMBOLS)], place + BETWEEN * row
                    )
        axes.set_ylim(len(rows) - 0.45, -0.7)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_title("← learns faster", loc="left", fontsize=9.5, fontweight="bold")
        axes.set_title("learns more slowly →", loc="right", fontsize=9.5, fontweight="bold")
        axes.set_xlabel("difference in updates")
    return figure


def beside(axes: Axes) -> dict:
    """Where the name of a choice is: at the left edge of the panel, whatever its scale."""
    return {"transform": axes.get_yaxis_transform(), "ha": "left"}


def draw_updates(axes: Axes, estimate: Estimate | None, height: float, marker: str) -> None:
    """Draw the updates that a choice saves or costs on a task, if both were measured."""
    if estimate:
        dot(axes, estimate, height, WINE if is_clear(estimate) else UNSURE, marker=marker)


def name_task(axes: Axes, estimate: Estimate | None, task: str, symbol: str, height: float) -> None:
    """Write the name of a task, with its symbol, beside its first mark."""
    if estimate and estimate["high"] is not None:
        axes.annotate(
            f"{symbol} in {task_name(task)}", (max(0, estimate["high"]), height), (6, 0),
            textcoords="offset points", va="center", fontsize=9, color=WINE,
        )  # fmt: skip


def is_clear(estimate: Estimate) -> bool:
    """Return True if the whole interval is on one side of zero."""
    return estimate["low"] is not None and estimate["low"] * estimate["high"] > 0
