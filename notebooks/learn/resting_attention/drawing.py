"""Where the attention of each network is largest, and how pairs of networks agree."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.data.labelled_sets import SOURCES
from companion.results.result import Result
from notebooks.shared.marks import Mark, grid
from notebooks.shared.style import AMBER, GREEN, INK, OCHRE, PURPLE, SKY, blank

IN_SHORT = {"sst_as_text": ("negative", "positive")}  # each with the very negative or positive ones
PLACES = {  # where attention is largest → label, colour
    "begin": ("at the begin token", PURPLE),
    "words": ("at a word", "#e4e4e4"),
    "end": ("at the end token", AMBER),
}
NARROW = 3.75  # inches, which a telephone shows whole
TITLE_AT = -0.2  # of the width of a panel
ROOM = 20  # % of the texts, for a name on a bar
BESIDE = {"begin": ("begin token", PURPLE), "end": ("end token", OCHRE)}  # names of the bars
NAMES = {  # pairs → what they have in common, and at which end of them it is written
    "different": ("different\ntokens", "left"),
    "other": ("one on\nneither", "center"),
    "same": ("the same\ntoken", "right"),
}
INKS = {"different": INK, "other": "#2f7ca8", "same": "#007f5f"}  # of their names
POSITIONS = {"all": "all positions", "words": "words alone"}
PAIRS = {
    "same": Mark("both rest on the same token", GREEN, ms=4.5),
    "different": Mark("they rest on different tokens", INK, "x", ms=4.5),
    "other": Mark("at least one on neither", SKY, "s", ms=4.5),
}


def class_name(data: str, label: str) -> str:
    """What a label of a data set means; labels of a reader's own are called by number."""
    if data not in SOURCES:
        return f"label {label}"
    return IN_SHORT.get(data, SOURCES[data].classes)[int(label)]


def places_and_pairs(result: Result) -> Figure:
    """Draw where attention is largest in texts of the first set's commoner label; and how pairs agree."""
    name = next(iter(result.values), None)
    if not name or not result.values[name]["pairs"]:
        return blank()
    networks, common = pd.DataFrame(result.tables["networks"]), result.values[name]["common"]
    networks = networks[(networks["data"] == name) & (networks["label"] == common)]
    networks = networks.sort_values("begin", ascending=False)
    with grid(2, 1, size=(NARROW, 6), height_ratios=(1, 1.15)) as (figure, panels):
        upper, lower = panels.flat
        draw_networks(upper, networks)
        name_bars(upper, networks)
        upper.set_title("Most networks rest on one of two tokens", loc="left", x=TITLE_AT)
        upper.set_xlabel(f"{class_name(name, common)}: where the largest weight is, % of texts")
        draw_pairs(lower, result, [(name, positions) for positions in POSITIONS])
        lower.set_title("Pairs on the same token agree", loc="left", x=TITLE_AT)
        lower.set_xlabel("texts in which two networks agree, %")
        lower.set_yticks([1, 0], ["with the\ntokens", "words\nalone"])
        name_pairs(lower, result, name)
    return figure


def name_bars(axes: Axes, networks: pd.DataFrame) -> None:
    """Name beside the longest bar of each token where it is, and on the longest part of a word what it is."""
    rows = np.arange(len(networks))[::-1]
    shown = {place: int(networks[place].to_numpy().argmax()) for place in PLACES}
    tokens = [place for place in BESIDE if networks[place].max() > ROOM]
    axes.set_yticks([rows[shown[place]] for place in tokens], [BESIDE[place][0] for place in tokens])
    axes.tick_params(axis="y", length=0)
    for label, place in zip(axes.get_yticklabels(), tokens, strict=True):
        label.set_color(BESIDE[place][1])
    longest = networks.iloc[shown["words"]]
    if longest["words"] > ROOM:
        middle, name = longest["begin"] + longest["words"] / 2, PLACES["words"][0]
        look = {"ha": "center", "va": "center_baseline", "fontsize": 9}
        axes.text(middle, rows[shown["words"]], name, color=INK, **look)


def name_pairs(axes: Axes, result: Result, name: str) -> None:
    """Write above the pairs of each kind, with the tokens counted, what they have in common."""
    pairs = pd.DataFrame(result.tables["pairs"]).query(
        "data == @name and label == 'both' and positions == 'all'"
    )
    for marks, (text, side) in NAMES.items():
        alike = pairs.loc[pairs["marks"] == marks, "agreement"]
        if len(alike):
            at = {"left": alike.min(), "right": alike.max(), "center": alike.median()}[side]
            axes.text(at, 1.36, text, color=INKS[marks], fontsize=9, ha=side, va="bottom")
    chance = result.values[name]["pairs"]["words"]["both"]["chance"]["value"]
    axes.text(chance + 1.5, 0, "chance", color=INK, fontsize=9, va="center")
    mean = result.values[name]["pairs"]["words"]["both"]["agreement"]["value"]
    axes.text(mean, -0.37, "mean", color=INK, fontsize=9, ha="center", va="top")
    axes.set_ylim(-0.55, 1.75)


def draw_networks(axes: Axes, networks: pd.DataFrame) -> None:
    """Draw a bar for each network: the texts by where its attention is largest, in %."""
    rows = np.arange(len(networks))[::-1]
    left = np.zeros(len(networks))
    for place, (_, colour) in PLACES.items():
        axes.barh(rows, networks[place], left=left, height=0.8, color=colour)
        left = left + networks[place].to_numpy()
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.6, len(networks) - 0.4)
    axes.set_yticks([])


def draw_pairs(axes: Axes, result: Result, shown: Sequence[tuple[str, str]]) -> None:
    """Draw a row for each data set and choice of positions, a mark for each ordered pair of networks.

    An upright line is the mean of a row, a dotted one chance.
    """
    pairs = pd.DataFrame(result.tables["pairs"])
    pairs = pairs[pairs["label"] == "both"]
    for place, (name, positions) in enumerate(reversed(shown)):
        rows = pairs[(pairs["data"] == name) & (pairs["positions"] == positions)]
        rows = rows.assign(height=place + np.linspace(-0.24, 0.24, len(rows)))
        for marks, mark in PAIRS.items():
            alike = rows[rows["marks"] == marks]
            axes.plot(alike["agreement"], alike["height"], mark.marker, color=mark.colour, ms=3.6, alpha=0.6)
        estimates = result.values[name]["pairs"][positions]["both"]
        upright(axes, estimates["agreement"]["value"], place, lw=2)
        upright(axes, estimates["chance"]["value"], place, lw=1, ls=":")
    axes.set_ylim(-0.5, len(shown) - 0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("agreement of the attentions of two seeds, % of texts")


def upright(axes: Axes, value: float, place: float, **line: object) -> None:
    """Draw a line as high as a row."""
    axes.plot([value, value], [place - 0.34, place + 0.34], color=INK, **line)
