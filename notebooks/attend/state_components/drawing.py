"""Temporal and input components as pictures, and the variance of the states that they explain."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style, task_name
from companion.results.result import Result, kinds_of
from notebooks.shared.labels import write_labels

FILL = {"encoder": True, "decoder": False}  # filled markers are the encoder's, open ones the decoder's
LABELLED = 8  # words of each side with a label, the most frequent
ROW_KINDS = ("VED", "AED", "AO")


def temporal_curves(result: Result, tasks: tuple[str, ...]) -> Figure:
    """Temporal components of both sides along the first two axes of the space fitted to them (seed 0)."""
    return _grid(result, tasks, "temporal", _draw_curves)


def input_clusters(result: Result, tasks: tuple[str, ...]) -> Figure:
    """Input components of both sides in the space fitted to them, with states around them (seed 0)."""
    return _grid(result, tasks, "input", _draw_words)


def in_one_space(result: Result, tasks: tuple[str, ...]) -> Figure:
    """Both parts of both sides in the space fitted to all of them: which of the two is larger (seed 0)."""
    return _grid(result, tasks, "together", _draw_together)


def _grid(result: Result, tasks: tuple[str, ...], space: str, draw) -> Figure:
    drawn = {record["kind"] for record in result.tables["temporal"] if record["task"] in tasks}
    kinds = [kind for kind in ROW_KINDS if kind in drawn] + sorted(drawn - set(ROW_KINDS))
    with style():
        figure = Figure(figsize=(2.75 * max(len(tasks), 2), 2.55 * len(kinds)))
        grid = figure.subplots(len(kinds), len(tasks), squeeze=False)
        for row, kind in enumerate(kinds):
            for column, task in enumerate(tasks):
                axes = grid[row, column]
                here = {
                    name: [r for r in records if r["task"] == task and r.get("kind") == kind]
                    for name, records in result.tables.items()
                }
                if not here["temporal"]:
                    axes.axis("off")
                    continue
                draw(axes, here)
                share = {r["axis"]: r["share"] for r in here["explained"] if r["space"] == space}
                axes.set_title(f"{task_name(task)}, {kind}")
                axes.set_xlabel(f"axis 1 ({100 * share[0]:.0f} % of variance)", fontsize=8.5)
                axes.set_ylabel(f"axis 2 ({100 * share[1]:.0f} %)", fontsize=8.5)
                axes.tick_params(labelsize=8)
    return figure


Label = tuple[float, float, str]  # where, and what it says


def _curve(axes: Axes, records: list[dict], side: str, prefix: str) -> list[Label]:
    here = [record for record in records if record["side"] == side]
    x, y = ([record[f"{prefix}{axis}"] for record in here] for axis in (1, 2))
    colour = PART_COLOURS["temporal"]
    axes.plot(x, y, "-" if FILL[side] else "--", color=colour, lw=1.2, alpha=0.8)
    axes.plot(
        x, y, "o" if FILL[side] else "s", ms=3.6, color=colour, mfc=colour if FILL[side] else "white", mew=0.9
    )
    return [(x[0], y[0], f"{side} {here[0]['position']}"), (x[-1], y[-1], str(here[-1]["position"]))]


def _draw_curves(axes: Axes, here: dict[str, list[dict]]) -> None:
    _label(axes, [label for side in FILL for label in _curve(axes, here["temporal"], side, "pc")])


def _words(axes: Axes, records: list[dict], side: str, prefix: str) -> list[Label]:
    colour, labels = PART_COLOURS["input"], []
    for record in (record for record in records if record["side"] == side):
        x, y = record[f"{prefix}1"], record[f"{prefix}2"]
        axes.plot(x, y, "o" if FILL[side] else "s", ms=5, color=colour, zorder=3, mew=1.1,
                  mfc=colour if FILL[side] else "white")  # fmt: skip
        labels.append((x, y, record["word"].replace("$", r"\$").removeprefix("<").removesuffix(">")))
    return labels[:LABELLED]


def _label(axes: Axes, labels: list[Label]) -> None:
    """Text beside points, the first first; one that would cover another is left out."""
    axes.margins(0.16)
    write_labels(axes, [(x, y, text, INK) for x, y, text in labels])


def _draw_words(axes: Axes, here: dict[str, list[dict]]) -> None:
    labels: dict[str, list[Label]] = {}
    for side in FILL:
        states = [record for record in here["states"] if record["side"] == side]
        axes.plot([r["pc1"] for r in states], [r["pc2"] for r in states], "." if FILL[side] else "+",
                  ms=3 if FILL[side] else 4, color=PART_COLOURS["residual"], alpha=0.6, zorder=1)  # fmt: skip
        labels[side] = _words(axes, here["input"], side, "pc")
    _label(axes, _in_turn(labels))


def _in_turn(labels: dict[str, list[Label]]) -> list[Label]:
    """The most frequent word of each side, then the next of each."""
    found = []
    for rank in range(LABELLED):
        found += [side[rank] for side in labels.values() if rank < len(side)]
    return found


def _draw_together(axes: Axes, here: dict[str, list[dict]]) -> None:
    ends = [label for side in FILL for label in _curve(axes, here["temporal"], side, "together")]
    words = {side: _words(axes, here["input"], side, "together") for side in FILL}
    _label(axes, ends + _in_turn(words))


SHARES = {  # key → label, colour, filled
    "additive": ("position and word, μ + χ", INK, True),
    "temporal": ("position alone", PART_COLOURS["temporal"], True),
    "temporal_unique": ("unique to position", PART_COLOURS["temporal"], False),
    "input": ("word alone", PART_COLOURS["input"], True),
    "input_unique": ("unique to word", PART_COLOURS["input"], False),
}


def variance_explained(result: Result) -> Figure:
    """Share of the variance of held-out states, encoder left and decoder right, with intervals over seeds."""
    rows = kinds_of(result)
    with style():
        figure = Figure(figsize=(8.6, 0.52 * len(rows) + 1.5))
        for axes, side in zip(figure.subplots(1, 2, sharey=True), FILL, strict=True):
            for place, (_, _, found) in enumerate(reversed(rows)):
                axes.axhline(place, color="#e5e5e5", lw=0.8, zorder=0)
                for offset, (key, (_, colour, filled)) in zip((2, 1, 0, -1, -2), SHARES.items(), strict=True):
                    interval_mark(
                        axes, found[side]["held_out"][key], place + 0.15 * offset, colour, filled=filled
                    )
            axes.set_title(f"{side} states")
            axes.set_xlabel("share of variance, held out")
            axes.set_xlim(-0.05, 1.02)
            axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), [f"{task_name(task)}, {kind}" for task, kind, _ in reversed(rows)])
        for label, colour, filled in SHARES.values():
            axes.plot([], [], "o", ms=5, color=colour, mfc=colour if filled else "white", label=label)
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def averages_against_exact(result: Result) -> Figure:
    """What the exact fit gains over averages in held-out variance, and how far the two are apart."""
    rows = kinds_of(result)
    panels = {
        "held-out share gained by the exact fit": (("gain", INK),),
        "distance of averages from it (s.d. of states)": (
            ("temporal", PART_COLOURS["temporal"]),
            ("input", PART_COLOURS["input"]),
        ),
    }
    with style():
        figure = Figure(figsize=(8.6, 0.42 * len(rows) + 1.6))
        for axes, (label, keys) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
            axes.axvline(0, color="#bbbbbb", lw=0.8)
            for place, (_, _, found) in enumerate(reversed(rows)):
                axes.axhline(place, color="#e5e5e5", lw=0.8, zorder=0)
                for side, filled in FILL.items():
                    for key, colour in keys:
                        interval = found[side]["gain"] if key == "gain" else found[side]["difference"][key]
                        shift = (0.12 if filled else -0.12) + (0.06 if key == "input" else 0)
                        interval_mark(axes, interval, place + shift, colour, filled=filled)
            axes.set_xlabel(label)
            axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), [f"{task_name(task)}, {kind}" for task, kind, _ in reversed(rows)])
        for text, colour, filled in (
            ("encoder", INK, True),
            ("decoder", INK, False),
            ("temporal μ", PART_COLOURS["temporal"], True),
            ("input χ", PART_COLOURS["input"], True),
        ):
            axes.plot([], [], "o", ms=5, color=colour, mfc=colour if filled else "white", label=text)
        figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def interval_mark(axes: Axes, interval: dict, place: float, colour: str, *, filled: bool = True) -> None:
    """A point with its interval as a horizontal line, where there are seeds enough for one."""
    if interval["value"] is None or math.isnan(interval["value"]):
        return
    if interval["low"] is not None and not math.isnan(interval["low"]):
        axes.plot([interval["low"], interval["high"]], [place, place], color=colour, lw=1.4, zorder=2)
    axes.plot(interval["value"], place, "o", ms=5, color=colour, mfc=colour if filled else "white", zorder=3)
