"""What summaries of the first paper name, by task and kind of network."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result, kinds_of
from notebooks.shared.marks import dot, grid, key_above
from notebooks.shared.style import ARCHITECTURE_MARKERS, INK, PART_COLOURS, WINE, network_name, task_name

WIDTH = 8.6  # inches
NARROW = 4.7  # inches, which a telephone shows nearly whole
PANELS_A_ROW = 4
ROW = 0.25  # inches, of a row of dots
TITLE_AT = -0.44  # of a panel's width: where the names of its rows begin
GREY = "#888888"  # of what chance gives
KIND_COLOURS = {"AO": INK}  # any other kind is recurrent
BESIDE = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
LINES = {"AO": "--"}
ABOVE, BELOW = (5, 8), (5, -10)  # points, from a line to its name
NAMED_AT = {  # number of terms, and where
    ("one_to_one", "AO"): (2, ABOVE),
    ("one_to_one", "AED"): (1, ABOVE),
    ("multi30k_en_fr", "AED"): (2, (10, -6)),
    ("scan_extended", "AED"): (3, (6, -10)),
    ("reordering_100", "AED"): (4, (8, -10)),
}
NOT_LEARNED = (("reordering_100", "AO"), ("scan_extended", "AO"))  # tasks that no position alone decides
NINE_TENTHS = 0.9  # of the gain, which terms are needed for
TITLES = (
    "A. Share of the words kept by attention from positions alone",
    "B. Share of steps at which position parts peak with attention",
    "C. Share of words whose states point to their translation",
    "D. How much the states of one word vary",
)


class FourAnalyses:
    """The figure that leads the page, a panel for each analysis and a row for each task and kind of network.

    Kinds of networks that do not learn a task are left out.

    Args:
        result: of the experiment.
    """

    def __init__(self, result: Result):
        self.tables = {name: of_learned(pd.DataFrame(rows)) for name, rows in result.tables.items()}
        by_recurrence = sorted(kinds_of(result), key=lambda row: row[1] != "AO")
        kinds = [(task, kind) for task, kind, _ in by_recurrence]
        self.kinds = [pair for pair in kinds if pair not in NOT_LEARNED]

    def draw(self) -> Figure:
        """Draw words kept by one term, temporal peaks, spread of words and angles with the readout."""
        words, peaks = self.tables["words_by_kind"], self.tables["offsets_by_kind"]
        spreads, angles = self.tables["spreads_by_kind"], self.tables["angles_by_kind"]
        height = len(TITLES) * (ROW * len(self.kinds) + 0.55)
        with grid(len(TITLES), 1, size=(NARROW, height)) as (figure, panels):
            kept_panel, peak_panel, angle_panel, spread_panel = panels.flat
            self.draw_dots(kept_panel, words, "kept_by_temporal")
            self.draw_dots(peak_panel, peaks, "near_average")
            self.draw_chance(peak_panel, self.tables["offsets"])
            self.draw_dots(spread_panel, spreads[spreads["side"] == "encoder"], "spread")
            self.draw_dots(angle_panel, angles, "pooled_aligned")
            self.draw_chance(angle_panel, self.tables["angles"])
            kept_panel.axvline(0, color="#dddddd", lw=1, zorder=0)
            self.name_losses(kept_panel, words)
            spread_panel.axvline(1, color="#dddddd", lw=1, zorder=0)
            shares = (kept_panel, peak_panel, angle_panel)
            lowest = min(-0.03, *(share.get_xlim()[0] for share in shares))
            for share in shares:
                share.set_xlim(lowest, 1.03)
                share.set_xticks([0, 0.5, 1], ["none", "half", "all"])
            spread_panel.set_xlim(left=-0.03)
            spread_panel.set_xticks([0, 1], ["not at all", "as different words"])
            for axes, title in zip(panels.flat, TITLES, strict=True):
                axes.set_title(title, loc="left", x=TITLE_AT, fontsize=9.5, fontweight="bold")
        return figure

    def draw_dots(self, axes: Axes, estimates: pd.DataFrame, quantity: str) -> None:
        """Draw one quantity of each task and kind, in the row of both."""
        for row in estimates[estimates["quantity"] == quantity].to_dict("records"):
            dot(
                axes, row, self.row_of(row), colour_of(row["kind"]),
                marker=ARCHITECTURE_MARKERS[row["kind"]], bar={"lw": 1.3}, ms=6,
            )  # fmt: skip
        names = [f"{short_task(task)}, {short_name(kind)}" for task, kind in self.kinds]
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), names, fontsize=8.5)
        axes.tick_params(axis="y", length=0)

    def name_losses(self, axes: Axes, words: pd.DataFrame) -> None:
        """Write right of the zero line in which rows attention from positions alone is worse than uniform."""
        for row in words[words["quantity"] == "kept_by_temporal"].to_dict("records"):
            if row["value"] is not None and row["value"] < 0:
                place = self.row_of(row)
                axes.annotate(
                    "worse than uniform", (0, place), (6, 0), **BESIDE, color=colour_of(row["kind"])
                )

    def draw_chance(self, axes: Axes, networks: pd.DataFrame) -> None:
        """Draw an upright grey stroke where chance would be, as a mean over the networks of a row."""
        for (task, kind), rows in networks.groupby(["task", "kind"]):
            place = self.row_of({"task": task, "kind": kind})
            chance = rows["chance"].mean()
            axes.plot(chance, place, "|", color=GREY, ms=11, mew=1.6, zorder=1)
            if place == 0:
                axes.annotate("by chance", (chance, place), (5, 0), **BESIDE, color=GREY)

    def row_of(self, row: Mapping[str, object]) -> int:
        """Return the place of a task and kind, from above."""
        return self.kinds.index((row["task"], row["kind"]))


def of_learned(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table without those of networks that do not learn their task."""
    if not {"task", "kind"} <= set(table.columns):
        return table
    pairs = pd.MultiIndex.from_frame(table[["task", "kind"]])
    return table[~pairs.isin(NOT_LEARNED)]


def colour_of(kind: str) -> str:
    """Return the colour of a kind of network, by whether it is recurrent."""
    return KIND_COLOURS.get(kind, WINE)


def short_task(task: str) -> str:
    """Return what the page calls a task: captions, whatever the language.

    >>> short_task("multi30k_en_fr"), short_task("scan")
    ('captions', 'SCAN')
    """
    return "captions" if task.startswith("multi30k") else task_name(task)


def short_name(kind: str) -> str:
    """Return the name of a kind of network, all of which have attention here.

    >>> short_name("AED"), short_name("AO")
    ('GRU', 'attention only')
    """
    return network_name(kind).removesuffix(" with attention")


def words_by_terms(kept: pd.DataFrame) -> Figure:
    """Draw how much of the gain of attention is kept by the number of terms, a line for each task and kind.

    Kinds of networks that do not learn a task are left out.

    Args:
        kept: estimates by ``task``, ``kind`` and ``number`` of terms.
    """
    with grid(1, 1, size=(NARROW, 3.7)) as (figure, ((axes,),)):
        learned = of_learned(kept.dropna(subset="value"))
        for (task, kind), rows in learned.groupby(["task", "kind"], sort=False):
            colour = colour_of(kind)
            axes.plot(rows["number"], rows["value"], LINES.get(kind, "-"), color=colour, lw=1.7)
            number, away = NAMED_AT.get((task, kind), (2, BELOW))
            place = number, rows.loc[rows["number"] == number, "value"].max()
            axes.annotate(f"{short_task(task)}, {short_name(kind)}", place, away, **BESIDE, color=colour)
        axes.axhline(NINE_TENTHS, color="#bbbbbb", lw=1, zorder=0)
        axes.text(9, NINE_TENTHS - 0.015, "nine tenths", color=GREY, fontsize=8.5, ha="right", va="top")
        axes.set_title("Words kept, by the number of terms", loc="left", fontsize=9.5, fontweight="bold")
        axes.set_xlabel("terms that attention is rebuilt from, the best ones first")
        axes.set_ylabel("share of the gain kept")
        axes.set_ylim(0, 1.1)
        axes.set_xlim(0, 9.1)
        axes.set_xticks(range(10))
    return figure


def peaks_by_step(steps: pd.DataFrame) -> Figure:
    """Draw where position parts and average attention peak at each step, in the first network of a kind."""
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
    axes.plot(rows["step"], rows["temporal"], ".", color=temporal, ms=6, label="position parts")
    corner: Sequence[float] = (rows["step"].max(), rows["source_length"].max() - 1)
    axes.plot([0, corner[0]], [0, corner[1]], color="#cccccc", lw=1, zorder=0)
    axes.set_xlabel("step", fontsize=9)
    axes.set_ylabel("source position", fontsize=9)
