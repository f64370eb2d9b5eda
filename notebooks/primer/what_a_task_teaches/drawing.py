"""The attention of one sentence under two tasks, and how symmetric attention is."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from companion.results.result import Result
from notebooks.shared.marks import Mark, dots, grid, matrix, rule
from notebooks.shared.style import ARROW, INDIGO, INK, blank

KINDS = {"recurrent": "recurrent", "transformer": "Transformer", "tied": "Transformer, tied maps"}
COLOURS = {"translation": INDIGO, "summary": "#8a6400"}  # brown, dark enough for text
RED = "#c2185b"  # of gold links
GREY = "#707070"
RECIPROCITY = {  # state of the networks: how its points look
    "untrained": Mark("before training", GREY, shift=0.17, filled=False),
    "trained": Mark("after training", INK, shift=-0.17),
}
COMPARED = {  # kind of network and attention: label
    ("transformer", "encoder_self"): "self-attention",
    ("tied", "encoder_self"): "self-attention, shared map",
    ("transformer", "cross"): "cross-attention",
}
NARROW = 4.7  # inches, which a telephone shows whole
INSIDE = {"textcoords": "axes fraction", "xycoords": "axes fraction", "fontsize": 9.5, "arrowprops": ARROW}


def example_matrices(example: pd.DataFrame, titles: Mapping[tuple[str, str], str], *, width: float) -> Figure:
    """Draw a row of panels for each task, and a column for each network, in inches of width.

    ``titles`` are by the state of a network (untrained or trained) and its kind.
    """
    if example.empty:
        return blank()
    columns = [names for names in titles if len(rows_of_network(example, *names))]
    tasks = [task for task in COLOURS if task in set(example["task"])]
    if not columns:
        return blank()
    heights = [1 + example.loc[example["task"] == task, "target_position"].max() for task in tasks]
    size = (width, 0.24 * sum(heights) + 0.45 * len(heights) + 1.4)
    ratios = [height + 0.5 for height in heights]
    with grid(len(tasks), len(columns), size=size, sharex=True, height_ratios=ratios) as (figure, panels):
        for line, task in zip(panels, tasks, strict=True):
            for axes, names in zip(line, columns, strict=True):
                network = rows_of_network(example, *names)
                draw_links(axes, network[network["task"] == task], labels=axes is line[0])
            line[0].set_ylabel(f"{task}\n", color=COLOURS[task], fontweight="bold")
        for axes, names in zip(panels[0], columns, strict=True):
            axes.set_title(titles[names])
        if len(tasks) == 2:
            panels[0, -1].annotate("every word", (0.4, 0.62), (0.62, 0.84), **INSIDE)
            panels[1, -1].annotate("topics alone", (0.8, 0.84), (0.4, 0.84), va="center", **INSIDE)
    return figure


def rows_of_network(example: pd.DataFrame, state: str, kind: str) -> pd.DataFrame:
    """Rows of a kind of network before or after training, on the tasks that are shown."""
    shown = example["task"].isin(list(COLOURS))
    return example[shown & (example["state"] == state) & (example["kind"] == kind)]


def draw_links(axes: Axes, rows: pd.DataFrame, *, labels: bool) -> None:
    """Draw the attention of one network: a row for each target word, gold links framed."""
    if rows.empty:
        axes.set_visible(False)
        return
    weights = rows.pivot(index="target_position", columns="source_position", values="attention")
    for link in rows[rows["gold"].astype(bool)].itertuples():
        corner = link.source_position - 0.45, link.target_position - 0.45
        axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, lw=1.1, edgecolor=RED))
    matrix(axes, weights.fillna(0).to_numpy())
    axes.set_xticks(*words_of(rows, "source"), rotation=90, fontsize=9)
    places, words = words_of(rows, "target")
    axes.set_yticks(places, words if labels else [], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)


def words_of(rows: pd.DataFrame, side: str) -> tuple[Sequence[int], Sequence[str]]:
    """Positions of a sentence and the words there."""
    words = rows.drop_duplicates(f"{side}_position")
    return words[f"{side}_position"].tolist(), words[side].tolist()


def mean_reciprocity(result: Result) -> Figure:
    """Draw a row for each task and attention: the mean over layers and heads, of scores and of attention."""
    symmetry = result.values["symmetry"]
    rows = {
        f"{task}: {label}": symmetry[kind][task][attention]
        for task in COLOURS
        for (kind, attention), label in COMPARED.items()
        if symmetry.get(kind, {})
        .get(task, {})
        .get(attention, {})
        .get("trained", {})
        .get("scores", {})
        .get("n")
    }
    if not rows:
        return blank()
    with grid(2, 1, size=(NARROW, 0.7 * len(rows) + 1.7), sharex=True) as (figure, panels):
        for axes, (level, title) in zip(
            panels.flat, (("scores", "scores"), ("weights", "attention")), strict=True
        ):
            for at, meaning in ((0, "nothing known"), (1, "symmetric")):
                axes.axvline(at, color="#bbbbbb", lw=1, zorder=0)
                place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
                axes.annotate(meaning, (at, 1), (0, 2), ha="center", fontsize=8.5, color="#555555", **place)
            for place, states in enumerate(reversed(rows.values())):
                rule(axes, place)
                dots(axes, {state: states[state][level] for state in RECIPROCITY}, RECIPROCITY, place)
            axes.set_title(title, pad=16)
            axes.set_xlim(-0.3, 1.2)
            axes.set_yticks(range(len(rows)), list(reversed(rows)))
            axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel("reciprocity of i → j and j → i")
        name_states(panels[0, 0], next(iter(rows.values())), "scores", len(rows) - 1)
    return figure


def name_states(axes: Axes, states: Mapping[str, Mapping], level: str, place: float) -> None:
    """Write beside the points of one row which of them is before training and which after."""
    for state, mark in RECIPROCITY.items():
        estimate = states[state][level]
        if estimate.get("value") is not None:
            right = max(estimate["value"], estimate.get("high") or estimate["value"])
            axes.annotate(
                mark.label, (right, place + mark.shift), (6, 0), textcoords="offset points", va="center",
                fontsize=9, color=mark.colour, fontweight="bold",
                bbox={"fc": "white", "ec": "none", "pad": 0.5},
            )  # fmt: skip
