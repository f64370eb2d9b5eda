"""The first updates of networks that learn to copy: where attention goes, what is known of words."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.learn.permutation_copying.experiment import FACTOR, HALF
from notebooks.shared.copying_drawing import kind_name

KINDS = ("sample", "permutation")  # on mixtures all comes much later
EARLY = 100  # updates shown
COLOURS = {"drawn": "#0072b2", "away": "#d55e00", None: "#999999"}
LABELS = {"drawn": "attention drawn to the word", "away": "attention driven away", None: "neither"}
UNIFORM = {"color": INK, "ls": (0, (4, 1.5)), "label": "held at uniform attention", "zorder": 3}
ROWS = {
    "attention_right": "weight on the word\nto be said × length",
    "probe_agreement": "largest β there\n(share of words)",
    "attention_accuracy": "largest weight there\n(share of words)",
}


def first_updates(result: Result) -> Figure:
    """Weight on the word to be said over uniform attention's; how often β and weight are largest there."""
    kinds = [kind for kind in KINDS if kind in result.values]
    with style():
        figure = Figure(figsize=(3.9 * len(kinds) + 0.5, 6.2))
        grid = figure.subplots(3, len(kinds), sharex=True, sharey="row", squeeze=False)
        for column, kind in enumerate(kinds):
            panels = dict(zip(ROWS, grid[:, column], strict=True))
            panels["attention_right"].axhspan(1 / FACTOR, FACTOR, color="#eeeeee", lw=0, zorder=0)
            panels["attention_right"].set_yscale("log")
            for name in ("probe_agreement", "attention_accuracy"):
                panels[name].axhline(HALF, color=INK, lw=0.8, ls=":", zorder=0)
                panels[name].set_ylim(-0.03, 1.03)
            for row in result.tables["outcomes"]:
                if row["kind"] == kind:
                    _network(panels, result, row)
            grid[0, column].set_title(kind_name(kind, result.config["length"]), fontsize=9.5)
            grid[-1, column].set_xlabel("updates")
        for axes, label in zip(grid[:, 0], ROWS.values(), strict=True):
            axes.set_ylabel(label)
        labelled: dict[str, object] = {}
        for axes in grid.flat:
            handles, labels = axes.get_legend_handles_labels()
            labelled |= dict(zip(labels, handles, strict=True))
        figure.legend(
            labelled.values(), labelled.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=9
        )
    return figure


def _network(panels: dict[str, Axes], result: Result, outcome: dict) -> None:
    """A curve a panel of a network that learns to attend; β alone of one held at uniform attention."""
    name = {column: outcome[column] for column in ("kind", "network", "seed")}
    rows = [
        row
        for row in result.tables["courses"]
        if row["steps"] <= EARLY and all(row[column] == value for column, value in name.items())
    ]
    if outcome["network"] == "proxy":
        return
    shown, look = ["probe_agreement"], UNIFORM
    if outcome["network"] == "learned":
        shown, look = list(ROWS), {"color": COLOURS[outcome["way"]], "label": LABELS[outcome["way"]]}
    for column in shown:
        times = result.config["length"] if column == "attention_right" else 1
        values = [times * row[column] for row in rows]
        panels[column].plot([row["steps"] for row in rows], values, lw=1.1, alpha=0.75, **look)
