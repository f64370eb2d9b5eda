"""Shares of a Transformer's scores: points over typicality, lines over layers, dots for all attentions."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import Estimate, Mark, dots, grid, legend_of, line_of_dots, name_ends, stripes
from notebooks.shared.style import GREEN, INDIGO, OCHRE, PART_COLOURS, PINK, WINE, blank

JUDGED = {  # tasks that predictions are about: name, shape of a point
    "one_to_one": ("one-to-one", "o"),
    "reordering": ("reordering", "s"),
    "scan": ("SCAN", "^"),
    "lexicon_translation": ("lexicon translation", "D"),
}
TASKS = JUDGED | {"in_order": ("in order", "P")}
CLOUDS = {  # task → colour, where its name is: typicality and share, which of its ends is there
    "one_to_one": (INDIGO, (0.81, 0.97), "right"),
    "reordering": (OCHRE, (0.57, 0.34), "right"),
    "scan": (GREEN, (0.36, 0.19), "left"),
    "lexicon_translation": (PINK, (0.61, 0.75), "right"),
}
ATTENTIONS = {
    "cross": "cross-attention",
    "encoder_self": "encoder self-attention",
    "decoder_self": "decoder self-attention",
}
SHARES = {
    "temporal_share": Mark("temporal · temporal", PART_COLOURS["temporal"], ms=4.5),
    "input_share": Mark("input · input", PART_COLOURS["input"], shift=0.16, ms=4.5),
    "mixed_share": Mark("temporal · input, both ways", WINE, "D", shift=-0.16, ms=4.5),
    "residual_share": Mark("with a residual", PART_COLOURS["residual"], shift=0.32, ms=4.5),
    "position_bias_share": Mark("position bias", GREEN, "s", shift=-0.32, ms=4.5),
}
OF_BIAS = ("position_bias_share", "position_rebuilds")  # numbers that differ where scores have a bias
PARTS = {  # share → what it is called at the end of its line, colour of the name
    "temporal_share": ("positions, μ·μ", PART_COLOURS["temporal"]),
    "input_share": ("words, χ·χ", PART_COLOURS["input"]),
    "mixed_share": ("position and word", WINE),
    "residual_share": ("context, terms with Δ", "#666666"),
}
LED_BY = {
    "one_to_one": "one-to-one: positions carry the scores",
    "scan": "SCAN: context carries most of them",
}


def positions_of(result: Result) -> list[str]:
    """Kinds of positions, in the order in which they were asked for."""
    return list(dict.fromkeys((*result.config["positions"], *result.config["anchored"])))


def learned_heads(result: Result) -> pd.DataFrame:
    """Return the heads of cross-attention whose scores vary, of networks that have learned their task."""
    heads = pd.DataFrame(result.tables["heads"])
    chosen = "kind == 'cross' and state == 'trained' and varies == 1 and learned == 1 and task in @JUDGED"
    return heads.query(chosen, local_dict={"JUDGED": list(JUDGED)}).dropna(subset="typicality")


def layers_against_typicality(result: Result) -> Figure:
    """Draw a point for each layer of cross-attention, the mean of its heads: share over typicality."""
    heads = learned_heads(result)
    if heads.empty:
        return blank()
    layers = heads.groupby(["task", "positions", "layer"])[["typicality", "temporal_share"]].mean()
    with grid(1, 1, size=(3.75, 3.7)) as (figure, ((axes,),)):
        for task, (colour, place, end) in CLOUDS.items():
            if task in layers.index.get_level_values("task"):
                means = layers.loc[task]
                relative = means.index.get_level_values("positions") == "relative"
                look = {"color": colour, "ms": 6, "alpha": 0.85, "mew": 0}
                for chosen, shape in ((~relative, "o"), (relative, "^")):
                    points = means[chosen]
                    axes.plot(points["typicality"], points["temporal_share"], shape, **look)
                axes.text(*place, JUDGED[task][0], color=colour, ha=end, va="center", fontsize=11)
        axes.set_xlim(0.3, 1)
        axes.set_ylim(-0.02, 1.1)
        axes.set_xlabel("typicality: how alike in all sentences")
        axes.set_ylabel("position share of the scores")
        axes.set_title(
            "The more alike a layer attends in all\nsentences, the larger its position share", loc="left"
        )
    return figure


def shares_over_layers(result: Result) -> Figure:
    """Draw cross-attention with sinusoidal positions, or else the first kind: a line for each part."""
    kinds = positions_of(result)
    kind = "sinusoidal" if "sinusoidal" in kinds else kinds[0]
    tasks = first_task_and_scan(result, kind)
    if not tasks:
        return blank()
    with grid(len(tasks), 1, size=(3.75, 2.5 * len(tasks) + 0.5), sharex=True) as (figure, panels):
        for (axes,), task in zip(panels, tasks, strict=True):
            layers = result.values["layers"][task][kind]["cross"].values()
            draw_parts(axes, [layer["trained"] for layer in layers])
            axes.set_title(LED_BY.get(task, TASKS[task][0]), loc="left")
            axes.set_ylim(-0.1, 1.05)
            axes.set_ylabel("share of the scores")
        panels[-1, 0].set_xlabel("layer of the decoder")
    return figure


def first_task_and_scan(result: Result, kind: str) -> list[str]:
    """Two tasks that were measured with a kind of positions: the first, and SCAN or else the second."""
    layers = result.values["layers"]
    measured = [task for task in JUDGED if layers.get(task, {}).get(kind)]
    if "scan" in measured[1:]:
        return [measured[0], "scan"]
    return measured[:2]


def draw_parts(axes: Axes, layers: list[Mapping[str, Estimate]]) -> None:
    """Draw the share of each part over the layers of the decoder."""
    numbers = range(1, len(layers) + 1)
    ends = {}
    for share, (name, ink) in PARTS.items():
        estimates = [layer[share] for layer in layers]
        line_of_dots(axes, numbers, estimates, SHARES[share].colour, ms=5, lw=1.8)
        values = [estimate["value"] for estimate in estimates if estimate["value"] is not None]
        if values:
            ends[name] = (values[-1], ink)
    name_ends(axes, ends, len(layers), closest=0.11, away=8)
    axes.plot((0.8, len(layers)), (0, 0), color="#bbbbbb", lw=0.8, zorder=0)  # not behind the names
    axes.set_xlim(0.8, len(layers) + 1.7)
    axes.set_xticks(numbers)


def shares_by_layer(result: Result, *attentions: str) -> Figure:
    """Draw the shares of the scores of these attentions, :func:`by_layer`."""
    return by_layer(result, SHARES, attentions, xlabel="share of the scores", xlim=(-0.2, 1.12))


def by_layer(
    result: Result,
    marks: Mapping[str, Mark],
    attentions: tuple[str, ...] = tuple(ATTENTIONS),
    *,
    xlabel: str,
    xlim: tuple[float, float],
) -> Figure:
    """Draw a row of panels for each kind of attention, and a column for each task.

    Lines within a panel are kinds of positions and layers.
    """
    layers = {task: result.values["layers"][task] for task in JUDGED if task in result.values["layers"]}
    if not layers:
        return blank()
    rows = rows_of(result)
    if attentions == ("cross",) or not has_relative_positions(result):
        marks = without_bias(marks)
    width = max(8.6, 2.2 * len(layers) + 1.6)
    height = len(attentions) * (0.36 * len(rows) + 0.65) + 1.1
    with grid(len(attentions), len(layers), size=(width, height), sharex=True, sharey=True) as (
        figure,
        panels,
    ):
        for line, attention in zip(panels, attentions, strict=True):
            for axes, (task, kinds) in zip(line, layers.items(), strict=True):
                axes.axvline(0, color="#bbbbbb", lw=0.8, zorder=0)
                stripes(axes, len(rows))
                for place, (kind, layer) in enumerate(rows):
                    states = kinds.get(kind, {}).get(attention, {}).get(layer)
                    biased = kind == "relative" and attention != "cross"
                    if states:
                        dots(axes, states["trained"], marks if biased else without_bias(marks), place, lw=1.2)
                name, _ = TASKS[task]
                axes.set_title(f"{name}\n{ATTENTIONS[attention]}", loc="left", fontsize=10)
        for axes in panels[-1]:
            axes.set_xlabel(xlabel)
        panels[0, 0].set_xlim(*xlim)
        panels[0, 0].set_ylim(-0.5, len(rows) - 0.5)
        panels[0, 0].set_yticks(
            range(len(rows)), [f"{kind}, {layer.replace('_', ' ')}" for kind, layer in rows]
        )
        legend_of(figure, marks.values(), ncols=3, ms=5.5)
    return figure


def rows_of(result: Result) -> list[tuple[str, str]]:
    """Kinds of positions and layers that any task has, the lowest row first."""
    rows = {}
    for kind in positions_of(result):
        for task in JUDGED:
            kinds = result.values["layers"].get(task, {})
            if kind in kinds:
                rows |= {(kind, layer): None for layer in kinds[kind]["cross"]}
    return list(rows)[::-1]


def has_relative_positions(result: Result) -> bool:
    return any(head["positions"] == "relative" for head in result.tables["heads"])


def without_bias(marks: Mapping[str, Mark]) -> dict[str, Mark]:
    """All marks but those of numbers that differ only where scores have a bias."""
    return {name: mark for name, mark in marks.items() if name not in OF_BIAS}
