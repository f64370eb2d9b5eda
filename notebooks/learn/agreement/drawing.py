"""Agreement of two quantities on every data set, with chance and what the paper reports."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from companion.results.result import Result
from notebooks.shared.marks import Estimate, dot, grid, key_above, range_of_runs, rule
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, PURPLE, SKY, blank, data_name, data_of

STYLES = {  # column of the tables → label, colour, line style
    "alpha_alpha": ("attention of another seed", INK, "-"),
    "alpha_beta": ("attention, probe of another free network", SKY, "-"),
    "alpha_beta_uf": ("attention, probe at uniform attention", PURPLE, "-"),
    "delta_beta_uf": ("saliency, probe at uniform attention", AMBER, "--"),
    "beta_uf_beta_px": ("bag of words, probe at uniform attention", GREEN, "-."),
    "alpha_alpha_frozen": ("attention, attention trained alone", "#777777", (0, (5, 1.5))),
}
MARKERS = {
    "alpha_beta": ("s", 0.3),
    "alpha_beta_uf": ("o", 0.1),
    "delta_beta_uf": ("^", -0.1),
    "beta_uf_beta_px": ("v", -0.3),
}
PALE = "#b8b8b8"  # of what cannot be compared
LESS_THAN_HALF = ("ag_news", "yelp", "iwslt14_de_en")  # of the texts that the paper trained on are at hand
CHANCE = "#e6e6e6"
GREY = "#777777"
NARROW = 3.75  # inches, which a telephone shows whole
MAIN = "multi30k_en_de"  # whose course is drawn alone
COMPARED = ("alpha_beta_uf", "alpha_alpha")
PERCENT = (0, 100)
NOTE = {"textcoords": "data", "va": "center", "arrowprops": ARROW}

Published = Mapping[tuple[str, str], float]  # by data set and column


@dataclass(frozen=True)
class Row:
    """The agreement of one pair of quantities on a data set, and what it is compared with, in %."""

    ours: Estimate
    chance: float | None
    published: float | None

    @classmethod
    def of(cls, result: Result, published: Published, name: str, column: str) -> "Row":
        """Read the row of a data set and a column of the tables, as published at the best checkpoint."""
        measured = result.values[name]["validation"]["accuracy"]
        ours, chance = measured[column]["agreement_optimistic"], measured["chance"]["value"]
        return cls(ours, chance, published.get((name, column)))


def attention_and_probe(result: Result, published: Published) -> Figure:
    """Draw a row for each data set: agreement of attention and probe, chance, and the published number."""
    column = "alpha_beta_uf"
    rows = {name: Row.of(result, published, name, column) for name in reversed(data_of(result))}
    rows = {name: row for name, row in rows.items() if row.ours["value"] is not None}
    if not rows:
        return blank()
    _, colour, _ = STYLES[column]
    with grid(1, 1, size=(NARROW, 1.3 + 0.38 * len(rows))) as (figure, ((axes,),)):
        for place, (name, row) in enumerate(rows.items()):
            rule(axes, place)
            if row.chance is not None:
                axes.barh(place, row.chance, height=0.8, color=CHANCE, lw=0)
            dot(axes, row.ours, place, colour, ms=8, within=PERCENT, bar={"lw": 2})
            if row.published is not None:
                ink = PALE if is_shown_only(name) else INK
                axes.plot(row.published, place, "D", mfc="white", mec=ink, ms=6, mew=1.3)
        name_marks(axes, is_published=bool(published), colour=colour)
        axes.set_yticks(range(len(rows)), [data_name(name).replace(" (", "\n(") for name in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(-0.6, len(rows) - 0.3)
        axes.set_xlim(*PERCENT)
        axes.set_xticks([0, 50, 100], ["0", "50 %", "100 %"])
        axes.set_xlabel("texts, or words to translate")
        where = "attention goes where\nthe other network knows the answer"
        title = f"On the paper's data {where}" if published else f"How often {where}"
        figure.suptitle(title, x=0.02, ha="left")
    return figure


def is_shown_only(name: str) -> bool:
    """Whether we have less than half of the texts that the paper trained on, so that nothing is judged."""
    return name in LESS_THAN_HALF


def draw_chance(axes: Axes, chance: float | None, place: float, *, lw: float) -> None:
    if chance is not None:
        axes.plot([chance, chance], [place - 0.4, place + 0.4], color=INK, lw=lw, ls=":")


def name_marks(axes: Axes, *, is_published: bool, colour: str) -> None:
    """Say above the first row what its marks are."""
    marks = [
        Patch(color=CHANCE, label="chance"),
        Line2D([], [], color=colour, marker="o", ms=8, lw=2, label="ours"),
    ]
    if is_published:
        marks.append(
            Line2D([], [], ls="", marker="D", mfc="white", mec=INK, ms=6, mew=1.3, label="published")
        )
    axes.legend(
        handles=marks, loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=3, frameon=False, fontsize=9.5,
        handlelength=1.2, columnspacing=1.2, handletextpad=0.5, borderaxespad=0,
    )  # fmt: skip


def agrees_when_accurate(result: Result, courses: pd.DataFrame) -> Figure:
    """Draw how accurate a run is once it agrees with a free network as the probe does (equation 11).

    Args:
        result: of the experiment.
        courses: agreement and accuracy by pair of runs and checkpoint.
    """
    name = MAIN if MAIN in data_of(result) else next(iter(data_of(result)), None)
    courses = courses[(courses["data"] == name) & (courses["part"] == "validation")] if name else courses
    probe, runs = (courses[courses["column"] == column].groupby("step") for column in COMPARED)
    level, agreement, accuracy = (
        probe["agreement"].mean().max(), runs["agreement"].mean(), runs["accuracy"].mean()
    )  # fmt: skip
    if not (agreement > level).any():
        return blank()
    step = (agreement > level).idxmax()
    colour, last = STYLES["alpha_beta_uf"][1], agreement.index.max()
    with grid(1, 1, size=(NARROW, 3.7)) as (figure, ((axes,),)):
        axes.plot(agreement, color=INK, lw=1.8)
        range_of_runs(axes, runs["agreement"], INK)
        axes.plot(accuracy, color=GREY, ls="--", lw=1.6)
        axes.plot([0, step], [level, level], color=colour, lw=1.6)
        arrow = ARROW | {"color": colour, "shrinkA": 0, "shrinkB": 3}
        axes.annotate("", (step, accuracy[step]), (step, level), arrowprops=arrow)
        axes.plot(step, accuracy[step], "o", mfc="white", mec=colour, ms=6)
        axes.text(0, level + 2, "attention and probe", color=colour, fontsize=9.5)
        axes.annotate(
            f"here {accuracy[step]:.0f} % of its\nwords are correct: ξ",
            (step, accuracy[step]), (4, -42), textcoords="offset points", color=colour, fontsize=9.5,
        )  # fmt: skip
        axes.text(last, agreement[last] + 3, "attention of two seeds", color=INK, ha="right", fontsize=9.5)
        axes.text(last, accuracy[last] - 9, "accuracy", color=GREY, ha="right", fontsize=9.5)
        axes.set_xscale("symlog", linthresh=50)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlim(0, last)
        axes.set_ylim(0, 100)
        axes.set_xlabel("updates of the second network")
        axes.set_ylabel("agreement, accuracy, %")
        title = f"{data_name(name)}: when two seeds agree\nthat well, the second already translates"
        figure.suptitle(title, x=0.02, ha="left")
    return figure


def at_the_best(result: Result, published: Published) -> Figure:
    """Draw a row for each data set, a colour for each column; chance is dotted, what is published a rhomb."""
    names = data_of(result)[::-1]
    with grid(1, 1, size=(8.6, 1.2 + 0.62 * len(names))) as (figure, ((axes,),)):
        for place, name in enumerate(names):
            if place:
                axes.axhline(place - 0.5, color="#e4e4e4", lw=0.8, zorder=0)
            for column, (marker, shift) in MARKERS.items():
                row, (_, colour, _) = Row.of(result, published, name, column), STYLES[column]
                dot(
                    axes,
                    row.ours,
                    place + shift,
                    colour,
                    marker=marker,
                    ms=6,
                    within=PERCENT,
                    bar={"lw": 1.6},
                )
                if row.published is not None and row.ours["value"] is not None:
                    axes.plot(row.published, place + shift, "D", mfc="white", mec=colour, ms=5.5, mew=1.3)
            draw_chance(axes, result.values[name]["validation"]["accuracy"]["chance"]["value"], place, lw=1.2)
        axes.set_yticks(range(len(names)), map(data_name, names))
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xlim(*PERCENT)
        axes.set_xlabel("agreement at the best checkpoint, % of texts or target words")
        if published and "multi30k_de_en" in names:
            annotate_translation(axes, result, published)
        handles = [
            Line2D([], [], color=STYLES[column][1], marker=marker, ms=6, label=STYLES[column][0])
            for column, (marker, _) in MARKERS.items()
        ]
        if published:
            handles.append(Line2D([], [], marker="D", label="as published", mfc="white", mec=INK, ls=""))
        key_above(figure, handles, ncols=2, fontsize=9.5)
    return figure


def annotate_translation(axes: Axes, result: Result, published: Published) -> None:
    """Point at chance, a dot and a published number in the rows of Multi30k."""
    names = data_of(result)[::-1]
    place = names.index("multi30k_de_en")
    row = Row.of(result, published, "multi30k_de_en", "alpha_beta_uf")
    axes.annotate("chance", (row.chance, place + 0.2), (14, place + 0.2), **NOTE)
    text = "attention goes where a network that\nnever attended knows the word"
    axes.annotate(text, (row.ours["value"] + 3, place + 0.1), (60, place + 0.55), **NOTE)
    place = names.index("multi30k_en_de")
    printed = published["multi30k_en_de", "delta_beta_uf"]
    axes.annotate("published in the paper", (printed + 0.8, place - 0.1), (60, place + 0.3), **NOTE)
