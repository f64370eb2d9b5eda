"""Networks of one vector: accuracy by place, with right words read and with own ones; a wrong word's cost."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style, task_name
from companion.results.result import Result
from notebooks.primer.one_vector.experiment import NETWORKS
from notebooks.shared.style import blank

NAMES = {"cho": "Cho et al.", "sutskever": "Sutskever et al."}
COLOURS = {"cho": "#882255", "sutskever": "#cc79a7"}
WAYS = {  # label, colour, line
    "teacher_forced": ("reads the right words", INK, "-"),
    "free_running": ("reads its own words", "#d55e00", "-"),
    "so_far": ("no fault up to here", "#d55e00", ":"),
}
COSTS = {"share": "share of later words it makes wrong", "words": "later words it makes wrong"}


def tasks_of(result: Result) -> list[str]:
    return [task for task in result.config["task"] if task in result.values]


def _kinds(result: Result, task: str) -> list[str]:
    return [name for name in NETWORKS if name in result.values[task]]


def _band(axes: Axes, rows: list[dict], colour: str, line: str, label: str) -> None:
    rows = [row for row in rows if row["value"] is not None]
    across = [row["place"] for row in rows]
    axes.plot(across, [row["value"] for row in rows], color=colour, ls=line, lw=1.7, label=label)
    if rows and rows[0]["low"] is not None:
        low, high = [row["low"] for row in rows], [row["high"] for row in rows]
        axes.fill_between(across, low, high, color=colour, alpha=0.13, lw=0)


def accuracy_by_place(result: Result) -> Figure:
    """Words right by place in sentences of one length, for each task and network; a row a task."""
    tasks = tasks_of(result)
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.7 * len(tasks) + 0.4))
        grid = figure.subplots(len(tasks), len(NETWORKS), squeeze=False, sharey=True)
        for row, task in zip(grid, tasks, strict=True):
            for axes, network in zip(row, NETWORKS, strict=True):
                if network not in _kinds(result, task):
                    axes.set_visible(False)
                    continue
                for way, (label, colour, line) in WAYS.items():
                    rows = [
                        r
                        for r in result.tables["places"]
                        if (r["task"], r["network"], r["way"]) == (task, network, way)
                    ]
                    _band(axes, rows, colour, line, label)
                axes.set_title(f"{NAMES[network]}, {task_name(task)}", fontsize=9.5)
                axes.set_ylim(0, 1.05)
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            row[0].set_ylabel("share of sentences right", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("place in the translation", fontsize=9)
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def cost_of_a_word(result: Result) -> Figure:
    """What an exchanged word does to those after it, by place in sentences of one length; a row a task."""
    tasks = tasks_of(result)
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.7 * len(tasks) + 0.4))
        grid = figure.subplots(len(tasks), len(COSTS), squeeze=False)
        for row, task in zip(grid, tasks, strict=True):
            for axes, (quantity, label) in zip(row, COSTS.items(), strict=True):
                for network in _kinds(result, task):
                    rows = [
                        r
                        for r in result.tables["damage"]
                        if (r["task"], r["network"], r["quantity"]) == (task, network, quantity)
                    ]
                    _band(axes, rows, COLOURS[network], "-", NAMES[network])
                axes.axhline(0, color="#cccccc", lw=0.8, zorder=0)
                axes.set_title(f"{task_name(task)}: {label}", fontsize=9.5)
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        for axes in grid[-1]:
            axes.set_xlabel("place of the wrong word", fontsize=9)
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure
