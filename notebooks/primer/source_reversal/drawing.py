"""Reading the source forwards and backwards: how many words are correct, and where."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from notebooks.shared.marks import grid
from notebooks.shared.style import GREEN, HALO, INK, WINE, lines

NARROW = 3.75  # inches, which a telephone shows whole
NAMES = (
    ("attention, read either way", (9, 0.945), GREEN),
    ("one vector, read backwards", (9, 0.87), WINE),
    ("one vector, read forwards", (2, 0.52), INK),
)
ORDERS = {"forward": ("read forwards", INK, "-"), "reversed": ("read backwards", WINE, "--")}


def right_by_place(places: pd.DataFrame, cell: str) -> Figure:
    """Share of correct words at each position, read both ways, with one vector and with attention."""
    places = places[places["cell"] == cell]
    with grid(1, 1, size=(NARROW, 3.6)) as (figure, ((axes,),)):
        attending = {order: ("", GREEN, line) for order, (_, _, line) in ORDERS.items()}
        lines(axes, places[places["kind"] == "attention"], "place", "order", attending)
        lines(axes, places[places["kind"] == "initial"], "place", "order", ORDERS)
        axes.set_title("With one vector, reading backwards\nhelps the last words", loc="left")
        axes.set_xlabel("position of the word in the sentence")
        axes.set_ylabel("share of words that are correct")
        axes.set_ylim(0, 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for text, place, colour in NAMES:
            axes.text(*place, text, color=colour, fontsize=9.5, va="center", path_effects=[HALO])
    return figure
