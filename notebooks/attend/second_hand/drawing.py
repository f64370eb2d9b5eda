"""What a summary of the first paper names, by task and kind of network."""

from collections.abc import Sequence
from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.marks import dot, grid, key_above
from notebooks.shared.style import (
    ARCHITECTURE_MARKERS,
    GREEN,
    INK,
    OCHRE,
    PART_COLOURS,
    WINE,
    network_name,
    task_name,
)

LINES = {"AED": "-", "AO": "--"}
WIDTH = 8.6  # inches
PANELS_A_ROW = 4
TITLES = (
    "A  words kept by the best terms",
    "B  where temporal parts peak",
    "C  how much states of a word vary",
    "D  what points to the translation",
)


class FourAnalyses:
    """The figure that leads the page, a row of dots for each task and kind of network.

    Args:
        result: of the experiment.
    """

    def __init__(self, result: Result):
        self.tables = {name: pd.DataFrame(rows) for name, rows in result.tables.items()}
        self.kinds = [(task, kind) for task, kind, _ in kinds_of(result)]
        self.tasks = tasks_of(result)
        colours = cycle((INK, OCHRE, WINE, GREEN))
        self.colours = dict(zip(result.config["task"], colours, strict=False))

    def draw(self) -> Figure:
        """Draw four panels: words kept, temporal peaks, spread of words, angles with the readout."""
        spreads, angles = self.tables["spreads_by_kind"], self.tables["angles_by_kind"]
        peaks = self.tables["offsets_by_kind"]
        height = 0.38 * len(self.kinds) + 5.2
        with grid(2, 2, size=(WIDTH, height)) as (figure, panels):
            (kept_panel, peak_panel), (spread_panel, angle_panel) = panels
            self.draw_kept(kept_panel)
            self.draw_dots(peak_panel, peaks, "near_average")
            self.draw_dots(peak_panel, peaks, "chance", filled=False)
            self.draw_dots(spread_panel, spreads[spreads["side"] == "encoder"], "spread")
            self.draw_dots(angle_panel, angles, "pooled_aligned", shift=-0.13)
            self.draw_dots(angle_panel, angles, "input_aligned", filled=False, shift=0.13)
            peak_panel.set_xlabel("share of steps with a temporal peak\nwhere average attention peaks")
            spread_panel.set_xlabel("variance within words,\nover that between words")
            angle_panel.set_xlabel("share of words that point\nto their translation")
            for share in (peak_panel, angle_panel):
                share.set_xlim(-0.03, 1.03)
            spread_panel.set_xlim(left=0)
            for axes, title in zip(panels.flat, TITLES, strict=True):
                axes.set_title(title, loc="left", fontsize=10)
            key_above(figure, [*self.handles_of_kinds(), *self.handles_of_tasks()], ncols=3)
        return figure

    def draw_kept(self, axes: Axes) -> None:
        """Draw how much of the gain of attention is kept by the number of terms."""
        kept = self.tables["kept_by_kind"].dropna(subset="value")
        for (task, kind), rows in kept.groupby(["task", "kind"], sort=False):
            axes.plot(rows["number"], rows["value"], LINES[kind], color=self.colours[task], lw=1.6)
        axes.axhline(0.9, color="#bbbbbb", lw=1)
        axes.set_xlabel("terms that attention is rebuilt from")
        axes.set_ylabel("share of the gain kept")
        axes.set_ylim(-0.4, 1.1)
        axes.set_xticks(range(10))

    def draw_dots(
        self, axes: Axes, estimates: pd.DataFrame, quantity: str, *, filled: bool = True, shift: float = 0.0
    ) -> None:
        """Draw one quantity of each task and kind, in the row of both."""
        for row in estimates[estimates["quantity"] == quantity].to_dict("records"):
            place = self.kinds.index((row["task"], row["kind"])) + shift
            dot(
                axes, row, place, self.colours[row["task"]],
                marker=ARCHITECTURE_MARKERS[row["kind"]], filled=filled, bar={"lw": 1.3}, ms=5.5,
            )  # fmt: skip
        names = [f"{task_name(task)},\n{network_name(kind)}" for task, kind in self.kinds]
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), names, fontsize=8.5)

    def handles_of_kinds(self) -> list[Line2D]:
        """Say which line and which mark a kind of network has."""
        kinds = dict.fromkeys(kind for _, kind in self.kinds)
        look = {"color": "#777777"}
        return [
            Line2D(
                [], [], ls=LINES[kind], marker=ARCHITECTURE_MARKERS[kind], label=network_name(kind), **look
            )
            for kind in kinds
        ]

    def handles_of_tasks(self) -> list[Line2D]:
        """Say which colour a task has."""
        return [Line2D([], [], lw=3, color=self.colours[task], label=task_name(task)) for task in self.tasks]


def peaks_by_step(steps: pd.DataFrame) -> Figure:
    """Draw where temporal parts and average attention peak at each step, in the first network of a kind."""
    steps = steps[steps["seed"] == 0]
    networks = list(steps.groupby(["task", "kind"], sort=False))
    n_rows = -(-len(networks) // PANELS_A_ROW)
    with grid(max(n_rows, 1), PANELS_A_ROW, size=(WIDTH, 2.3 * max(n_rows, 1))) as (figure, panels):
        for axes, ((task, kind), rows) in zip(panels.flat, networks, strict=False):
            draw_peaks(axes, rows)
            axes.set_title(f"{task_name(task)},\n{network_name(kind)}", fontsize=9, loc="left")
        for axes in panels.flat[len(networks) :]:
            axes.set_visible(False)
        if networks:
            handles, _ = panels.flat[0].get_legend_handles_labels()
            key_above(figure, handles, ncols=2)
    return figure


def draw_peaks(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the peaks of one network over the diagonal of its two lengths."""
    axes.plot(rows["step"], rows["average"], "o", color="#999999", ms=6, label="average attention")
    temporal = PART_COLOURS["temporal"]
    axes.plot(rows["step"], rows["temporal"], ".", color=temporal, ms=6, label="temporal parts")
    corner: Sequence[float] = (rows["step"].max(), rows["source_length"].max() - 1)
    axes.plot([0, corner[0]], [0, corner[1]], color="#cccccc", lw=1, zorder=0)
    axes.set_xlabel("step", fontsize=9)
    axes.set_ylabel("source position", fontsize=9)
