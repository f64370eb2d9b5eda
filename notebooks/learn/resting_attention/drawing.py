"""Where attention of classifiers is largest, network by network, and how far two of them agree."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.shared.agreement_drawing import data_name
from notebooks.shared.style import blank

PLACE_LOOKS = {
    "begin": ("at the begin mark", "#0072b2"),
    "words": ("at a word", "#e4e4e4"),
    "end": ("at the end mark", "#d55e00"),
}
POSITION_NAMES = {"all": "all positions", "words": "words alone"}
PAIR_LOOKS = {
    "same": ("both rest on one mark", "#0072b2"),
    "different": ("they rest on two marks", "#d55e00"),
    "other": ("other pairs", "#999999"),
}
# What label 0 and label 1 stand for; of other sets they are called by number.
CLASSES = {
    "known_polarity": ("minus", "plus"),
    "sms_spam": ("ham", "spam"),
    "sst": ("negative or neutral", "very positive"),
    "sst_as_text": ("negative", "positive"),  # each with the very negative or positive ones
    "imdb": ("negative", "positive"),
    "amazon": ("negative", "positive"),
    "yelp": ("at most two stars", "at least four stars"),
    "ag_news": ("World", "Business"),
    "twenty_newsgroups": ("baseball", "hockey"),
}


def class_name(data: str, label: str) -> str:
    """What a label stands for."""
    return CLASSES[data][int(label)] if data in CLASSES else f"label {label}"


def resting_places(result: Result) -> Figure:
    """A row of two panels a data set: a bar a network, the texts of a label by where attention is largest."""
    names = list(result.values)
    if not names:
        return blank()
    labels = {name: _commoner_first(result.values[name]) for name in names}
    networks = {name: sorted({row["seed"] for row in _rows(result, "networks", data=name)}) for name in names}
    heights = [len(found) + 1.5 for found in networks.values()]
    with style():
        figure = Figure(figsize=(8.6, 0.5 + 0.2 * sum(heights)))
        grid = figure.subplots(len(names), 2, sharex=True, squeeze=False, height_ratios=heights)
        for line, name in zip(grid, names, strict=True):
            for axes, label in zip(line, labels[name], strict=False):
                found = {row["seed"]: row for row in _rows(result, "networks", data=name, label=label)}
                _bars(axes, [found[seed] for seed in networks[name]])
                texts = result.values[name]["labels"][label]["texts"]
                axes.set_title(f"{data_name(name)}, {class_name(name, label)} ({texts:,} texts)", loc="left")
            for axes in line[len(labels[name]) :]:
                axes.set_axis_off()
            line[0].set_ylabel("networks")
        for axes in grid[-1]:
            axes.set_xlabel("texts, %")
        handles = [Patch(facecolor=colour, label=label) for label, colour in PLACE_LOOKS.values()]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    return figure


def pairs_of_seeds(result: Result) -> Figure:
    """Two rows a data set, over all positions and among the words alone: a dot an ordered pair of seeds."""
    shown = [
        (name, positions)
        for name, found in result.values.items()
        for positions in (POSITION_NAMES if found["pairs"] else ())
    ]
    if not shown:
        return blank()
    with style():
        figure = Figure(figsize=(8.2, 1.0 + 0.42 * len(shown)))
        axes = figure.subplots()
        for place, (name, positions) in enumerate(reversed(shown)):
            rows = _rows(result, "pairs", data=name, positions=positions, label="both")
            heights = place + np.linspace(-0.24, 0.24, len(rows))
            for marks, (_, colour) in PAIR_LOOKS.items():
                of_kind = [i for i, row in enumerate(rows) if row["marks"] == marks]
                values = [rows[i]["agreement"] for i in of_kind]
                axes.plot(values, heights[of_kind], "o", color=colour, ms=3.4, alpha=0.6, mew=0)
            found = result.values[name]["pairs"][positions]["both"]
            across = [place - 0.34, place + 0.34]
            axes.plot([found["agreement"]["value"]] * 2, across, color=INK, lw=2)
            axes.plot([found["chance"]["value"]] * 2, across, color=INK, lw=1, ls=":")
        labels = [f"{data_name(name)}, {POSITION_NAMES[positions]}" for name, positions in reversed(shown)]
        axes.set_yticks(range(len(shown)), labels)
        axes.set_xlim(0, 100)
        axes.set_xlabel("agreement of the attentions of two seeds, % of texts")
        handles = [
            Line2D([], [], color=colour, marker="o", ls="", ms=4, label=label)
            for label, colour in PAIR_LOOKS.values()
        ]
        handles.append(Line2D([], [], color=INK, lw=2, label="mean"))
        handles.append(Line2D([], [], color=INK, lw=1, ls=":", label="chance"))
        figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, columnspacing=1.2)
    return figure


def _bars(axes: Axes, networks: list[dict]) -> None:
    heights = np.arange(len(networks))[::-1]
    left = np.zeros(len(networks))
    for place, (_, colour) in PLACE_LOOKS.items():
        shares = np.array([row[place] for row in networks])
        axes.barh(heights, shares, left=left, height=0.8, color=colour)
        left += shares
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.6, len(networks) - 0.4)
    axes.set_yticks([])


def _commoner_first(found: dict) -> list[str]:
    common = found["common"]
    return [common, *(label for label in found["labels"] if label != common)]


def _rows(result: Result, table: str, **which: str) -> list[dict]:
    return [
        row for row in result.tables[table] if all(str(row[key]) == value for key, value in which.items())
    ]
