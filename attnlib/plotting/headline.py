"""Temporal and input share against typicality: a point for each task, architecture and seed."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.experiments.result import Result
from attnlib.plotting.order import tasks_of
from attnlib.plotting.style import INK, PART_COLOURS, marker_of, style, task_name

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
