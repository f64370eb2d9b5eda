"""Temporal and input share against typicality: a point for each task, architecture and seed."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.experiments.result import Result
from attnlib.plotting.style import ARCHITECTURE_MARKERS, INK, PART_COLOURS, style, task_name

SHARES = {"temporal_share": ("temporal", "temporal share: covariance share of μ·μ"),
          "input_share": ("input", "input share: covariance share of χ·χ")}  # fmt: skip
ALONE = {"temporal_only": ("temporal", "attention from μ·μ alone: similarity to the full"),
         "input_only": ("input", "attention from χ·χ alone: similarity to the full")}  # fmt: skip


def against_typicality(result: Result, columns: dict[str, tuple[str, str]] = SHARES) -> Figure:
    """Two panels over typicality, the temporal quantity in blue and the input one in vermillion."""
    rows = result.tables["points"]
    with style():
        figure = Figure(figsize=(8.6, 4.1))
        for axes, (column, (part, label)) in zip(
            figure.subplots(1, 2, sharex=True), columns.items(), strict=True
        ):
            _scatter(axes, rows, column, PART_COLOURS[part])
            axes.set_ylabel(label)
            axes.set_xlabel("typicality of the average matrix")
            axes.set_title(_correlation(result.values["spearman"][column]), loc="left")
    return figure


def _scatter(axes: Axes, rows: list[dict], column: str, colour: str) -> None:
    shown = [row for row in rows if row["typicality"] is not None and row[column] is not None]
    if not shown:
        axes.text(0.5, 0.5, "no cell of 30 samples: no typicality", ha="center", transform=axes.transAxes)
        return
    for kind in dict.fromkeys(row["kind"] for row in shown):
        here = [row for row in shown if row["kind"] == kind]
        x, y = ([row[name] for row in here] for name in ("typicality", column))
        open_marker = kind == "AO"
        axes.plot(x, y, ARCHITECTURE_MARKERS.get(kind, "D"), color=colour, ms=7, alpha=0.85, label=kind,
                  markerfacecolor="white" if open_marker else colour, markeredgewidth=1.6)  # fmt: skip
    if column.endswith("_only"):
        axes.plot([row["typicality"] for row in shown], [row["uniform"] for row in shown], "_", ms=9,
                  color=PART_COLOURS["residual"], label="uniform attention")  # fmt: skip
    axes.set_xlim(0, 1)
    values = [row[column] for row in shown]
    axes.set_ylim(min(-0.08, min(values) - 0.05), 1.12)
    _label_groups(axes, shown, column)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    axes.legend(loc="best", frameon=False, fontsize=9)


def _label_groups(axes: Axes, rows: list[dict], column: str) -> None:
    """The name of a task and architecture beside the mean of its points, pushed apart from others."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["kind"]), []).append((row["typicality"], row[column]))
    bottom, top = axes.get_ylim()
    gap = (top - bottom) * 0.062
    placed: list[tuple[float, float]] = []
    for (task, kind), points in sorted(groups.items(), key=lambda item: np.mean(item[1], axis=0)[1]):
        x, y = np.mean(points, axis=0)
        high = y + 0.6 * gap
        while any(abs(x - other_x) < 0.42 and abs(high - other) < gap for other_x, other in placed):
            high += gap * 0.25
        placed.append((x, high))
        left = x > 0.6
        axes.annotate(
            f"{task_name(task)}, {kind}", (x, y), (x - 0.03 if left else x + 0.03, high), fontsize=8.5,
            ha="right" if left else "left", va="center", color=INK,
        )  # fmt: skip


def _correlation(interval: dict) -> str:
    if interval["value"] is None:
        return "Spearman ρ: undefined"
    value = f"Spearman ρ = {interval['value']:.2f}".replace("-", "−")
    if interval["low"] is None:
        return value
    return value + f" [{interval['low']:.2f}, {interval['high']:.2f}], n = {interval['n']}".replace("-", "−")
