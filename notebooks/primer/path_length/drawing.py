"""Gradients of outputs by inputs: heat maps, and their decay with distance."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import style
from companion.results.result import Result
from notebooks.primer.path_length.experiment import KINDS, STAGES
from notebooks.shared.style import blank

LOOKS = {  # name, colour, line
    "one_vector": ("one vector", "#cc79a7", "-"),
    "one_vector_reversed": ("one vector, read backwards", "#882255", "--"),
    "attention": ("attention", "#009e73", "-"),
    "attention_reversed": ("attention, read backwards", "#56b4e9", "--"),
}
TITLES = {"untrained": "before training", "trained": "after training"}
DECADES = 4  # of the colour scale


def kinds_of(result: Result) -> list[str]:
    """Kinds of networks that the result has."""
    return [kind for kind in KINDS if kind in result.values]


def heat_maps(result: Result) -> Figure:
    """Norm of each output's gradient by each input, on a logarithmic scale; rows are stages."""
    kinds, cell = kinds_of(result), result.config["cell"][0]
    if not kinds:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.6 * len(STAGES) * 3 / max(3, len(kinds)) + 0.6))
        grid = figure.subplots(len(STAGES), len(kinds), squeeze=False, sharex=True, sharey=True)
        for row, stage in zip(grid, STAGES, strict=True):
            for axes, kind in zip(row, kinds, strict=True):
                image = _draw_map(axes, result, kind, cell, stage)
                if stage == STAGES[0]:
                    axes.set_title(LOOKS[kind][0].replace(", ", ",\n"), fontsize=9.5)
                else:
                    axes.set_xlabel("source word", fontsize=9)
            row[0].set_ylabel(f"{TITLES[stage]}\ntarget word", fontsize=9)
        bar = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02)
        bar.set_label("norm, over the largest of its map", fontsize=9)
        ticks = range(-DECADES, 1)
        bar.set_ticks(list(ticks), labels=["1" if t == 0 else f"$10^{{{t}}}$" for t in ticks])
    return figure


def _draw_map(axes: Axes, result: Result, kind: str, cell: str, stage: str):
    rows = [r for r in result.tables["matrices"] if (r["kind"], r["cell"], r["stage"]) == (kind, cell, stage)]
    size = max(row["target"] for row in rows)
    matrix = np.full((size, size), np.nan)
    for row in rows:
        matrix[row["target"] - 1, row["source"] - 1] = np.log10(max(row["norm"], 1e-30))
    places = (0.5, size + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    return axes.imshow(
        matrix, cmap="magma_r", vmin=-DECADES, vmax=0, extent=(*places, *places[::-1]), aspect="equal"
    )


def decay_with_distance(result: Result) -> Figure:
    """Mean of log10 of the norm at each distance, before and after training."""
    kinds, cell = kinds_of(result), result.config["cell"][0]
    if not kinds:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 3.4))
        for axes, stage in zip(figure.subplots(1, len(STAGES), sharey=True), STAGES, strict=True):
            for kind in kinds:
                name, colour, line = LOOKS[kind]
                rows = [
                    r
                    for r in result.tables["decay"]
                    if (r["kind"], r["cell"], r["stage"]) == (kind, cell, stage)
                ]
                across = [row["distance"] for row in rows]
                axes.plot(across, [r["value"] for r in rows], color=colour, ls=line, lw=1.8, label=name)
                if rows[0]["low"] is not None:
                    low, high = [r["low"] for r in rows], [r["high"] for r in rows]
                    axes.fill_between(across, low, high, color=colour, alpha=0.13, lw=0)
            axes.set_title(TITLES[stage])
            axes.set_xlabel("recurrent steps between the two words")
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        figure.axes[0].set_ylabel("log₁₀ of the gradient's norm")
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure
