"""What weight decay on some of the weights does to attention without residuals, a row for each choice."""

import pandas as pd
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import dot, grid, stripes
from notebooks.shared.style import INK, PART_COLOURS

ROWS = {
    "nothing": "none",
    "decoder_recurrence": "decoder, recurrent weights",
    "encoder_recurrence": "encoder, recurrent weights",
    "others": "all but recurrent weights",
    "decoder_layer": "decoder, whole layer",
    "everything": "all weights",
}
ENDS = ("nothing", "everything")


def kept_by_penalty(result: Result) -> Figure:
    """Draw how much of each row attention keeps without residuals, by penalised weights."""
    return rows_by_penalty(
        result, "no_residual", "how much of each row attention keeps without residuals", INK
    )


def share_by_penalty(result: Result) -> Figure:
    """Draw the share of the five terms with a residual, a row for each set of penalised weights."""
    return rows_by_penalty(
        result, "residual_share", "share of terms with a residual", PART_COLOURS["residual"]
    )


def rows_by_penalty(result: Result, quantity: str, label: str, colour: str) -> Figure:
    """Draw one outcome by penalised weights: networks, mean and interval, and lines at the two ends."""
    networks = pd.DataFrame(result.tables["networks"])
    with grid(1, 1, size=(6.2, 3.2)) as (figure, ((axes,),)):
        stripes(axes, len(ROWS))
        for end in ENDS:
            axes.axvline(result.values[end][quantity]["value"], color=colour, ls="--", lw=0.9, alpha=0.6)
        for place, penalised in enumerate(ROWS):
            values = networks.loc[networks["penalised"] == penalised, quantity]
            dot(axes, result.values[penalised][quantity], place + 0.12, colour, ms=6.5)
            axes.plot(values, [place - 0.2] * len(values), "o", color=colour, alpha=0.35, ms=4.5, mew=0)
        axes.set_xlim(0, 0.75)
        axes.set_xlabel(label)
        axes.set_yticks(range(len(ROWS)), list(ROWS.values()))
        axes.set_ylim(len(ROWS) - 0.5, -0.5)
        axes.set_ylabel("weights with the penalty")
    return figure
