"""What weight decay on some of the weights does to attention without residuals, a row for each choice."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from companion.results.result import Result
from notebooks.shared.marks import dot, grid, stripes
from notebooks.shared.style import INK, PART_COLOURS

WIDTH = 3.75  # inches, which a telephone shows whole
TITLE_AT = -0.42  # of the panel's width: above the names of its rows
ROWS = {
    "nothing": "no penalty",
    "decoder_recurrence": "decoder, recurrent weights",
    "encoder_recurrence": "encoder, recurrent weights",
    "others": "all but recurrent weights",
    "decoder_layer": "decoder, whole layer",
    "everything": "all weights",
}
ENDS = {"nothing": "no penalty", "everything": "penalty on\nall weights"}


def kept_by_penalty(result: Result) -> Figure:
    """Draw how much of each row attention keeps without residuals, by penalised weights."""
    figure = rows_by_penalty(result, "no_residual", "attention kept without residuals", INK)
    title = "Penalised alone, recurrent weights do little;\nthe decoder's whole layer goes half of the way"
    figure.axes[0].set_title(title, loc="left", x=TITLE_AT, fontsize=10.5)
    return figure


def share_by_penalty(result: Result) -> Figure:
    """Draw the share of the five terms with a residual, a row for each set of penalised weights."""
    return rows_by_penalty(
        result, "residual_share", "share of terms with a residual", PART_COLOURS["residual"]
    )


def rows_by_penalty(result: Result, quantity: str, label: str, colour: str) -> Figure:
    """Draw one outcome by penalised weights: networks, mean and interval, and lines at the two ends."""
    networks = pd.DataFrame(result.tables["networks"])
    with grid(1, 1, size=(WIDTH, 3.9)) as (figure, ((axes,),)):
        stripes(axes, len(ROWS))
        for end, name in ENDS.items():
            value = result.values[end][quantity]["value"]
            axes.plot([value, value], [-0.5, len(ROWS) - 0.5], color=colour, ls="--", lw=0.9, alpha=0.6)
            axes.text(value, -0.6, name, ha="center", va="bottom", fontsize=9)
        for place, penalised in enumerate(ROWS):
            values = networks.loc[networks["penalised"] == penalised, quantity]
            dot(axes, result.values[penalised][quantity], place + 0.14, colour, ms=6.5)
            axes.plot(values, [place - 0.2] * len(values), "o", color=colour, alpha=0.35, ms=4.5, mew=0)
        axes.margins(x=0.15)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        axes.set_xlabel(label)
        names = [name.replace(", ", ",\n").replace("but ", "but\n") for name in ROWS.values()]
        axes.set_yticks(range(len(ROWS)), names)
        axes.set_ylim(len(ROWS) - 0.5, -1.5)
    return figure
