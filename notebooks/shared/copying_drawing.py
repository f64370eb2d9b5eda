"""Networks that learn to copy: a curve a seed, what they know of single words, and the proxy's loss."""

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, style
from companion.results.result import Result

KIND_COLOURS = {"sample": "#0072b2", "permutation": "#d55e00", "mixture": "#d55e00"}
RIGHT, ELSEWHERE, LEFT_OUT = "#0072b2", "#999999", "#d55e00"
NETWORK_NAMES = {"proxy": "bag of words", "uniform": "uniform attention", "learned": "learned attention"}


def kind_name(kind: str, length: int) -> str:
    """A kind of sentences as a reader calls it, say ``20 of 30 words``."""
    return {
        "permutation": f"permutations of {length} words",
        "sample": f"{length} of {length + length // 2} words",
        "mixture": f"either of two sets of {length}",
    }[kind]


def kinds_shown(result: Result) -> list[str]:
    """The kinds of sentences that a result has, in the order they were asked for."""
    return [kind for kind in result.config["kind"] if kind in result.values]


def courses(result: Result) -> Figure:
    """Accuracy and attention accuracy by update, a curve a network; the hard kinds each against samples.

    Updates after those that networks are judged by are drawn lightly, where the hard kinds have any.
    """
    hard = [kind for kind in ("permutation", "mixture") if kind in result.values] or ["sample"]
    shown = {"accuracy": "accuracy", "attention_accuracy": "attention accuracy"}
    with style():
        figure = Figure(figsize=(4.1 * len(hard) + 0.3, 5.2))
        grid = figure.subplots(2, len(hard), sharex=True, sharey=True, squeeze=False)
        for column, kind in enumerate(hard):
            for axes, (name, ylabel) in zip(grid[:, column], shown.items(), strict=True):
                axes.axhline(0.95, color="#bbbbbb", lw=0.8, ls=":", zorder=0)
                for drawn in dict.fromkeys(("sample", kind)):
                    look = {"color": KIND_COLOURS[drawn], "lw": 1.1, "alpha": 0.75}
                    label = kind_name(drawn, _length(result))
                    which = {"kind": drawn, "network": "learned"}
                    curves(axes, result, name, look, label, between=(0, _judged(result)), **which)
                    if _followed(result, hard):
                        light = look | {"lw": 0.9, "alpha": 0.45}
                        curves(axes, result, name, light, None, between=(_judged(result), math.inf), **which)
                if _followed(result, hard):
                    axes.axvline(_judged(result), color="#bbbbbb", lw=0.8, zorder=0)
                axes.set_ylim(-0.03, 1.03)
                if column == 0:
                    axes.set_ylabel(ylabel)
            grid[1, column].set_xlabel("updates")
        for axes in grid[0]:  # above its own panel: the curves leave no corner free
            axes.legend(frameon=False, fontsize=8.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def knowledge(result: Result, network: str) -> Figure:
    """Lexical probe at the right position and elsewhere, a panel a kind; thin lines are single networks.

    Args:
        network: ``proxy``, ``uniform`` or ``learned``.
    """

    def draw(axes: Axes, kind: str) -> None:
        floor, ignorance = (math.exp(-result.values[kind][name]) for name in ("floor", "ignorance"))
        axes.axhline(floor, color=INK, lw=0.9, ls="--", label="1/length", zorder=0)
        if ignorance < floor:
            axes.axhline(ignorance, color=INK, lw=0.9, ls=":", label="1/words", zorder=0)
        for name, colour, label in (
            ("probe_right", RIGHT, "at the right word"),
            ("probe_elsewhere", ELSEWHERE, "elsewhere, mean"),
        ):
            look = {"color": colour, "lw": 1.2}
            curves(axes, result, name, look, label, between=(0, _judged(result)), kind=kind, network=network)
        axes.set_ylim(0, 1.02)

    return _by_kind(result, draw, f"β, {NETWORK_NAMES[network]}")


def moved_attention(result: Result) -> Figure:
    """How often a word is said that is shown alone, or left out alone; a panel a kind, a line a network."""

    def draw(axes: Axes, kind: str) -> None:
        for name, colour, label in (
            ("says_shown", RIGHT, "the one word that is shown"),
            ("says_left_out", LEFT_OUT, "the one word that is left out"),
        ):
            look = {"color": colour, "lw": 1.1, "alpha": 0.75}
            curves(axes, result, name, look, label, kind=kind, network="learned")
        axes.axhline(1 / _length(result), color=INK, lw=0.9, ls="--", label="1/length", zorder=0)
        axes.set_ylim(-0.03, 1.03)

    return _by_kind(result, draw, "share of words said")


def proxy_losses(result: Result) -> Figure:
    """The bag of words' loss on held-out sentences, with log(words) and the floor log(length)."""

    def draw(axes: Axes, kind: str) -> None:
        found = result.values[kind]
        axes.axhline(found["floor"], color=INK, lw=0.9, ls="--", label="log(length)", zorder=0)
        if found["ignorance"] > found["floor"]:
            axes.axhline(found["ignorance"], color=INK, lw=0.9, ls=":", label="log(words)", zorder=0)
        look, which = {"color": RIGHT, "lw": 1.2}, {"kind": kind, "network": "proxy"}
        curves(axes, result, "loss", look, "bag of words", between=(0, _judged(result)), **which)

    return _by_kind(result, draw, "loss (nats a word)")


def _by_kind(result: Result, draw: Callable[[Axes, str], None], ylabel: str) -> Figure:
    kinds = kinds_shown(result)
    with style():
        figure = Figure(figsize=(2.85 * len(kinds) + 0.3, 2.9))
        grid = figure.subplots(1, len(kinds), sharex=True, sharey=True, squeeze=False)[0]
        for axes, kind in zip(grid, kinds, strict=True):
            draw(axes, kind)
            axes.set_title(kind_name(kind, _length(result)), fontsize=9.5)
            axes.set_xlabel("updates")
        grid[0].set_ylabel(ylabel)
        labelled: dict[str, object] = {}
        for axes in grid:
            handles, labels = axes.get_legend_handles_labels()
            labelled |= dict(zip(labels, handles, strict=True))
        figure.legend(
            labelled.values(), labelled.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=9
        )
    return figure


def curves(
    axes: Axes,
    result: Result,
    name: str,
    look: dict,
    label: str | None,
    *,
    between: tuple[float, float] = (0, math.inf),
    **which: str,
) -> None:
    """A line a network of those where the columns ``which`` have these values; one carries the label.

    Args:
        between: first and last update drawn.
    """
    rows = [
        row
        for row in result.tables["courses"]
        if all(row[column] == value for column, value in which.items())
        and between[0] <= row["steps"] <= between[1]
    ]
    for place, seed in enumerate(dict.fromkeys(row["seed"] for row in rows)):
        own = [row for row in rows if row["seed"] == seed]
        axes.plot(
            [row["steps"] for row in own],
            [row[name] for row in own],
            label=label if not place else None,
            **look,
        )


def _judged(result: Result) -> int:
    """The update after which networks are judged; some are followed for more."""
    return result.config["steps"]


def _followed(result: Result, kinds: list[str]) -> bool:
    """Whether there are later updates of these kinds than those that networks are judged by."""
    return any(result.values[kind]["followed"]["steps"] > _judged(result) for kind in kinds)


def _length(result: Result) -> int:
    return result.config["length"]
