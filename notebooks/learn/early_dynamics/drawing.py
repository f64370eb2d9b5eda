"""Tables of words as grids: who meets whom, translation probabilities, and attention that follows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import grid, matrix
from notebooks.shared.style import ARROW, INK

STEPS = (  # title, and what is said of the lexicon
    ("1. count who meets whom: C", "a word and its translation\nmeet in every sentence"),
    ("2. divide rows by their sum: Trans", "¼, and the rest is shared\nout among its company"),
    ("3. attend in a sentence: α", "half of the attention is\non the translation"),
)
DARK = 0.55  # of the largest entry: from here on numbers are white


def three_steps(
    counts: pd.DataFrame, alignments: pd.DataFrame, corpus: str, *, annotated: bool = False
) -> Figure:
    """Count, divide, align: draw two tables of a corpus, and the attention in its first sentence."""
    sentence = alignments[(alignments["corpus"] == corpus) & (alignments["table"] == "counted")]
    with grid(1, 3, size=(8.6, 3.6)) as (figure, (panels,)):
        counted, divided, attended = panels
        for axes, table in ((counted, "counts"), (divided, "translation")):
            draw_table(axes, counts, corpus, table)
            axes.set_xlabel("target word")
            axes.set_ylabel("source word")
        draw_grid(attended, sentence, words_of(sentence, "target"), words_of(sentence, "source"))
        attended.set_xlabel("source word")
        attended.set_ylabel("target word")
        for axes, (title, note) in zip(panels, STEPS, strict=True):
            axes.set_title(title, loc="left", fontsize=10, pad=36 if annotated else None)
            if annotated:
                axes.annotate(
                    note,
                    (0, -0.4),
                    (0.16, 1.09),
                    textcoords="axes fraction",
                    fontsize=9,
                    va="center",
                    arrowprops=ARROW,
                )
    return figure


def words_of(sentence: pd.DataFrame, side: str) -> list[str]:
    """Words of a sentence in their order; a word may come twice."""
    return sentence.drop_duplicates(f"{side}_position")[side].tolist()


def draw_table(axes: Axes, counts: pd.DataFrame, corpus: str, table: str) -> None:
    """Draw one of the tables of a corpus: its counts, or translation probabilities."""
    records = counts[(counts["corpus"] == corpus) & (counts["table"] == table)]
    draw_grid(
        axes, records, records["source"].unique(), records["target"].unique(), counted=table == "counts"
    )


def draw_grid(
    axes: Axes, records: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], *, counted: bool = False
) -> None:
    """Draw a table of words, darker for more; counts are scaled to their largest entry."""
    values = records["value"].to_numpy().reshape(len(rows), len(columns))
    largest = values.max() if counted else 1
    matrix(axes, values, vmax=largest)
    has_long_words = max(map(len, columns)) > 3
    axes.set_xticks(range(len(columns)), columns, rotation=90 if has_long_words else 0, fontsize=8.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=8.5)
    if len(columns) <= 8:
        write_numbers(axes, values, "{:.0f}" if counted else "{:.2f}", white_from=DARK * largest)


def write_numbers(axes: Axes, values: np.ndarray, form: str, *, white_from: float) -> None:
    """Write each entry into its square."""
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if value > white_from else INK
        axes.text(column, row, form.format(value), ha="center", va="center", fontsize=8.5, color=ink)
