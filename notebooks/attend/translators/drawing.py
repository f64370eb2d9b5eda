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
NOTE = {"textcoords": "offset points", "va": "center", "fontsize": 9, "color": "#555555"}


def longer_and_bleu(planned: pd.DataFrame) -> Figure:
    """Draw a row for each task: the loss after longer training over the loss as planned, and BLEU."""
    tasks = list(planned["task"].unique())
    looks = {
        kind: {"ls": "", "marker": ARCHITECTURE_MARKERS[kind], "color": colour, "ms": 6.5}
        for kind, colour in zip(planned["architecture"].unique(), COLOURS, strict=False)
    }
    shifts = {kind: 0.14 * (1 - 2 * place) for place, kind in enumerate(looks)}
    with grid(1, 2, size=(8.6, 0.5 * len(tasks) + 1.4), sharey=True) as (figure, ((left, right),)):
        for (task, kind), networks in planned.groupby(["task", "architecture"], sort=False):
            height = -tasks.index(task) + shifts[kind]
            for axes, values in (
                (left, loss_ratios(networks)),
                (right, networks.loc[networks["length"] == 1, "bleu"]),
            ):
                axes.plot(values, [height] * len(values), alpha=0.8, **looks[kind])
        left.set_yticks([-place for place in range(len(tasks))], map(task_name, tasks))
        finish_losses(left)
        finish_bleu(right, planned["bleu"].max(), len(tasks))
        for kind, look in looks.items():
            right.plot([], [], label=network_name(kind), **look)
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def loss_ratios(networks: pd.DataFrame) -> pd.Series:
    """Held-out losses of the first network after longer training, over that as planned."""
    by_length = networks[networks["seed"] == 0].set_index("length")["loss"]
    return by_length.drop(1.0) / by_length[1.0]


def finish_losses(axes: Axes) -> None:
    """Draw the line left of which longer training has helped, and name the axis."""
    axes.axvline(HELPS, color=GREY, lw=1)
    axes.annotate("longer training\nwould help", (HELPS, 0.55), (-6, 0), ha="right", **NOTE)
    axes.annotate("it would not", (HELPS, 0.55), (6, 0), ha="left", **NOTE)
    axes.set_xlabel("held-out loss after longer training,\nover the loss as planned")
    lowest, highest = axes.get_xlim()
    axes.set_xlim(min(0.87, lowest), max(1.14, highest))


def finish_bleu(axes: Axes, largest: float, tasks: int) -> None:
    """Draw the line right of which a translator is of some use, and name the axis."""
    axes.axvline(OF_USE, color=GREY, lw=1)
    axes.annotate("of some use", (OF_USE, 0.55), (6, 0), **NOTE)
    axes.set_xlim(0, max(50, largest + 2))
    axes.set_ylim(0.5 - tasks, 0.85)
    axes.set_xlabel("BLEU of what a network writes")
