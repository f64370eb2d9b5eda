"""The first updates of networks that learn to copy: where attention goes, what is known of words."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.experiments.knowledge_first import FACTOR
from attnlib.experiments.result import Result
from attnlib.plotting.copying import kind_name
from attnlib.plotting.style import INK, style

KINDS = ("sample", "permutation")  # on mixtures all comes much later
EARLY = 100  # updates shown
COLOURS = {"drawn": "#0072b2", "away": "#d55e00", None: "#999999"}
LABELS = {"drawn": "attention drawn to the word", "away": "attention driven away", None: "neither"}
UNIFORM = {"color": "#555555", "lw": 1.1, "ls": (0, (4, 1.5)), "label": "held at uniform attention"}


def first_updates(result: Result) -> Figure:
    """Weight on the word to be said over uniform attention's, and β there over β elsewhere, by update."""
    kinds = [kind for kind in KINDS if kind in result.values]
    with style():
        figure = Figure(figsize=(3.9 * len(kinds) + 0.5, 4.9))
        grid = figure.subplots(2, len(kinds), sharex=True, sharey="row", squeeze=False)
        for column, kind in enumerate(kinds):
            weights, probes = grid[:, column]
            weights.axhspan(1 / FACTOR, FACTOR, color="#eeeeee", lw=0, zorder=0)
            for axes in (weights, probes):
                axes.axhline(1, color=INK, lw=0.8, ls=":", zorder=0)
                axes.set_yscale("log")
            for row in result.tables["outcomes"]:
                if row["kind"] == kind:
                    _network(weights, probes, result, row)
            weights.set_title(kind_name(kind, result.config["length"]), fontsize=9.5)
            probes.set_xlabel("updates")
        grid[0, 0].set_ylabel("weight on the word\nto be said × length")
        grid[1, 0].set_ylabel("β at this word\nover β elsewhere")
        labelled = {}
        for axes in grid.flat:
            handles, labels = axes.get_legend_handles_labels()
            labelled |= dict(zip(labels, handles, strict=True))
        figure.legend(
            labelled.values(), labelled.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=9
        )
    return figure


def _network(weights: Axes, probes: Axes, result: Result, outcome: dict) -> None:
    """Both curves of a network that learns to attend; below, those held at uniform attention, too."""
    name = {column: outcome[column] for column in ("kind", "network", "seed")}
    rows = [
        row
        for row in result.tables["courses"]
        if row["steps"] <= EARLY and all(row[column] == value for column, value in name.items())
    ]
    steps = [row["steps"] for row in rows]
    ratios = [row["probe_right"] / row["probe_elsewhere"] for row in rows]
    if outcome["network"] == "uniform":
        probes.plot(steps, ratios, **UNIFORM, zorder=3)
    elif outcome["network"] == "learned":
        look = {"color": COLOURS[outcome["way"]], "lw": 1.1, "alpha": 0.75, "label": LABELS[outcome["way"]]}
        length = result.config["length"]
        weights.plot(steps, [row["attention_right"] * length for row in rows], **look)
        probes.plot(steps, ratios, **look)
