"""Along the dial of the reordering tasks, and among the samples of one network."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.experiments.ladder import DIAL
from attnlib.experiments.result import Result
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import INK, PART_COLOURS, style, task_name

LINES = {  # column of the result → label, colour
    "typicality": ("typicality", INK),
    "temporal_share": ("temporal share μ·μ", PART_COLOURS["temporal"]),
    "input_share": ("input share χ·χ", PART_COLOURS["input"]),
    "residual_share": ("all terms with Δ", PART_COLOURS["residual"]),
}
CORRELATIONS = {
    "temporal_share": ("temporal share", PART_COLOURS["temporal"], 0.12),
    "input_share": ("input share", PART_COLOURS["input"], -0.12),
}


def along_the_dial(result: Result) -> Figure:
    """Typicality and the shares against the percentage of reordered sentences, a panel an architecture."""
    by_task = result.values["by_task"]
    marks = {task: int(task.rpartition("_")[2]) for task in DIAL if task in by_task}
    kinds = [kind for kind in ("AED", "AO") if any(kind in by_task[task] for task in marks)]
    with style():
        figure = Figure(figsize=(8.6, 3.9))
        grid = figure.subplots(1, max(len(kinds), 1), squeeze=False, sharey=True)[0]
        for axes, kind in zip(grid, kinds, strict=False):
            axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
            ends = []
            for column, (label, colour) in LINES.items():
                points = [
                    (x, by_task[task][kind][column]) for task, x in marks.items() if kind in by_task[task]
                ]
                shown = [(x, y) for x, y in points if y["value"] is not None]
                if shown:
                    _line(axes, shown, colour)
                    ends.append((shown[-1][1]["value"], label, colour))
            _label_ends(axes, ends)
            axes.set_title(kind, loc="left")
            axes.set_xlim(-4, 150)
            axes.set_ylim(-0.25, 1.1)
            axes.set_xticks([0, 25, 50, 75, 100])
            axes.set_xlabel("sentences whose words may reorder, %")
        grid[0].set_ylabel("share, or typicality")
    return figure


def _line(axes: Axes, points: list[tuple[int, dict]], colour: str) -> None:
    axes.plot([x for x, _ in points], [y["value"] for _, y in points], "o-", color=colour, ms=4.5, lw=1.6)
    for x, y in points:
        if y["low"] is not None:
            axes.plot([x, x], [y["low"], y["high"]], color=colour, lw=1.2)


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names at the right ends of the lines, moved apart where lines end close together."""
    place = -1.0
    for value, label, colour in sorted(ends):
        place = max(value, place + 0.075)
        ink = "#666666" if colour == PART_COLOURS["residual"] else colour
        axes.text(104, place, label, va="center", color=ink, fontsize=8.5)


def among_samples(result: Result) -> Figure:
    """Rank correlation of typicality with each share among the samples of one network, mean over seeds."""
    rows = [(task, kind, values) for task, kind, values in kinds_of(result, result.values["across_samples"])]
    with style():
        figure = Figure(figsize=(7.6, 0.36 * len(rows) + 1.3))
        axes = figure.subplots()
        axes.axvline(0, color="#bbbbbb", lw=0.9)
        for place, (_, _, values) in enumerate(reversed(rows)):
            for column, (_, colour, shift) in CORRELATIONS.items():
                interval = values[column]
                if interval["value"] is None:
                    continue
                if interval["low"] is not None:
                    axes.plot([interval["low"], interval["high"]], [place + shift] * 2, color=colour, lw=1.4)
                axes.plot(interval["value"], place + shift, "o", color=colour, ms=5)
        for label, colour, _ in CORRELATIONS.values():
            axes.plot([], [], "o", color=colour, label=f"typicality and {label}")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
        axes.set_yticks(range(len(rows)), [f"{task_name(task)}, {kind}" for task, kind, _ in reversed(rows)])
        axes.set_xlim(-1, 1)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel("rank correlation among held-out samples of equal lengths")
    return figure
