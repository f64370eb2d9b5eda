"""Swapped order words: an example as matrices, routes of the flip, predictions against the rerun, patches."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, PART_COLOURS, style, task_name
from companion.results.result import Result, tasks_of
from notebooks.shared.dots import at
from notebooks.shared.style import blank

INPUT, RESIDUAL = PART_COLOURS["input"], PART_COLOURS["residual"]
SWAP_NAMES = {
    "opening": "opening: staying ↔ reversing",
    "modifier": "modifier: staying ↔ swapping",
    "opening_within": "opening, same class",
    "modifier_within": "modifier, same class",
    "head": "head ↔ head",
    "join": "and ↔ after",
    "times": "twice ↔ thrice",
    "manner": "opposite ↔ around",
    "verb": "verb ↔ verb",
    "direction": "left ↔ right",
}
Bar = tuple[str, str, str]  # dotted key below <task>.<kind>.<swap>, label, colour
ROUTE_BARS: tuple[Bar, ...] = (
    ("decoder_input", "decoder χ", INPUT),
    ("decoder_residual", "decoder Δ", RESIDUAL),
    ("encoder_input", "encoder χ", INPUT),
    ("encoder_residual", "encoder Δ,\nthat word", RESIDUAL),
    ("encoder_context", "encoder Δ,\nother words", RESIDUAL),
)
PATCH_BARS: tuple[Bar, ...] = (
    ("E", "encoder\nstates", INK),
    ("S", "start of\ndecoder", INK),
    ("W", "words\nread", INK),
    ("e_input", "encoder χ\nalone", INPUT),
    ("e_residual", "encoder Δ\nalone", RESIDUAL),
)
PREDICTION_BARS: tuple[Bar, ...] = (
    ("none", "no change", INK),
    ("uniform", "uniform", INK),
    ("input", "χ swapped", INPUT),
    ("input_alone", "χ swapped,\nΔ dropped", INPUT),
    ("encoder", "mean effect,\nencoder", RESIDUAL),
    ("decoder", "mean effect,\ndecoder", RESIDUAL),
    ("both", "both\neffects", RESIDUAL),
)
SHADES, DASHES = ("#000000", "#7a5195"), ("-", "--", ":", "-.")  # of tasks and of cells; no part has them
HATCHES = ("", "////", "....", "xxxx", "||||", "----")  # of the kinds of model, in turn
ROW_SETS = {"fork": "where the translations part", "own": "all steps", "same": "all steps, same words read"}


def swaps_of(result: Result, task: str, kinds: tuple[str, ...]) -> list[str]:
    """Swaps of a task's words, of the kinds asked for (``order``, ``count``, ``content``)."""
    found = next(iter(result.values[task].values()))
    return [swap for swap in SWAP_NAMES if swap in found and found[swap]["kind"] in kinds]


def networks_of(found: dict) -> int:
    """How many networks a swap was asked of; a number of it may be undefined in some."""
    return found["exact"]["first"]["n"]


def fewer(interval: dict, networks: int) -> str:
    """``one network only`` or ``5 of 10 networks`` where not all have the number; empty where all have."""
    if interval["value"] is None:
        return ""
    if interval["n"] == 1:
        return "one network only"
    return f"{interval['n']} of {networks} networks" if interval["n"] < networks else ""


def routes(result: Result, rows: str = "fork") -> Figure:
    """Share of each route in the change of the scores, a panel for each word that changes the order."""
    asked = [(task, swap) for task in tasks_of(result) for swap in swaps_of(result, task, ("order", "count"))]
    bars = tuple((f"routes.{rows}.{key}", label, colour) for key, label, colour in ROUTE_BARS)
    return _panels(result, asked, bars, f"share of the change\n({ROW_SETS[rows]})", limits=(-0.25, 1.15))


def patches(result: Result, rows: str = "own") -> Figure:
    """How far attention goes from one run to the other's when one thing is taken from that run."""
    asked = [(task, swap) for task in tasks_of(result) for swap in swaps_of(result, task, ("order", "count"))]
    bars = tuple((f"patches.{rows}.{key}.share", label, colour) for key, label, colour in PATCH_BARS)
    return _panels(result, asked, bars, f"share of the flip\n({ROW_SETS[rows]})", limits=(-0.25, 1.15))


def predictions(result: Result, task: str, rows: str = "changed", score: str = "similarity") -> Figure:
    """Predicted against rerun rows, a panel for each kind of swap of one task."""
    asked = [(task, swap) for swap in swaps_of(result, task, ("order", "count", "content"))]
    bars = tuple(
        (f"predictions.{rows}.{key}.{score}", label, colour) for key, label, colour in PREDICTION_BARS
    )
    label = {"similarity": "1 − total variation", "argmax": "same largest weight"}[score]
    return _panels(result, asked, bars, f"{label}\nto the rerun", limits=(0, 1.05))


def _panels(
    result: Result,
    asked: list[tuple[str, str]],
    bars: tuple[Bar, ...],
    label: str,
    limits: tuple[float, float],
) -> Figure:
    columns = min(len(asked), 3)
    lines = -(-len(asked) // columns)
    kinds = list(dict.fromkeys(kind for task, _ in asked for kind in result.values[task]))
    with style():
        figure = Figure(figsize=(8.6, 2.45 * lines + 0.6))
        grid = figure.subplots(lines, columns, squeeze=False, sharey=True)
        for axes in grid.flat[len(asked) :]:
            axes.set_visible(False)
        for axes, (task, swap) in zip(grid.flat, asked, strict=False):
            notes = []
            for shift, kind in enumerate(kinds):
                if kind in result.values[task]:
                    found = result.values[task][kind][swap]
                    _draw_bars(axes, found, bars, shift, len(kinds))
                    notes += _fewer_networks(found, kind, bars)
            axes.axhline(0, color=INK, lw=0.8)
            axes.set_ylim(*limits)
            axes.set_xticks(range(len(bars)), [text for _, text, _ in bars], fontsize=8, rotation=50,
                            ha="right", rotation_mode="anchor", linespacing=0.9)  # fmt: skip
            axes.set_title("\n".join([task_name(task), SWAP_NAMES[swap], *notes]), fontsize=9.5)
        for axes in grid[:, 0]:
            axes.set_ylabel(label, fontsize=9)
        handles = [
            Patch(facecolor="white" if hatch else INK, edgecolor=INK, hatch=hatch, label=kind)
            for kind, hatch in zip(kinds, HATCHES, strict=False)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _fewer_networks(found: dict, kind: str, bars: tuple[Bar, ...]) -> list[str]:
    """``AO: 5 of 10 networks`` where bars stand for fewer networks than were asked."""
    shown = [interval for key, _, _ in bars if (interval := at(found, key)) is not None]
    notes = dict.fromkeys(note for interval in shown if (note := fewer(interval, networks_of(found))))
    return [f"{kind}: {' or '.join(notes)}"] if notes else []


def _draw_bars(axes: Axes, found: dict, bars: tuple[Bar, ...], shift: int, kinds: int) -> None:
    width = 0.8 / kinds
    for place, (key, _, colour) in enumerate(bars):
        interval = at(found, key)
        if interval is None or interval["value"] is None:
            continue
        x = place - 0.4 + (shift + 0.5) * width
        if interval["n"] == 1:  # no interval, so no bar that stands among those that have one
            axes.plot(x, interval["value"], "o", color=colour, markerfacecolor="white", ms=4.5)
            continue
        axes.bar(x, interval["value"], width * 0.9, color=colour if shift == 0 else "white", edgecolor=colour,
                 hatch=HATCHES[shift], lw=1)  # fmt: skip
        if interval["low"] is not None:
            axes.plot([x, x], [interval["low"], interval["high"]], color="black", lw=1.2)


@dataclass(frozen=True)
class _Run:
    source: list[str]
    predicted: list[str]
    attention: np.ndarray  # (target, source)


def example(result: Result, task: str, kind: str, swap: str) -> Figure:
    """One pair: the attention before, after, and the difference over the steps that both have."""
    records = [
        record
        for record in result.tables["examples"]
        if (record["task"], record["kind"], record["swap"]) == (task, kind, swap)
    ]
    before, after = (_run(records, run) for run in ("first", "second"))
    place = int(records[0]["position"])
    steps = min(len(before.predicted), len(after.predicted))
    difference = after.attention[:steps] - before.attention[:steps]
    words = [*before.source]
    words[place] = f"{before.source[place]} → {after.source[place]}"
    rows = [
        f"{_short(a)} → {_short(b)}" if a != b else _short(a)
        for a, b in zip(before.predicted[:steps], after.predicted[:steps], strict=True)
    ]
    with style():
        figure = Figure(figsize=(8.6, 0.2 * max(len(before.predicted), len(after.predicted)) + 1.9))
        grid = figure.subplots(1, 3)
        panels = (
            ("before", before.attention, before.source, [_short(w) for w in before.predicted], "Greys", 0),
            ("after", after.attention, after.source, [_short(w) for w in after.predicted], "Greys", 0),
            ("after − before", difference, words, rows, "PuOr_r", -1),
        )
        for axes, (title, matrix, across, down, colours, low) in zip(grid, panels, strict=True):
            image = axes.imshow(
                matrix, cmap=colours, vmin=low, vmax=1, aspect="auto", interpolation="nearest"
            )
            axes.set_xticks(range(len(across)), [_short(w) for w in across], rotation=90, fontsize=8)
            axes.set_yticks(range(len(down)), down, fontsize=8)
            axes.get_xticklabels()[place].set_color(INPUT)
            axes.set_title(title)
            axes.set_xlabel("source word")
            axes.spines[:].set_visible(True)
        grid[0].set_ylabel("word to be predicted")
        figure.colorbar(image, ax=grid[2], shrink=0.7, label="change of attention")
        figure.suptitle(f"{task_name(task)}, {kind}: {words[place]}", fontsize=10.5)
    return figure


def _run(records: list[dict], run: str) -> _Run:
    own = sorted((r for r in records if r["run"] == run), key=lambda r: r["target_position"])
    matrix = np.array([[float(weight) for weight in record["attention"].split()] for record in own])
    return _Run(own[0]["source"].split(), [record["predicted"] for record in own], matrix)


def _short(word: str) -> str:
    return {"<eos>": "end"}.get(word, word.replace("I_", "").lower())


def memory(result: Result) -> Figure:
    """How long the states remember which order word was read: encoder by lag, decoder by step.

    A column for each word; tasks differ in shade, cells in dashes.
    """
    records = [record for record in result.tables["memory"] if record["kind"].startswith("AED")]
    swaps = [swap for swap in SWAP_NAMES if any(r["swap"] == swap for r in records)]
    if not swaps:
        return blank()
    sides = {"encoder_residual": "words after the swapped one", "decoder": "decoder step, same words read"}
    highest = max(r["value"] for r in records if r["series"] in sides)
    with style():
        figure = Figure(figsize=(8.6, 5.6))
        grid = figure.subplots(2, len(swaps), sharey=True, sharex="row", squeeze=False)
        for column, swap in zip(grid.T, swaps, strict=True):
            own = [r for r in records if r["swap"] == swap]
            tasks, kinds = (list(dict.fromkeys(r[name] for r in own)) for name in ("task", "kind"))
            for axes, series in zip(column, sides, strict=True):
                for task, kind in dict.fromkeys((r["task"], r["kind"]) for r in own):
                    line = [r for r in own if (r["task"], r["kind"], r["series"]) == (task, kind, series)]
                    shade, dashes = (
                        SHADES[tasks.index(task) % len(SHADES)],
                        DASHES[kinds.index(kind) % len(DASHES)],
                    )
                    _draw_course(axes, line, shade, dashes, f"{task_name(task)}, {kind}")
                axes.set_xlabel(sides[series], fontsize=9)
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            column[0].set_title(f"{SWAP_NAMES[swap]}\nencoder residuals", fontsize=9.5)
            column[1].set_title("decoder residuals", fontsize=9.5)
            column[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), frameon=False, fontsize=8.5)
        # A norm is not negative, however wide the interval of a few seeds.
        grid[0, 0].set_ylim(0, 1.1 * highest)
        for axes in grid[:, 0]:
            axes.set_ylabel("‖δΔ‖ / mean ‖χ + Δ‖", fontsize=9)
    return figure


def _draw_course(axes: Axes, line: list[dict], colour: str, dashes: str, label: str) -> None:
    place = [r["place"] for r in line]
    axes.plot(place, [r["value"] for r in line], dashes, color=colour, lw=1.5, label=label)
    if all(r["low"] is not None for r in line):
        axes.fill_between(
            place, [r["low"] for r in line], [r["high"] for r in line], color=colour, alpha=0.13, lw=0
        )
