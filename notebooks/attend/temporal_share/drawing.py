"""The figure of the chapter that README.md shows too: shares against typicality, a point for each network.

``python -m notebooks.attend.temporal_share.drawing`` draws README's from the committed result.
"""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.files import write_text_atomic
from companion.book.numbers import written
from companion.book.project import current_project
from companion.book.style import INK, PART_COLOURS, as_svg, style, task_name
from companion.results.result import Result, tasks_of
from notebooks.attend.temporal_share.experiment import LEARNED
from notebooks.shared.style import marker_of

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
    """Two panels over typicality, the temporal quantity in blue and the input one in vermillion."""
    with style():
        figure = Figure(figsize=(9.2, 4.4))
        for axes, (column, (part, label)) in zip(figure.subplots(1, 2), columns.items(), strict=True):
            _scatter(axes, result.tables["points"], column, PART_COLOURS[part])
            axes.set_ylabel(label)
            axes.set_xlabel("typicality of the average matrix")
            found = result.values["learned"]["spearman"][column]
            shown = "Spearman ρ: undefined" if found["value"] is None else f"Spearman ρ = {written(found)}"
            axes.set_title(shown + (f", n = {found['n']}" if found["low"] is not None else ""), loc="left")
        lines = [_handle(task_name(task), face="#bbbbbb", **marker_of(task)) for task in tasks_of(result)]
        lines += [_handle("AED", face="#bbbbbb", markeredgecolor="#bbbbbb"), _handle("AO", face="#bbbbbb")]
        lines += [_handle("task not learned", marker="o", markeredgecolor="#bbbbbb")]
        if any(column.endswith("_only") for column in columns):
            lines.append(Line2D([], [], ls="", label="uniform attention", **UNIFORM))
        figure.legend(handles=lines, loc="outside right center", handletextpad=0.2, frameon=False, fontsize=9)
    return figure


def _scatter(axes: Axes, rows: list[dict], column: str, colour: str) -> None:
    shown = [row for row in rows if row["typicality"] is not None and row[column] is not None]
    axes.set_xlim(0, 1.03)  # a point at 1 whole
    axes.set_ylim(min([-0.08, *(row[column] - 0.05 for row in shown)]), 1.05)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    if not shown:
        axes.text(0.5, 0.5, "no cell of 30 samples: no typicality", ha="center", transform=axes.transAxes)
    for row in shown:
        if column.endswith("_only"):
            axes.plot(row["typicality"], row["uniform"], ls="", **UNIFORM)
        look = {"markerfacecolor": colour if row["token_accuracy"] >= LEARNED else "white"}
        look |= {"markeredgecolor": INK if row["architecture"] == "AO" else colour}
        look |= {"markeredgewidth": 1.2, "alpha": 0.85, **marker_of(row["task"])}
        axes.plot(row["typicality"], row[column], ls="", **look)


def _handle(label: str, face: str = "white", marker: object = "h", **shape: object) -> Line2D:
    shape = {"ms": 7, "markeredgecolor": INK} | shape
    return Line2D([], [], ls="", markerfacecolor=face, label=label, marker=marker, **shape)


def readme_figure(folder: Path) -> tuple[Path, str]:
    drawn = against_typicality(Result.load(folder / "temporal_share.json"))
    return folder / "temporal_share.svg", as_svg(drawn, "path")


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
