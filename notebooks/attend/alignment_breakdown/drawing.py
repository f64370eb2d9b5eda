"""The nine alignment terms: shares as 3 × 3 grids, and what attention built from some of them comes to."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import ARCHITECTURE_MARKERS, INK, PART_COLOURS, PART_SYMBOLS, style, task_name
from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.bands import panels

SUBSETS = {  # name in the result → label, colour
    "no_residual": ("all terms without residuals", INK),
    "temporal_only": ("temporal × temporal alone", PART_COLOURS["temporal"]),
    "input_only": ("input × input alone", PART_COLOURS["input"]),
    "uniform": ("no term: uniform attention", INK),
}
UNIFORM = {"marker": "|", "ms": 8, "markeredgewidth": 1.1}  # a thin dark stroke: no colour of a part
SHARES_MAP = "PRGn"  # green above 0, purple below: no colour of a part


def share_grids(result: Result, share: str = "covariance_share") -> Figure:
    """Shares of the nine terms, a 3 × 3 grid for each task (column) and architecture (row)."""

    def panel(axes: Axes, task: str, kind: str, leftmost: bool, lowest: bool) -> bool:
        if kind not in result.values[task]:
            return False
        _draw_shares(axes, result.values[task][kind][share])
        axes.set_ylabel("decoder part" if leftmost else "")
        axes.set_xlabel("encoder part" if lowest else "")
        return True

    kinds = list(dict.fromkeys(kind for _, kind, _ in kinds_of(result)))
    return panels(tasks_of(result), kinds, panel, width=2.35, height=2.45)


def _draw_shares(axes: Axes, shares: dict[str, dict]) -> None:
    matrix = np.array([[_number(shares[f"{d}_{e}"]["value"]) for e in PART_NAMES] for d in PART_NAMES])
    axes.imshow(matrix, cmap=SHARES_MAP, vmin=-1, vmax=1)
    for i, j in np.ndindex(3, 3):
        interval = shares[f"{PART_NAMES[i]}_{PART_NAMES[j]}"]
        if interval["value"] is None:
            axes.text(j, i, "–", ha="center", va="center")
            continue
        half = None if interval["low"] is None else (interval["high"] - interval["low"]) / 2
        text = _signed(interval["value"]) + (f"\n±{half:.2f}" if half is not None else "")
        axes.text(j, i, text, ha="center", va="center", fontsize=9, linespacing=1.1,
                  color="white" if abs(interval["value"]) > 0.6 else INK)  # fmt: skip
    names = [f"{name} {PART_SYMBOLS[name]}" for name in PART_NAMES]
    axes.set_xticks(range(3), names, fontsize=8)
    axes.set_yticks(range(3), names, fontsize=8, rotation=90, va="center")
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        for label, name in zip(ticks, PART_NAMES, strict=True):
            label.set_color({"residual": "#666666"}.get(name, PART_COLOURS[name]))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _number(value: float | None) -> float:
    return 0.0 if value is None else value


def _signed(value: float) -> str:
    """Two digits with a true minus; never "−0.00"."""
    text = f"{value:.2f}"
    return text.replace("-0.00", "0.00").replace("-", "−")


def substitution_test(result: Result, measure: str = "similarity") -> Figure:
    """How close attention built from a subset of terms comes to the full one, with intervals over seeds."""
    rows = [(task, kind) for task, kind, _ in kinds_of(result)]
    label = {
        "similarity": "similarity to the full attention: 1 − total variation, mean over rows",
        "argmax_agreement": "share of rows whose largest weight stands at the same source position",
    }[measure]
    with style():
        figure = Figure(figsize=(7.6, 0.5 * len(rows) + 1.5))
        axes = figure.subplots()
        for place, (task, kind) in enumerate(reversed(rows)):
            axes.axhline(place, color="#e5e5e5", lw=0.8, zorder=0)
            for offset, (subset, (_, colour)) in zip(
                (0.21, 0.07, -0.07, -0.21), SUBSETS.items(), strict=True
            ):
                interval = result.values[task][kind]["substitution"][subset][measure]
                uniform = subset == "uniform"
                if interval["low"] is not None:
                    ends = [interval["low"], interval["high"]]
                    axes.plot(ends, [place + offset] * 2, color=colour, lw=0.7 if uniform else 1.4)
                look = {"marker": ARCHITECTURE_MARKERS.get(kind, "o"), "ms": 5.5}
                axes.plot(interval["value"], place + offset, color=colour, **(UNIFORM if uniform else look))
        for subset, (text, colour) in SUBSETS.items():
            look = UNIFORM if subset == "uniform" else {"marker": "o"}
            axes.plot([], [], ls="", color=colour, label=text, **look)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
        axes.set_yticks(range(len(rows)), [f"{task_name(task)}, {kind}" for task, kind in reversed(rows)])
        axes.set_xlim(-0.02, 1.03)  # points at 0 and 1 whole
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel(label)
    return figure
