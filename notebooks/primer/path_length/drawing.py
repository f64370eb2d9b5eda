"""The gradient of a target word by its distance from a source word, before training and after it."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from companion.results.result import Result
from notebooks.shared.marks import grid
from notebooks.shared.style import ARROW, GREEN, WINE, blank, lines

KINDS = {  # kind of network → label, colour, line style
    "one_vector": ("one vector", WINE, "-"),
    "one_vector_reversed": ("one vector, read backwards", WINE, "--"),
    "attention": ("attention", GREEN, "-"),
    "attention_reversed": ("attention, read backwards", GREEN, "--"),
}
STAGES = {"untrained": "before training", "trained": "after training"}
TITLES = {
    "untrained": "Before training: one vector loses the gradient",
    "trained": "After training: one vector keeps the gradient",
}
NARROW = 4.7  # inches, which a telephone shows whole
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NAMED_AT = {  # of the distances: where a line is named, how far above it in points, and from which side
    "untrained": {  # where directions coincide
        "one_vector": ("one vector, either way", 0.5, 16, "left"),
        "attention": ("attention, either way", 0.98, 9, "right"),
    },
    "trained": {
        "one_vector": ("one vector", 0.98, 11, "right"),
        "one_vector_reversed": ("one vector, backwards", 0.0, 12, "left"),
        "attention": ("attention", 0.3, -10, "center"),
        "attention_reversed": ("attention, backwards", 0.74, -44, "center"),
    },
}
FURTHEST = 20  # points from a line to its name, beyond which an arrow joins them


def decay_with_distance(decay: pd.DataFrame, result: Result) -> Figure:
    """Draw a line for each kind of network, before training above and after it below.

    Args:
        decay: the mean of the logarithm of the gradient's norm, by kind, cell, stage and distance.
        result: of the experiment.
    """
    kinds = {kind: props for kind, props in KINDS.items() if kind in result.values}
    if not kinds:
        return blank()
    of_cell = decay[decay["cell"] == result.config["cell"][0]]
    with grid(2, 1, size=(NARROW, 6.0), sharex=True, sharey=True) as (figure, panels):
        for axes, stage in zip(panels.flat, STAGES, strict=True):
            rows = of_cell[of_cell["stage"] == stage]
            lines(axes, rows, "distance", "kind", kinds, lw=1.8)
            axes.set_title(TITLES[stage], loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylabel("size of the gradient")
            name_lines(axes, rows, NAMED_AT[stage], rate_of(result) if stage == "untrained" else "")
            if stage == "trained":
                name_peak(axes, rows, result.config["length"] + 1)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(power_of_ten))
        axes.set_ylim(top=axes.get_ylim()[1] + 0.7)  # room for names
        axes.set_xlabel("recurrent steps between the two words")
        if any(kind.endswith("reversed") for kind in kinds):
            note = "dashed: source read backwards\n(here hidden under the solid lines)"
            panels[0, 0].text(0.03, 0.06, note, transform=panels[0, 0].transAxes, fontsize=9)
    return figure


def power_of_ten(power: float, _place: int | None = None) -> str:
    """Write the tick of a power of ten.

    >>> power_of_ten(-4.0)
    '10⁻⁴'
    """
    return "10" + f"{power:.0f}".translate(RAISED)


def rate_of(result: Result) -> str:
    """How fast one vector loses the gradient as training begins, in words; nothing where it does not."""
    untrained = result.values.get("one_vector", {}).get("main", {}).get("untrained", {})
    slope = untrained.get("decay", {}).get("value")
    return f":\na tenth is left after every {-1 / slope:.0f} steps" if slope and slope < 0 else ""


def name_lines(
    axes: Axes, rows: pd.DataFrame, names: Mapping[str, tuple[str, float, float, str]], rate: str
) -> None:
    """Write the names of networks beside their lines, with the rate at which one vector loses gradients."""
    for kind, (name, along, above, side) in names.items():
        of_kind = rows[rows["kind"] == kind].sort_values("distance")
        if of_kind.empty:
            continue
        _, colour, _ = KINDS[kind]
        point = of_kind.iloc[round(along * (len(of_kind) - 1))]
        axes.annotate(
            name + (rate if kind == "one_vector" else ""), (point["distance"], point["value"]), (0, above),
            textcoords="offset points", ha=side, va="center", fontsize=9, color=colour, fontweight="bold",
            arrowprops=ARROW | {"color": colour} if abs(above) > FURTHEST else None,
        )  # fmt: skip


def name_peak(axes: Axes, rows: pd.DataFrame, distance: int) -> None:
    """Point at the distance of words that translate each other, where attention, read forwards, peaks."""
    peak = rows.loc[(rows["kind"] == "attention") & (rows["distance"] == distance), "value"]
    if len(peak):
        text = "words that translate each other"
        axes.annotate(
            text, (distance, peak.iloc[0]), (0.5, 0.4), textcoords="axes fraction", ha="center", fontsize=9,
            arrowprops=ARROW,
        )  # fmt: skip
