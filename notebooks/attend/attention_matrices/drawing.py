"""Attention matrices as grids: tasks side by side, architectures below each other."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style, task_name
from companion.results.result import Result, kinds_of
from notebooks.shared.bands import panels

MAP = "Greys"


def average_matrices(result: Result) -> Figure:
    """The average attention matrix of the most frequent lengths, a column a task, a row an architecture."""
    return _grid(result.tables["average"], _draw_average, height=2.6)


def sample_matrices(result: Result, sample: int = 0) -> Figure:
    """One held-out sample's attention matrix, its words along the axes."""
    records = [record for record in result.tables["samples"] if record["sample"] == sample]
    return _grid(records, _draw_sample, height=3.9)


def typicality_by_task(result: Result) -> Figure:
    """Typicality of each kind of model with its interval over seeds."""
    rows = [(task, kind, values["typicality"]) for task, kind, values in kinds_of(result)]
    with style():
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.1))
        axes = figure.subplots()
        for place, (_, kind, interval) in enumerate(reversed(rows)):
            if interval["value"] is None:
                axes.text(0.02, place, "no cell of 30 samples", va="center", fontsize=8.5)
                continue
            if interval["low"] is not None:
                axes.plot([interval["low"], interval["high"]], [place, place], color=INK, lw=1.2)
            axes.plot(interval["value"], place, "o" if kind.startswith("AED") else "s", color=INK, ms=6)
            at_the_line = interval["value"] > 0.95  # where a number in the middle would cross it
            axes.annotate(
                f"{interval['value']:.2f}", (interval["value"], place), (4 if at_the_line else 0, 6),
                textcoords="offset points", ha="right" if at_the_line else "center", fontsize=8.5,
            )  # fmt: skip
        axes.axvline(1, color=INK, lw=0.9, ls=":")
        axes.annotate("always uniform, or by position alone: 1", (1, len(rows) - 0.45), (-4, 0),
                      textcoords="offset points", ha="right", va="bottom", fontsize=8.5)  # fmt: skip
        axes.set_yticks(range(len(rows)), [f"{task_name(task)}, {kind}" for task, kind, _ in reversed(rows)])
        axes.set_xlim(0, 1.03)
        axes.set_ylim(-0.6, len(rows) - 0.1)
        axes.set_xlabel("typicality of a sample's attention among those of the same lengths")
    return figure


def _grid(records: list[dict], draw: Callable[[Axes, list[dict]], None], height: float) -> Figure:
    by_panel: dict[tuple[str, str], list[dict]] = {}
    for record in records:
        by_panel.setdefault((record["task"], record["architecture"]), []).append(record)

    def panel(axes: Axes, task: str, kind: str, leftmost: bool, lowest: bool) -> bool:
        if (task, kind) not in by_panel:
            return False
        draw(axes, by_panel[task, kind])
        axes.spines[:].set_visible(True)
        axes.set_ylabel("predicted at step s" if leftmost else "")
        axes.set_xlabel("source position t" if lowest else "")
        return True

    tasks, kinds = (list(dict.fromkeys(key[i] for key in by_panel)) for i in (0, 1))
    return panels(tasks, kinds, panel, width=2.75, height=height)


def _matrix(records: list[dict]) -> np.ndarray:
    shape = [1 + max(record[name] for record in records) for name in ("target_position", "source_position")]
    matrix = np.zeros(shape)
    for record in records:
        matrix[record["target_position"], record["source_position"]] = record["attention"]
    return matrix


def _draw_average(axes: Axes, records: list[dict]) -> None:
    axes.imshow(_matrix(records), cmap=MAP, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_title(f"{axes.get_title()}\nmean of {records[0]['samples']} samples")


def _draw_sample(axes: Axes, records: list[dict]) -> None:
    axes.imshow(_matrix(records), cmap=MAP, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    source = {record["source_position"]: record["source"] for record in records}
    predicted = {record["target_position"]: record["predicted"] for record in records}
    small = 6.5 if max(len(source), len(predicted)) > 14 else 7.5
    axes.set_xticks(list(source), [_short(word) for word in source.values()], rotation=90, fontsize=small)
    axes.set_yticks(list(predicted), [_short(word) for word in predicted.values()], fontsize=small)


def _short(word: str) -> str:
    """Marks and long names as a reader knows them; a dollar sign would start a formula."""
    shown = {"<eos>": "end", "<unk>": "(unknown)"}.get(word, word.removeprefix("I_").lower())
    return shown.replace("$", r"\$")[:14]
