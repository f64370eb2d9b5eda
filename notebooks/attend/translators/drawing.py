"""Whether longer training would help translators, and how well they translate."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import grid
from notebooks.shared.style import ARCHITECTURE_MARKERS, INK, network_name, task_name

COLOURS = (INK, "#2f7f6f")  # of kinds of network: no colour of a part
HELPS = 0.99  # of the loss: below it longer training has helped
OF_USE = 10  # BLEU
GREY = "#bbbbbb"
NARROW = 4.7  # inches, which a telephone shows nearly whole
TITLE = {"loc": "left", "fontsize": 9.5, "fontweight": "bold"}
NOTE = {"textcoords": "offset points", "va": "center", "fontsize": 9, "color": "#555555"}


def longer_and_bleu(planned: pd.DataFrame) -> Figure:
    """Draw a row for each task: the loss after longer training over the loss as planned, and BLEU."""
    tasks = list(planned["task"].unique())
    looks = {
        kind: {"ls": "", "marker": ARCHITECTURE_MARKERS[kind], "color": colour, "ms": 6.5}
        for kind, colour in zip(planned["architecture"].unique(), COLOURS, strict=False)
    }
    shifts = {kind: 0.14 * (1 - 2 * place) for place, kind in enumerate(looks)}
    with grid(2, 1, size=(NARROW, 0.8 * len(tasks) + 2.0)) as (figure, ((right,), (left,))):
        for (task, kind), networks in planned.groupby(["task", "architecture"], sort=False):
            height = -tasks.index(task) + shifts[kind]
            for axes, values in (
                (left, loss_ratios(networks)),
                (right, networks.loc[networks["length"] == 1, "bleu"]),
            ):
                axes.plot(values, [height] * len(values), alpha=0.8, **looks[kind])
        for axes in (left, right):
            axes.set_yticks([-place for place in range(len(tasks))], [task_name(task) for task in tasks])
            axes.set_ylim(0.5 - len(tasks), 0.85)
            axes.tick_params(axis="y", length=0)
        finish_losses(left)
        finish_bleu(right, planned["bleu"].max())
        for kind, look in looks.items():
            right.plot([], [], label=network_name(kind), **look)
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def loss_ratios(networks: pd.DataFrame) -> pd.Series:
    """Held-out losses of networks of a kind after longer training, each over its own as planned."""
    by_network = networks.set_index(["length", "seed"])["loss"]
    longer = by_network.drop(1.0, level="length")
    return longer / by_network[1.0].reindex(longer.index, level="seed")


def finish_losses(axes: Axes) -> None:
    """Draw the line left of which longer training has helped, and name the axis."""
    axes.axvline(HELPS, color=GREY, lw=1)
    axes.annotate("helped", (HELPS, 0.6), (-6, 0), ha="right", **NOTE)
    axes.annotate("did not help", (HELPS, 0.6), (6, 0), ha="left", **NOTE)
    axes.set_title("Training for twice as long", **TITLE)
    axes.set_xlabel("held-out loss, over the loss as planned")
    lowest, highest = axes.get_xlim()
    axes.set_xlim(min(0.87, lowest), max(1.14, highest))


def finish_bleu(axes: Axes, largest: float) -> None:
    """Draw the line right of which a translator is of some use, and name the axis."""
    axes.axvline(OF_USE, color=GREY, lw=1)
    axes.annotate("usable", (OF_USE, 0.6), (6, 0), **NOTE)
    axes.set_xlim(0, max(50, largest + 2))
    axes.set_title("How well they translate", **TITLE)
    axes.set_xlabel("BLEU")
