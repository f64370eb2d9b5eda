"""Temporal components against states without words, and attention when clocks are set apart or run on."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style, task_name
from companion.results.result import Result, tasks_of
from notebooks.shared.dots import Dot, at, dot_rows
from notebooks.shared.labels import Label, write_labels

BLUE, ORANGE = (PART_COLOURS[part] for part in ("temporal", "input"))
GREEN, PURPLE, BROWN = (
    "#009e73",
    "#aa4499",
    "#a06a00",
)  # zero input, words, one constant state
COURSES = {  # course → label, colour, line
    "temporal": ("temporal component μ", BLUE, "-"),
    "average": ("average input", INK, "--"),
    "null": ("zero input", GREEN, ":"),
}
FILLERS = {  # suffix of a condition → label, colour, marker
    "": ("average input (AO: positions)", INK, "o"),
    "_null": ("zero input", GREEN, "s"),
    "_words": ("words", PURPLE, "^"),
}
INPUTS = {  # name in the result → label, colour, marker, open
    "average": ("average input", INK, "o", False),
    "average_by_position": ("average input of each position", INK, "o", True),
    "null": ("zero input", GREEN, "x", False),
}


def courses(result: Result, task: str) -> Figure:
    """μ_t and the states without words in the plane of μ's two main directions, of the first networks."""
    rows = [row for row in result.tables["courses"] if row["task"] == task]
    # encoder first: the sides are read left to right, as in the network
    panels = sorted({(row["kind"], row["side"]) for row in rows}, key=lambda p: (p[0], p[1] != "encoder"))
    with style():
        figure = Figure(figsize=(8.6, 2.7))
        grid = figure.subplots(1, max(len(panels), 1), squeeze=False)[0]
        for axes, (kind, side) in zip(grid, panels, strict=False):
            own = [row for row in rows if (row["kind"], row["side"]) == (kind, side)]
            ends: list[Label] = []
            for name, (label, colour, line) in COURSES.items():
                path = [(row["first"], row["second"]) for row in own if row["course"] == name]
                x, y = zip(*path, strict=True)
                axes.plot(x, y, line, color=colour, lw=1.5, marker=".", ms=4, label=label)
                ends += [(*path[0], "0", colour), (*path[-1], str(len(path) - 1), colour)]
            axes.margins(0.1)
            write_labels(axes, ends, size=9)
            axes.set_title(f"{kind}, {side}")
            axes.set_xlabel("first direction of μ")
        grid[0].set_ylabel("second direction of μ")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def agreement(result: Result) -> Figure:
    """Cosine of the course without words with that of μ_t, encoder and decoder."""
    panels = {
        side: [
            Dot(f"wordless.{side}.{name}.cosine", label, colour, marker, is_open, shift)
            for (name, (label, colour, marker, is_open)), shift in zip(
                INPUTS.items(), (0.18, 0, -0.18), strict=True
            )
        ]
        for side in ("encoder", "decoder")
    }
    return dot_rows(result, panels, xlabel="cosine with the course of μ", xlim=(-1.05, 1.08), row_height=0.4)


def rebuilt(result: Result) -> Figure:
    """Attention with μ replaced by the states without words, the rest as it is; and from μ or these alone."""

    def dots(way: str, extra: list[Dot]) -> list[Dot]:
        shown = [
            Dot(f"rebuilt.{name}.{way}.similarity", label, colour, marker, is_open, shift)
            for (name, (label, colour, marker, is_open)), shift in zip(
                INPUTS.items(), (0.22, 0.07, -0.08), strict=True
            )
        ]
        return [*shown, *extra]

    constant = Dot("rebuilt.constant.{}.similarity", "one constant state", BROWN, "s", shift=-0.24)
    itself = Dot("rebuilt.temporal.alone.similarity", "μ itself", BLUE, "|", shift=0.3)

    def of(way: str) -> Dot:
        return Dot(
            constant.key.format(way), constant.label, constant.colour, constant.marker, shift=constant.shift
        )

    panels = {
        "in place of μ, χ and Δ kept": dots("both", [of("both")]),
        "alone, without χ and Δ": dots("alone", [of("alone"), itself]),
    }
    legend = panels["alone, without χ and Δ"]
    return dot_rows(result, panels, xlabel="similarity to the full attention", legend=legend, row_height=0.46)


def positions(result: Result) -> Figure:
    """Accuracy, attention in place and temporal share of every cell and position code."""
    panels = {
        "token accuracy": [Dot("token_accuracy", "", INK)],
        "attention in place": [Dot("attention.in_place", "", INK)],
        "temporal share": [Dot("attention.temporal_share", "", BLUE)],
        "input share": [Dot("attention.input_share", "", ORANGE)],
    }
    return dot_rows(result, panels, xlabel="share", xlim=(-0.15, 1.08), legend=[], row_height=0.36)


def displacements(result: Result, task: str) -> Figure:
    """Mean displacement of the largest weight against the one expected, a panel a kind of network.

    Left of 0 the encoder's clock is ahead, right of it the decoder's (where attention is diagonal).
    """

    def draw(axes: Axes, kind: str, found: dict) -> None:
        axes.plot([-5, 5], [-5, 5], color="#cccccc", lw=1, zorder=0)
        axes.axhline(0, color="#e5e5e5", lw=0.8, zorder=0)
        for suffix, (label, colour, marker) in FILLERS.items():
            places = [
                (record["expected"]["value"], record["largest"])
                for side in ("encoder", "decoder")
                for name, record in (at(found["offsets"], f"{side}{suffix}") or {}).items()
                if name.startswith("by_") and record["expected"]["value"] is not None
            ]
            for x, interval in places:
                if interval["low"] is not None:
                    axes.plot([x, x], [interval["low"], interval["high"]], color=colour, lw=1.2)
            x, y = (
                zip(*sorted((x, interval["value"]) for x, interval in places), strict=True)
                if places
                else ((), ())
            )
            axes.plot(x, y, marker, color=colour, ls="-", lw=1, ms=4.5, label=label)
        axes.set_ylim(-6.5, 6.5)
        axes.set_xticks(range(-4, 5, 2))

    return _panels(result, task, draw, "expected displacement", "displacement (places)")


def beyond(result: Result, task: str) -> Figure:
    """Attention in place by target position in sentences twice as long as any trained on."""
    lines = {"in_place": ("attention", INK), "temporal_in_place": ("from μ·μ alone", BLUE)}
    rows = [row for row in result.tables["positions"] if row["task"] == task]

    def draw(axes: Axes, kind: str, found: dict) -> None:
        own = [row for row in rows if row["kind"] == kind]
        if not own:
            axes.text(0.5, 0.5, "lengths are fixed", ha="center", transform=axes.transAxes)
            return
        x = [row["position"] for row in own]
        axes.axvspan(own[0]["trained_up_to"] - 0.5, x[-1], color="#f0f0f0", zorder=0)
        for column, (label, colour) in lines.items():
            axes.plot(x, [row[column] for row in own], color=colour, lw=1.5, label=label)
            if own[0][f"{column}_low"] is not None:
                low, high = ([row[f"{column}_{end}"] for row in own] for end in ("low", "high"))
                low, high = ([min(max(y, 0), 1) for y in end] for end in (low, high))
                axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
        axes.set_ylim(-0.02, 1.05)

    return _panels(result, task, draw, "target position (grey: beyond training)", "mass within one place")


def _panels(
    result: Result, task: str, draw: Callable[[Axes, str, dict], None], xlabel: str, ylabel: str
) -> Figure:
    """A panel for each kind of network, four in a row, with one legend of all that is drawn."""
    kinds = result.values[task] if task in tasks_of(result) else {}
    lines = -(-len(kinds) // 4) or 1
    with style():
        figure = Figure(figsize=(8.6, 2.35 * lines + 0.6))
        grid = figure.subplots(lines, 4, sharex=True, sharey=True, squeeze=False)
        labelled: dict[str, object] = {}
        for axes in grid.flat[len(kinds) :]:
            axes.set_visible(False)
        for place, (axes, (kind, found)) in enumerate(zip(grid.flat, kinds.items(), strict=False)):
            draw(axes, kind, found)
            axes.set_title(kind)
            axes.tick_params(labelbottom=True)
            if place % 4 == 0:
                axes.set_ylabel(ylabel)
            handles, labels = axes.get_legend_handles_labels()
            labelled |= {
                label: handle for handle, label in zip(handles, labels, strict=True) if label not in labelled
            }
        figure.supxlabel(f"{xlabel} — {task_name(task)}", fontsize=10)
        figure.legend(
            labelled.values(), labelled.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=9
        )
    return figure
