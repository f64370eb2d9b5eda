"""What weight decay on some of the weights does to attention without residuals, a row for each choice."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import dot, grid, stripes
from notebooks.shared.style import INK, PART_COLOURS

ROWS = {
    "nothing": "no weight",
    "decoder_recurrence": "decoder, recurrent weights",
    "encoder_recurrence": "encoder, recurrent weights",
    "decoder_layer": "decoder, whole layer",
    "others": "all but recurrent weights",
    "everything": "all weights",
}
PANELS = (
    ("no_residual", "attention kept without residuals", INK),
    ("residual_share", "share of terms with a residual", PART_COLOURS["residual"]),
)


def rows_by_penalty(result: Result) -> Figure:
    """Draw two outcomes in a row for each set of penalised weights: networks, mean and interval."""
    networks = pd.DataFrame(result.tables["networks"])
    with grid(1, len(PANELS), size=(8.6, 3.2), sharey=True) as (figure, (panels,)):
        for axes, (quantity, label, colour) in zip(panels, PANELS, strict=True):
            draw_rows(axes, result, networks, quantity, colour)
            axes.set_xlabel(label)
        panels[0].set_yticks(range(len(ROWS)), list(ROWS.values()))
        panels[0].set_ylim(len(ROWS) - 0.5, -0.5)
        panels[0].set_ylabel("weights with the penalty")
    return figure


def draw_rows(axes: Axes, result: Result, networks: pd.DataFrame, quantity: str, colour: str) -> None:
    """Draw one outcome, every network as a pale point."""
    stripes(axes, len(ROWS))
    for place, penalised in enumerate(ROWS):
        values = networks.loc[networks["penalised"] == penalised, quantity]
        axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.3, ms=4, mew=0)
        dot(axes, result.values[penalised][quantity], place, colour, ms=6.5)
    axes.set_xlim(min(0, axes.get_xlim()[0]), max(0.75, axes.get_xlim()[1]))
