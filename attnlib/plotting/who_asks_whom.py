"""Who asks whom in a Transformer, by kind of word, and whether it is mutual, head by head."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.experiments.result import Result
from attnlib.plotting.blank import blank
from attnlib.plotting.style import INK, style
from attnlib.plotting.what_a_task_teaches import GREY, TASKS, draw_interval

ATTENTIONS = {"encoder_self": "encoder self-attention", "cross": "cross-attention"}
LINES = {  # kind of network and attention: label, colour
    ("transformer", "encoder_self"): ("self", "#0f6e55"),
    ("tied", "encoder_self"): ("self, tied maps", "#4f8a10"),
    ("transformer", "cross"): ("cross", "#5b2a6e"),
    ("transformer", "cross_on_source"): ("cross, source twice", "#a8479a"),
}
LEVELS = {"scores": "scores", "weights": "attention"}
_DEEPEST = 3  # doublings or halvings at the ends of the colours


def classes(result: Result) -> Figure:
    """Attention from each kind of word to each, over what even attention would give; a row an attention."""
    rows = [r for r in result.tables["classes"] if (r["kind"], r["state"]) == ("transformer", "trained")]
    tasks = [task for task in TASKS if any(row["task"] == task for row in rows)]
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 6.6) if len(tasks) == 2 else (5.0, 6.6))
        grid = figure.subplots(2, len(tasks), squeeze=False, sharex=True, sharey=True)
        for line, (attention, title) in zip(grid, ATTENTIONS.items(), strict=True):
            for axes, task in zip(line, tasks, strict=True):
                own = [row for row in rows if (row["task"], row["attention"]) == (task, attention)]
                _draw_classes(axes, own)
                axes.set_title(f"{task}: {title}", color=TASKS[task])
            line[0].set_ylabel("asking" if attention == "encoder_self" else "asking: the step that writes")
        for axes in grid[-1]:
            axes.set_xlabel("answering")
    return figure


def _draw_classes(axes: Axes, rows: list[dict]) -> None:
    names = list(dict.fromkeys(row["asking"] for row in rows))
    matrix = np.full((len(names), len(names)), np.nan)
    for row in rows:
        i, j = names.index(row["asking"]), names.index(row["answering"])
        if row["value"] is None:
            continue
        matrix[i, j] = math.log2(max(row["value"], 2**-_DEEPEST))
        dark = abs(matrix[i, j]) > 0.62 * _DEEPEST
        axes.text(
            j, i, f"{row['value']:.1f}", ha="center", va="center", fontsize=9, color="white" if dark else INK
        )
    axes.imshow(matrix, cmap="PuOr_r", vmin=-_DEEPEST, vmax=_DEEPEST, aspect="auto")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def reciprocity(result: Result) -> Figure:
    """Reciprocity of every head, before and after the softmax, by attention and layer; a block a task."""
    blocks = {task: found for task in TASKS if (found := _lines(result, task))}
    if not blocks:
        return blank()
    height = sum(len(lines) + 1 for lines in blocks.values())
    with style():
        figure = Figure(figsize=(8.6, 0.29 * height + 1.4))
        grid = figure.subplots(1, 2, sharey=True, sharex=True)
        for axes, title in zip(grid, LEVELS.values(), strict=True):
            for at, label in ((0, "nothing known"), (1, "symmetric")):
                axes.axvline(at, color="#bbbbbb", lw=1, zorder=0)
                axes.annotate(
                    label, (at, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                    textcoords="offset points", ha="center", fontsize=8.5, color="#555555",
                )  # fmt: skip
            axes.set_title(title, pad=16)
            axes.set_xlabel("reciprocity of i → j and j → i")
            axes.set_xlim(-0.5, 1.25)
            axes.set_xticks((-0.5, 0, 0.5, 1))
            axes.set_ylim(0.3, height + 0.5)
        place, ticks = height, {}
        for task, lines in blocks.items():
            ticks[place] = (task, TASKS[task])
            for line in lines:
                place -= 1
                ticks[place] = (line["label"], line["colour"])
                for axes, level in zip(grid, LEVELS, strict=True):
                    axes.axhline(place, color="#eeeeee", lw=0.8, zorder=0)
                    _draw_line(axes, result, line, level, place)
            place -= 1
        grid[0].set_yticks(list(ticks), [label for label, _ in ticks.values()])
        for text, (label, colour) in zip(grid[0].get_yticklabels(), ticks.values(), strict=True):
            text.set_color(colour)
            text.set_fontweight("bold" if label in TASKS else "normal")
        for axes in grid:
            axes.tick_params(axis="y", length=0)
        figure.legend(handles=_handles(), loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _handles() -> list[Line2D]:
    marks = {
        "trained, mean of heads": {"marker": "o", "ms": 5.5, "color": INK},
        "a head of a network": {"marker": ".", "ms": 4, "color": INK, "alpha": 0.6},
        "before training": {"marker": "o", "ms": 5.5, "color": GREY, "mfc": "white"},
        "scores made symmetric": {"marker": "D", "ms": 5, "color": INK, "mfc": "white"},
    }
    return [Line2D([], [], ls="", label=label, **look) for label, look in marks.items()]


def _lines(result: Result, task: str) -> list[dict]:
    """What stands in each line of a task, from above: kind of network, attention and layer."""
    there = {(row["task"], row["kind"], row["attention"], row["layer"]) for row in result.tables["layers"]}
    return [
        {"task": task, "kind": kind, "attention": attention, "layer": layer}
        | {"label": f"{label}, layer {layer}", "colour": colour}
        for (kind, attention), (label, colour) in LINES.items()
        for layer in range(1, result.config["layers"] + 1)
        if (task, kind, attention, layer) in there
    ]


def _draw_line(axes: Axes, result: Result, line: dict, level: str, place: float) -> None:
    """Heads of trained networks as dots; means over the heads of a network with intervals over seeds."""
    named, colour = ("task", "kind", "attention", "layer"), line["colour"]
    heads, layers = (
        [row for row in result.tables[table] if all(row[name] == line[name] for name in named)]
        for table in ("reciprocity", "layers")
    )
    own = [row[level] for row in heads if row["state"] == "trained"]
    axes.plot(own, [place] * len(own), ".", color=colour, alpha=0.45, ms=4)
    found = {(row["state"], row["level"]): row for row in layers}
    draw_interval(axes, found["untrained", level], place + 0.2, GREY, open_=True)
    draw_interval(axes, found["trained", level], place, colour)
    if level == "weights" and line["kind"] != "tied":  # whose scores are symmetric as they are
        draw_interval(axes, found["trained", "halved"], place - 0.2, colour, open_=True, marker="D")
