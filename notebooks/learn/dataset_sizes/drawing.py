"""Lengths of the texts of every data set, and the medians that the second paper prints."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, ScalarFormatter

from attnlib.plots.style import INK, PART_COLOURS, style
from companion.results.result import Result

SET_NAMES = {
    "imdb": "IMDB",
    "ag_news": "AG News",
    "twenty_newsgroups": "20 NG",
    "sst": "SST, labels from 0",
    "sst_as_text": "SST, labels from 1",
    "amazon": "Amazon",
    "yelp": "Yelp",
    "sms_spam": "SMS",
    "iwslt14_de_en": "IWSLT14 De–En",
    "multi30k_de_en": "Multi30k De–En",
    "multi30k_en_de": "Multi30k En–De",
    "news_en_nl": "News En–Nl",
    "news_en_pt": "News En–Pt",
    "news_it_pt": "News It–Pt",
    "known_polarity": "made by rule, labelled",
    "known_lexicon": "made by rule, pairs",
}
PARTS = {"train": "trained on", "validation": "judged on"}
OURS, PAPERS = PART_COLOURS["temporal"], PART_COLOURS["input"]
TICKS = (5, 10, 20, 50, 100, 200, 500, 1000)


def length_ranges(result: Result) -> Figure:
    """Ranges of lengths, a row a set and side, a panel a part: middle 90 and 50 %, medians, ours and printed.

    Texts are read as published. The mark of a printed median is thin where it rests on more data than ours.
    """
    rows = [row for row in result.tables["lengths"] if row["reading"] == "published"]
    labels = list(dict.fromkeys(map(_label, rows)))[::-1]
    with style():
        figure = Figure(figsize=(8.6, 0.34 * len(labels) + 1.5))
        for axes, (part, title) in zip(figure.subplots(1, 2, sharey=True), PARTS.items(), strict=True):
            for row in rows:
                if row["part"] == part:
                    _draw(axes, labels.index(_label(row)), row, _printed(result, row))
            axes.set_xscale("log")
            axes.set_xticks(TICKS)
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("words; pieces of sentence pairs")
            axes.set_title(title, loc="left")
            axes.set_ylim(-0.6, len(labels) - 0.4)
        figure.axes[0].set_yticks(range(len(labels)), labels)
        figure.legend(handles=_handles(), loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _label(row: dict) -> str:
    side = "" if row["side"] == "words" else f", {row['side']}"
    return f"{SET_NAMES.get(row['data'], row['data'])}{side}"


def _printed(result: Result, row: dict) -> dict:
    """The row of ``sizes`` with the median of a row of ``lengths``."""
    what = "median" if row["side"] == "words" else f"{row['side']}_median"
    wanted = {name: row[name] for name in ("data", "reading", "part")} | {"what": what}
    return next(size for size in result.tables["sizes"] if wanted.items() <= size.items())


def _draw(axes: Axes, place: int, row: dict, median: dict) -> None:
    axes.plot([row["q05"], row["q95"]], [place, place], color="#9ecae1", lw=2, solid_capstyle="butt")
    axes.plot([row["q25"], row["q75"]], [place, place], color=OURS, lw=5, alpha=0.6, solid_capstyle="butt")
    axes.plot(row["q50"], place, "o", color=INK, ms=4.5)
    if median["printed"] is not None:
        axes.plot(median["printed"], place, "D", **_printed_look(median["compared"]))


def _printed_look(compared: bool) -> dict[str, object]:
    return {
        "ms": 8.5,
        "markerfacecolor": "none",
        "markeredgecolor": PAPERS,
        "markeredgewidth": 1.6 if compared else 0.8,
    }


def _handles() -> list[Line2D]:
    return [
        Line2D([], [], color="#9ecae1", lw=2, label="middle 90 %, and 50 % (broad)"),
        Line2D([], [], marker="o", color=INK, ls="", ms=4.5, label="median"),
        Line2D([], [], marker="D", ls="", label="printed", **_printed_look(True)),
        Line2D([], [], marker="D", ls="", label="printed, of more data", **_printed_look(False)),
    ]
