"""Where the attention of each network is largest, and how pairs of networks agree."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from companion.data.labelled_sets import SOURCES
from companion.results.result import Result
from notebooks.shared.marks import Mark, grid, key_above, legend_handles
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, PURPLE, SKY, blank

IN_SHORT = {"sst_as_text": ("negative", "positive")}  # each with the very negative or positive ones
PLACES = {  # where attention is largest → label, colour
    "begin": ("at the begin token", PURPLE),
    "words": ("at a word", "#e4e4e4"),
    "end": ("at the end token", AMBER),
}
POSITIONS = {"all": "all positions", "words": "words alone"}
PAIRS = {
    "same": Mark("both rest on the same token", GREEN, ms=4.5),
    "different": Mark("they rest on different tokens", INK, "x", ms=4.5),
    "other": Mark("other pairs", SKY, "s", ms=4.5),
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
    networks = networks[(networks["data"] == name) & (networks["label"] == common)].sort_values("seed")
    with grid(1, 2, size=(8.6, 3.6)) as (figure, ((left, right),)):
        draw_networks(left, networks)
        left.set_xlabel(f"{class_name(name, common)}, % of texts with the largest weight …")
        left.set_ylabel("networks")
        draw_pairs(right, result, [(name, positions) for positions in POSITIONS])
        right.set_yticks([1, 0], ["with the\ntokens", "words\nalone"])
        annotate_pairs(right, result, name)
        bars = [Patch(facecolor=colour, label=f"… {label}") for label, colour in PLACES.values()]
        key_above(figure, [*bars, *legend_handles(PAIRS.values())], ncols=2, fontsize=9.5)
    return figure


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


def annotate_pairs(axes: Axes, result: Result, name: str) -> None:
    """Point at pairs of networks that rest on different marks, if some rest on either."""
    resting = result.values[name]["resting"]
    if not (resting["end"] and resting["begin"]):
        return
    pairs = pd.DataFrame(result.tables["pairs"])
    pairs = pairs.query("data == @name and label == 'both' and positions == 'all' and marks == 'different'")
    text = "two different defaults\n“did not correlate much”"
    axes.annotate(text, (pairs["agreement"].mean() + 3, 0.92), (12, 0.47), arrowprops=ARROW, va="center")
