"""What two tasks on the same sentences make attention learn: an example, patterns, and their agreement."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.shared.style import blank

KINDS = {"recurrent": "recurrent", "transformer": "Transformer", "tied": "Transformer, tied maps"}
TASKS = {"translation": "#332288", "summary": "#b35900"}  # indigo and brown: apart for all eyes
GREY, RED = "#888888", "#cc3311"
PANELS = {  # title, axis, limits
    "on_gold": ("on its source word", "share of attention", (-0.03, 1.05)),
    "on_topics": ("on topics", "share of attention", (-0.03, 1.05)),
    "entropy": ("spread", "entropy (bits)", (-0.3, 3.9)),
    "order": ("from left to right", "Kendall’s τ", (-1.05, 1.05)),
    "reach": ("words reached", "most a word gets", (-0.03, 1.05)),
}


def rows_of(result: Result) -> list[tuple[str, str]]:
    """Kinds of network and tasks that a result has."""
    return [(kind, task) for kind in KINDS for task in TASKS if task in result.values.get(kind, {})]


def example_matrices(result: Result) -> Figure:
    """One sentence, a row a task, a column a network; gold links are framed."""
    rows = result.tables["example"]
    columns = [("untrained", "transformer", "Transformer, before training")]
    columns += [("trained", kind, f"{KINDS[kind]}, trained") for kind in ("recurrent", "transformer")]
    there = {(row["kind"], row["task"], row["state"]) for row in rows}
    columns = [(s, k, t) for s, k, t in columns if any((k, task, s) in there for task in TASKS)]
    tasks = [task for task in TASKS if any(task == found for _, found, _ in there)]
    if not columns:
        return blank()
    heights = [1 + max(row["target_position"] for row in rows if row["task"] == task) for task in tasks]
    with style():
        figure = Figure(figsize=(8.6, 0.24 * sum(heights) + 0.45 * len(heights) + 1.4))
        grid = figure.subplots(
            len(tasks), len(columns), squeeze=False, sharex=True, height_ratios=[n + 0.5 for n in heights]
        )
        for line, task in zip(grid, tasks, strict=True):
            for axes, (state, kind, _) in zip(line, columns, strict=True):
                own = [row for row in rows if (row["kind"], row["task"], row["state"]) == (kind, task, state)]
                _draw_matrix(axes, own, labels=axes is line[0])
            line[0].set_ylabel(f"{task}\n", color=TASKS[task], fontweight="bold")
        for axes, (_, _, title) in zip(grid[0], columns, strict=True):
            axes.set_title(title)
    return figure


def _draw_matrix(axes: Axes, rows: list[dict], *, labels: bool) -> None:
    if not rows:
        axes.set_visible(False)
        return
    source = {row["source_position"]: row["source"] for row in rows}
    target = {row["target_position"]: row["target"] for row in rows}
    matrix = [[0.0] * len(source) for _ in target]
    for row in rows:
        matrix[row["target_position"]][row["source_position"]] = row["attention"]
        if row["gold"]:
            corner = (row["source_position"] - 0.45, row["target_position"] - 0.45)
            axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, lw=1.1, edgecolor=RED))
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set_xticks(list(source), list(source.values()), rotation=90, fontsize=9)
    axes.set_yticks(list(target), list(target.values()) if labels else [], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)


def patterns(result: Result) -> Figure:
    """Each measure of the attention to the source: networks, means with intervals, and references."""
    rows = rows_of(result)
    if not rows:
        return blank()
    networks = result.tables["networks"]
    with style():
        figure = Figure(figsize=(8.6, 0.42 * len(rows) + 1.5))
        grid = figure.subplots(1, len(PANELS), sharey=True)
        for axes, (name, (title, label, limits)) in zip(grid, PANELS.items(), strict=True):
            for place, (kind, task) in enumerate(reversed(rows)):
                found, colour = result.values[kind][task], TASKS[task]
                axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
                gold = result.values["references"][task]["gold"][name]
                axes.plot([gold] * 2, [place - 0.3, place + 0.3], color=RED, lw=1.6, zorder=1)
                own = [r for r in networks if (r["kind"], r["task"], r["state"]) == (kind, task, "trained")]
                axes.plot([r[name] for r in own], [place - 0.2] * len(own), ".", color=colour, ms=3.5)
                draw_interval(axes, found["untrained"][name], place, GREY, open_=True)
                draw_interval(axes, found["trained"][name], place, colour)
            axes.set_title(title, fontsize=9.5)
            axes.set_xlabel(label, fontsize=9)
            axes.set_xlim(*limits)
            axes.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 5, 10]))
            axes.xaxis.set_major_formatter("{x:g}")
        grid[0].set_yticks(range(len(rows)), [f"{KINDS[k]}: {t}" for k, t in reversed(rows)])
        for text, (_, task) in zip(grid[0].get_yticklabels(), reversed(rows), strict=True):
            text.set_color(TASKS[task])
        grid[0].set_ylim(-0.6, len(rows) - 0.4)
        figure.legend(
            handles=[
                Line2D([], [], marker="o", ls="", ms=5.5, color=INK, label="trained"),
                Line2D([], [], marker=".", ls="", ms=3.5, color=INK, label="a network"),
                Line2D([], [], marker="o", ls="", ms=5.5, color=GREY, mfc="white", label="before training"),
                Line2D([], [], color=RED, lw=1.6, label="all attention on gold links"),
            ],
            loc="outside upper center",
            ncols=4,
            frameon=False,
            fontsize=9,
        )
    return figure


def draw_interval(
    axes: Axes, found: dict, place: float, colour: str, *, open_: bool = False, marker: str = "o"
) -> None:
    """A mean with its interval at a height, nothing where there is no number."""
    if found["value"] is None:
        return
    if found["low"] is not None:
        axes.plot([found["low"], found["high"]], [place] * 2, color=colour, lw=1.4, solid_capstyle="butt")
    face = "white" if open_ else colour
    axes.plot(found["value"], place, marker, color=colour, mfc=face, mew=1.4, ms=5.5)


def agreement(result: Result) -> Figure:
    """How much attention two networks put on the same words, over whole sentences and for the same word."""
    found = result.values["agreement"]
    kinds = [kind for kind in KINDS if found.get(kind, {}).get("sentence", {}).get("between", {}).get("n")]
    if not kinds:
        return blank()
    lines = {  # in the values: label, colour, height in the row, which pairs
        "translation": ("two translators", TASKS["translation"], 0.27, ("translation", "translation")),
        "summary": ("two summarisers", TASKS["summary"], 0.09, ("summary", "summary")),
        "between": ("a translator and a summariser", RED, -0.09, ("translation", "summary")),
        "untrained": ("the two before training", GREY, -0.27, ("translation", "summary")),
    }
    pairs: dict[tuple, list[float]] = {}
    for row in result.tables["agreement"]:
        own = (row["kind"], row["view"], row["first"], row["second"], row["state"])
        pairs.setdefault(own, []).append(row["value"])
    views = {"sentence": "over the whole sentence", "same_word": "where they write the same word"}
    with style():
        figure = Figure(figsize=(8.6, 1.05 * len(kinds) + 1.3))
        for axes, (view, title) in zip(figure.subplots(1, 2, sharey=True), views.items(), strict=True):
            for place, kind in enumerate(reversed(kinds)):
                axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
                for name, (_, colour, shift, tasks) in lines.items():
                    state, at = "untrained" if name == "untrained" else "trained", place + shift
                    own = pairs.get((kind, view, *tasks, state), [])
                    axes.plot(own, [at - 0.08] * len(own), ".", color=colour, ms=3.5)
                    draw_interval(axes, found[kind][view][name], at, colour, open_=state == "untrained")
            axes.set_title(title)
            axes.set_xlim(-0.03, 1.05)
            axes.set_xlabel("attention in common (1: all of it)")
            axes.set_yticks(range(len(kinds)), [KINDS[kind] for kind in reversed(kinds)])
            axes.set_ylim(-0.6, len(kinds) - 0.4)
        handles = [
            Line2D([], [], marker="o", ls="", ms=5.5, mew=1.4, color=colour, label=label)
            for label, colour, *_ in lines.values()
        ]
        handles[-1].set_markerfacecolor("white")
        figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def courses(result: Result) -> Figure:
    """Words right over the updates, a panel a kind of network, a line a task."""
    rows = result.tables["courses"]
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    if not kinds:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.4))
        grid = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for axes, kind in zip(grid, kinds, strict=True):
            for task, colour in TASKS.items():
                own = [row for row in rows if (row["kind"], row["task"]) == (kind, task)]
                if not own:
                    continue
                steps, values = [row["step"] for row in own], [row["value"] for row in own]
                axes.plot(steps, values, color=colour, lw=1.8)
                low, high = [row["low"] for row in own], [row["high"] for row in own]
                if None not in low:
                    axes.fill_between(steps, low, high, color=colour, alpha=0.13, lw=0)
                axes.annotate(
                    task, (steps[-1], 0.12 if task == "translation" else 0.26), ha="right", color=colour
                )
            axes.set_title(KINDS[kind])
            axes.set_xlabel("updates")
            axes.set_ylim(0, 1.03)
        grid[0].set_ylabel("words right\n(teacher-forced)")
    return figure


# Who asks whom in a Transformer, by kind of word, and whether it is mutual, head by head.

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
