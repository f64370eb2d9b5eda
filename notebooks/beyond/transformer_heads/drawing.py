"""The terms of a Transformer's attentions: shares and rebuilt attention by layer, and heads by typicality."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.plots.style import INK, PART_COLOURS, style
from companion.results.result import Result
from notebooks.beyond.transformer_heads.experiment import ANCHORED, TASKS, cross_heads
from notebooks.shared.style import blank

ATTENTIONS = {
    "cross": "cross-attention",
    "encoder_self": "encoder self-attention",
    "decoder_self": "decoder self-attention",
}
TASK_LOOKS = {  # name, shape of a point
    "one_to_one": ("one-to-one", "o"),
    "reordering": ("reordering", "s"),
    "scan": ("SCAN", "^"),
    "lexicon_translation": ("lexicon translation", "D"),
    ANCHORED: ("in order", "P"),
}
ADDED = ("sinusoidal", "learned")  # kinds of positions that are in the states from the start
GREEN, PURPLE = "#009e73", "#882255"


OF_BIAS = ("position_bias_share", "position_rebuilds")  # numbers that differ where scores have a bias


@dataclass(frozen=True)
class Look:
    """How one number of a head is drawn, and how far from the middle of its line, in lines."""

    label: str
    colour: str
    marker: str
    shift: float


SHARES = {
    "temporal_share": Look("temporal · temporal", PART_COLOURS["temporal"], "o", 0.0),
    "input_share": Look("input · input", PART_COLOURS["input"], "o", 0.16),
    "mixed_share": Look("temporal · input, both ways", PURPLE, "D", -0.16),
    "residual_share": Look("with a residual", PART_COLOURS["residual"], "o", 0.32),
    "position_bias_share": Look("position bias", GREEN, "s", -0.32),
}
REBUILDS = {
    "temporal_rebuilds": Look("temporal · temporal alone", PART_COLOURS["temporal"], "o", 0.0),
    "input_rebuilds": Look("input · input alone", PART_COLOURS["input"], "o", 0.16),
    "position_rebuilds": Look("temporal · temporal and position bias", GREEN, "s", -0.16),
    "no_residual_rebuilds": Look("all terms without a residual", INK, "D", -0.32),
    "uniform": Look("none: even attention", PART_COLOURS["residual"], "|", 0.32),
}


def task_names(result: Result) -> list[str]:
    """Tasks that a prediction is judged on, in order."""
    return [task for task in TASKS if task in result.values["layers"]]


def positions_of(result: Result) -> list[str]:
    """Kinds of positions, in the order in which they were asked for."""
    return list(dict.fromkeys((*result.config["positions"], *result.config["anchored"])))


def shares_by_layer(result: Result) -> Figure:
    """Covariance shares, a row of panels a kind of attention and a column a task."""
    return _by_layer(result, SHARES, "covariance share of the scores", (-0.2, 1.12))


def rebuilt_by_layer(result: Result) -> Figure:
    """Substitution test, arranged as :func:`shares_by_layer`."""
    return _by_layer(result, REBUILDS, "similarity to the full attention", (0, 1.03))


def _by_layer(result: Result, looks: dict[str, Look], xlabel: str, limits: tuple[float, float]) -> Figure:
    tasks = task_names(result)
    if not tasks:
        return blank()
    lines = _lines(result, tasks)
    shown = {name: look for name, look in looks.items() if _has(result, name)}
    with style():
        figure = Figure(figsize=(max(8.6, 2.6 * len(tasks) + 1.2), 3 * (0.36 * len(lines) + 0.45) + 1.1))
        grid = figure.subplots(len(ATTENTIONS), len(tasks), squeeze=False, sharex=True, sharey=True)
        for row, (kind, title) in zip(grid, ATTENTIONS.items(), strict=True):
            for axes, task in zip(row, tasks, strict=True):
                axes.axvline(0, color="#bbbbbb", lw=0.8, zorder=0)
                for place, (positions, layer) in enumerate(reversed(lines)):
                    if place % 2 == 0:
                        axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", lw=0, zorder=0)
                    found = result.values["layers"][task].get(positions, {}).get(kind, {}).get(layer)
                    if found:
                        biased = positions == "relative" and kind != "cross"
                        own = {name: look for name, look in shown.items() if biased or name not in OF_BIAS}
                        _draw(axes, found["trained"], own, place)
                axes.set_title(f"{TASK_LOOKS[task][0]}: {title}", loc="left")
        for axes in grid[-1]:
            axes.set_xlabel(xlabel)
        grid[0][0].set_xlim(*limits)
        grid[0][0].set_ylim(-0.5, len(lines) - 0.5)
        labels = [f"{positions}, {layer.replace('_', ' ')}" for positions, layer in reversed(lines)]
        grid[0][0].set_yticks(range(len(lines)), labels)
        handles = [_handle(look) for look in shown.values()]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _lines(result: Result, tasks: list[str]) -> list[tuple[str, str]]:
    """Kinds of positions with their layers, from above."""
    found = [result.values["layers"][task] for task in tasks]
    return [
        (positions, layer)
        for positions in positions_of(result)
        for layer in dict.fromkeys(
            name for own in found if positions in own for name in own[positions]["cross"]
        )
    ]


def _has(result: Result, name: str) -> bool:
    """Whether a bias is anywhere: without one, its number and what it would add are left out."""
    return name not in OF_BIAS or any(row["positions"] == "relative" for row in result.tables["heads"])


def _draw(axes: Axes, found: dict, looks: dict[str, Look], place: float) -> None:
    for name, look in looks.items():
        interval, height = found[name], place + look.shift
        if interval["value"] is None:
            continue
        if interval["low"] is not None:
            axes.plot([interval["low"], interval["high"]], [height] * 2, color=look.colour, lw=1.2)
        axes.plot(
            interval["value"], height, look.marker, color=look.colour, ms=4.5 if look.marker != "|" else 9
        )


def _handle(look: Look) -> Line2D:
    return Line2D([], [], ls="", marker=look.marker, color=look.colour, ms=5.5, label=look.label)


PANELS = {  # number: part whose colour it has, label, key of its correlation
    "temporal_share": ("temporal", "temporal share of a head", "temporal"),
    "input_share": ("input", "input share of a head", "input"),
    "temporal_rebuilds": ("temporal", "similarity of temporal alone", "temporal_rebuilds"),
}


def heads_against_typicality(result: Result) -> Figure:
    """A point a head of the trained cross-attention; filled where positions are added to the states."""
    rows = [r for r in cross_heads(result.tables["heads"]) if r["varies"] and r["task"] != ANCHORED]
    rows = [row for row in rows if row["typicality"] is not None]
    if not rows:
        return blank()
    with style():
        figure = Figure(figsize=(9.2, 3.9))
        for axes, (number, (part, label, key)) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
            _scatter(axes, rows, number, PART_COLOURS[part])
            axes.set_ylabel(label)
            axes.set_xlabel("typicality of the head")
            axes.set_title(_correlation(result.values["correlation"][key]), loc="left", fontsize=9)
        handles = [
            Line2D(
                [], [], ls="", marker=TASK_LOOKS[task][1], color=INK, mfc="#bbbbbb", label=TASK_LOOKS[task][0]
            )
            for task in task_names(result)
        ]
        for face, label in ((INK, "positions added: filled"), ("white", "relative, rotary: open")):
            handles.append(Line2D([], [], ls="", marker="h", color=INK, mfc=face, label=label))
        grey = PART_COLOURS["residual"]
        handles.append(Line2D([], [], ls="", marker="_", ms=9, color=grey, label="even attention"))
        figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def _scatter(axes: Axes, rows: list[dict], number: str, colour: str) -> None:
    for row in rows:
        if number.endswith("_rebuilds"):
            axes.plot(row["typicality"], row["uniform"], "_", ms=7, color=PART_COLOURS["residual"], zorder=1)
        face = colour if row["positions"] in ADDED else "white"
        marker = TASK_LOOKS[row["task"]][1]
        axes.plot(
            row["typicality"],
            row[number],
            marker,
            color=colour,
            mfc=face,
            ms=5.5,
            mew=1.2,
            alpha=0.85,
            zorder=2,
        )
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    axes.set_xlim(min(0.3, *(row["typicality"] - 0.05 for row in rows)), 1.03)
    axes.set_ylim(
        min(-0.1, *(row[number] - 0.05 for row in rows)), max(1.05, *(row[number] + 0.05 for row in rows))
    )


def _correlation(interval: dict) -> str:
    if interval["value"] is None:
        return "ρ undefined"
    text = f"ρ = {interval['value']:.2f}"
    if interval["low"] is not None:
        text += f" [{interval['low']:.2f}, {interval['high']:.2f}]"
    return f"{text}, {interval['heads']} heads".replace("-", "−")


def repeated_words(result: Result) -> Figure:
    """Attention on the aligned word, by whether the word just read stands once or again in the source."""
    found = result.values["repeated"]
    if not found:
        return blank()
    kinds = [positions for positions in positions_of(result) if positions in found]
    looks = {
        "once": Look("the word just read stands once in the source", INK, "o", 0.12),
        "again": Look("it stands there again", PURPLE, "D", -0.12),
    }
    with style():
        figure = Figure(figsize=(8.6, 0.5 * len(found) + 1.5))
        grid = figure.subplots(1, 2, sharey=True)
        for axes, number, label in zip(
            grid,
            ("attention", "accuracy"),
            ("attention on the aligned word", "words predicted right"),
            strict=True,
        ):
            for place, positions in enumerate(reversed(kinds)):
                if place % 2 == 0:
                    axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", lw=0, zorder=0)
                _draw(axes, {read: found[positions][read][number] for read in looks}, looks, place)
            axes.set_xlabel(label)
            axes.set_xlim(0, 1.03)
        grid[0].set_yticks(range(len(kinds)), list(reversed(kinds)))
        grid[0].set_ylim(-0.5, len(found) - 0.4)
        handles = [_handle(look) for look in looks.values()]
        figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure
