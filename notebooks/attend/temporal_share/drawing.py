"""Along the dial of the reordering tasks, and among the samples of one network."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.files import write_text_atomic
from attnlib.plots.style import INK, PART_COLOURS, as_svg, marker_of, style, task_name
from companion.book.project import current_project
from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.ladder import DIAL

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


# Temporal and input share against typicality: a point for each task, architecture and seed.

SHARES = {
    "temporal_share": ("temporal", "temporal share: covariance share of μ·μ"),
    "input_share": ("input", "input share: covariance share of χ·χ"),
}
ALONE = {
    "temporal_only": ("temporal", "attention from μ·μ alone: similarity to the full"),
    "input_only": ("input", "attention from χ·χ alone: similarity to the full"),
}
UNIFORM = {"marker": "_", "ms": 9, "markeredgewidth": 0.8, "color": INK}  # no colour of a part


def against_typicality(result: Result, columns: dict[str, tuple[str, str]] = SHARES) -> Figure:
    """Two panels over typicality, the temporal quantity in blue and the input one in vermillion.

    The shape of a point is its task; it is filled where the network is recurrent and open for attention only.
    """
    rows = result.tables["points"]
    with style():
        figure = Figure(figsize=(9.2, 4.4))
        for axes, (column, (part, label)) in zip(figure.subplots(1, 2), columns.items(), strict=True):
            _scatter(axes, rows, column, PART_COLOURS[part])
            axes.set_ylabel(label)
            axes.set_xlabel("typicality of the average matrix")
            axes.set_title(_correlation(result.values["spearman"][column]), loc="left")
        handles = _legend(tasks_of(result), uniform=any(column.endswith("_only") for column in columns))
        figure.legend(
            handles=handles,
            loc="outside right center",
            handletextpad=0.2,
            frameon=False,
            fontsize=9,
        )
    return figure


def _scatter(axes: Axes, rows: list[dict], column: str, colour: str) -> None:
    shown = [row for row in rows if row["typicality"] is not None and row[column] is not None]
    axes.set_xlim(0, 1.03)  # a point at 1 whole
    axes.set_ylim(min([-0.08, *(row[column] - 0.05 for row in shown)]), 1.05)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    if not shown:
        axes.text(0.5, 0.5, "no cell of 30 samples: no typicality", ha="center", transform=axes.transAxes)
        return
    for row in shown:
        if column.endswith("_only"):
            axes.plot(row["typicality"], row["uniform"], ls="", **UNIFORM)
        axes.plot(row["typicality"], row[column], ls="", **marker_of(row["task"]), **_marker(row, colour))


def _marker(row: dict, colour: str) -> dict[str, object]:
    face = "white" if row["architecture"] == "AO" else colour
    return {"color": colour, "markerfacecolor": face, "markeredgewidth": 1.6, "alpha": 0.85}


def _legend(tasks: list[str], *, uniform: bool) -> list[Line2D]:
    def handle(shape: dict[str, object], label: str, face: str = "white", edge: str = INK) -> Line2D:
        return Line2D([], [], ls="", color=edge, markerfacecolor=face, label=label, **shape)

    handles = [handle(marker_of(task), task_name(task), "#bbbbbb") for task in tasks]
    handles += [
        handle({"marker": "h", "ms": 7}, "AED: filled", INK),
        handle({"marker": "h", "ms": 7}, "AO: open"),
    ]
    dash = Line2D([], [], ls="", label="uniform attention", **UNIFORM)
    return [*handles, dash] if uniform else handles


def _correlation(interval: dict) -> str:
    if interval["value"] is None:
        return "Spearman ρ: undefined"
    value = f"Spearman ρ = {interval['value']:.2f}".replace("-", "−")
    if interval["low"] is None:
        return value
    return value + f" [{interval['low']:.2f}, {interval['high']:.2f}], n = {interval['n']}".replace("-", "−")


# The figure of README.md, drawn from the committed result: ``python -m
# notebooks.attend.temporal_share.drawing``.


def readme_figure(folder: Path) -> tuple[Path, str]:
    """Path and text of the figure that belongs to the result in ``folder``."""
    return folder / "temporal_share.svg", as_svg(
        against_typicality(Result.load(folder / "temporal_share.json"))
    )


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
