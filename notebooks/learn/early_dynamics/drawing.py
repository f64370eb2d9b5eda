"""Tables of words as grids, counted, divided and iterated; and the first gradient over the width."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import Mark, grid, legend_of, matrix
from notebooks.shared.style import AMBER, ARROW, GREEN, HALO, INK, PURPLE, SKY

CORPORA = {  # whose derivative in theory is not zero
    "lexicon": (PURPLE, "o"),
    "sample": (AMBER, "s"),
    "mixture": (GREEN, "^"),
    "polarity": (SKY, "D"),
}
REMARKS = (  # on the table of the lexicon: text, its square, and where it is written
    ("always together", (2.2, 2), (8.4, 1)),
    ("never together", (3.1, 5), (2.2, 9)),
)
STEPS = (  # titles
    "1. count who meets whom: C",
    "2. divide rows by their sum: Trans",
    "3. attend in a sentence: α",
)
SCALED = ("counts", "translation")  # tables whose largest entry is black; of the others it is 1
DARK = 0.55  # of the largest entry: from here on numbers are white


def counted_words(counts: pd.DataFrame) -> Figure:
    """Draw the count table of the lexicon: the diagonal, words and their translations, is darkest."""
    with grid(1, 1, size=(3.75, 3.9)) as (figure, ((axes,),)):
        draw_table(axes, counts, "lexicon", "counts")
        axes.set_title("Every word co-occurs most\nwith its translation", loc="left")
        axes.set_xlabel("target word")
        axes.set_ylabel("source word")
        for text, square, place in REMARKS:
            axes.annotate(
                text, square, place, fontsize=9, ha="center", va="center", arrowprops=ARROW | {"shrinkB": 3},
                path_effects=[HALO],
            )  # fmt: skip
    return figure


def three_steps(counts: pd.DataFrame, alignments: pd.DataFrame, corpus: str) -> Figure:
    """Count, divide, align: draw two tables of a corpus, and the attention in its first sentence."""
    sentence = alignments[(alignments["corpus"] == corpus) & (alignments["table"] == "counted")]
    with grid(1, 3, size=(8.6, 3.4)) as (figure, (panels,)):
        counted, divided, attended = panels
        for axes, table in ((counted, "counts"), (divided, "translation")):
            draw_table(axes, counts, corpus, table)
            axes.set_xlabel("target word")
            axes.set_ylabel("source word")
        draw_grid(attended, sentence, words_of(sentence, "target"), words_of(sentence, "source"))
        attended.set_xlabel("source word")
        attended.set_ylabel("target word")
        for axes, title in zip(panels, STEPS, strict=True):
            axes.set_title(title, loc="left", fontsize=10)
    return figure


def counted_and_iterated(counts: pd.DataFrame, corpora: Mapping[str, str]) -> Figure:
    """Draw a column for each kind of sentences of letters: its counts above, iterated below."""
    with grid(2, len(corpora), size=(2.3 * max(len(corpora), 2), 4.6)) as (figure, panels):
        for column, (corpus, title) in zip(panels.T, corpora.items(), strict=True):
            for axes, table in zip(column, ("counts", "iterated"), strict=True):
                draw_table(axes, counts, corpus, table, numbered=is_flat(counts, corpus), room=1.6)
            column[0].set_title(title, loc="left")
            column[1].set_xlabel("target letter")
        for axes, table in zip(panels[:, 0], ("counted", "iterated"), strict=True):
            axes.set_ylabel("source letter")
            axes.text(
                -0.42,
                0.5,
                table,
                weight="bold",
                rotation=90,
                va="center",
                ha="center",
                transform=axes.transAxes,
            )
    return figure


def is_flat(counts: pd.DataFrame, corpus: str) -> bool:
    """Return True if all pairs of words of a corpus meet equally often."""
    values = counts.loc[(counts["corpus"] == corpus) & (counts["table"] == "counts"), "value"]
    return bool(np.ptp(values) == 0) if len(values) else False


def convergence(result: Result, names: Mapping[str, str]) -> Figure:
    """Draw the error of the derivative in theory over the width, and measured over theory as a slope."""
    rows = pd.DataFrame(result.tables["derivative"])
    rows = rows[rows["corpus"].isin(list(CORPORA))]
    with grid(1, 2, size=(8.6, 3.7)) as (figure, (panels,)):
        draw_errors(panels[0], rows)
        draw_slopes(
            panels[1], rows, {corpus: result.values["derivative"][corpus]["outputs"] for corpus in CORPORA}
        )
        for axes in panels:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
            axes.set_xlabel("width of the bag of words")
        panels[0].set_yticks([0.01, 0.03, 0.1, 0.3])
        panels[1].set_yticks([0.1, 0.2, 0.5, 1.0])
        panels[1].set_ylim(0.06, 1.4)
        marks = [Mark(names[corpus], colour, marker, ms=5) for corpus, (colour, marker) in CORPORA.items()]
        legend_of(figure, marks, ncols=4)
    return figure


def draw_errors(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the errors of logits and of probabilities, means over all corpora."""
    means = rows.groupby("width")[["logits_error", "derived_error"]].mean()
    looks = {"color": INK, "marker": "o", "ms": 5, "lw": 1.2}
    axes.plot(means["logits_error"], label="logits", **looks)
    axes.plot(means["derived_error"], mfc="white", ls=":", label="probabilities, with the factor", **looks)
    axes.legend(frameon=False)
    axes.set_ylabel("error, times the size of the theory's")
    axes.set_title("both errors vanish, as one over\nthe square root of the width", loc="left")


def draw_slopes(axes: Axes, rows: pd.DataFrame, outputs: Mapping[str, int]) -> None:
    """Draw the slopes of logits (filled) and of probabilities as published (open)."""
    for corpus, (colour, marker) in CORPORA.items():
        means = rows[rows["corpus"] == corpus].groupby("width")[["logits_slope", "printed_slope"]].mean()
        looks = {"color": colour, "marker": marker, "ms": 5, "lw": 1.2}
        axes.plot(means["logits_slope"], **looks)
        axes.plot(means["printed_slope"], mfc="white", ls=":", **looks)
        least = 1 / outputs[corpus]
        axes.axhline(least, color=colour, lw=0.8, ls="--", zorder=0)
        end = (means.index[-1], least)
        axes.annotate(
            f"1/{outputs[corpus]}",
            end,
            (10, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour,
        )
    axes.axhline(1, color=INK, lw=0.8, ls="--", zorder=0)
    axes.set_ylabel("measured / published")
    axes.set_title("logits (filled): slope 1\nprobabilities (open): slope 1/|O|", loc="left")


def words_of(sentence: pd.DataFrame, side: str) -> list[str]:
    """Words of a sentence in their order; a word may come twice."""
    return sentence.drop_duplicates(f"{side}_position")[side].tolist()


def draw_table(
    axes: Axes, counts: pd.DataFrame, corpus: str, table: str, *, numbered: bool = True, room: float = 1
) -> None:
    """Draw one of the tables of a corpus: its counts, or translation probabilities.

    Black is ``room`` times the largest count.
    """
    records = counts[(counts["corpus"] == corpus) & (counts["table"] == table)]
    largest = room * records["value"].max() if table in SCALED else 1
    form = "{:.0f}" if table == "counts" else "{:.2f}"
    rows, columns = records["source"].unique(), records["target"].unique()
    draw_grid(axes, records, rows, columns, largest=largest, form=form if numbered else "")


def draw_grid(
    axes: Axes,
    records: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    largest: float = 1,
    form: str = "{:.2f}",
) -> None:
    """Draw a table of words, darker for more; the largest entry is black, and small tables have numbers."""
    values = records["value"].to_numpy().reshape(len(rows), len(columns))
    matrix(axes, values, vmax=largest)
    has_long_words = max(map(len, columns)) > 3
    axes.set_xticks(range(len(columns)), columns, rotation=90 if has_long_words else 0, fontsize=9)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    if len(columns) <= 8 and form:
        write_numbers(axes, values, form, white_from=DARK * largest)


def write_numbers(axes: Axes, values: np.ndarray, form: str, *, white_from: float) -> None:
    """Write each entry into its square."""
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if value > white_from else INK
        axes.text(column, row, form.format(value), ha="center", va="center", fontsize=8.5, color=ink)
