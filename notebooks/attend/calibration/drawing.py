"""Shares of parts against the effects of exchanging them, and how well each attribution predicts them."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.book.numbers import written
from companion.results.result import Result
from notebooks.shared.dial import DIAL
from notebooks.shared.marks import dot, grid, rule
from notebooks.shared.style import ATTRIBUTION_LABELS, INK, PART_COLOURS, blank

NARROW = 4.7  # inches, which a telephone shows nearly whole
BY_CHANCE = 1 / 3  # of the networks have their strongest part named: there are three parts
PART_LABELS = {"temporal": "position μ", "residual": "memory Δ", "input": "word χ"}
PART_INKS = PART_COLOURS | {"residual": "#777777"}  # of words, which need more contrast than points
NAMES_ABOVE = {"temporal": (0.15, 0.86), "residual": (2.6, 0.86), "input": (1.35, 0.13)}
PARTS_AT = {"temporal": (0.66, 0.95), "residual": (0.21, 0.56), "input": (0.025, 0.1)}  # of their names
GROUPS = {  # networks → what they are called, their colour, and their shift within a row
    "dial": ("along the dial", INK, -0.14),
    "families": ("families of tasks", "#888888", 0.14),
}


def over(result: Result) -> dict:
    """Numbers over families of tasks; along the dial where there are too few families."""
    everywhere = result.values
    ranks = everywhere["rank"]["exchange"]["both"]["attention"]["every"]
    return everywhere["dial"] if ranks["split"]["value"] is None else everywhere


def part_that_leads(points: pd.DataFrame, result: Result) -> Figure:
    """Draw along the dial the attention moved by each part of the keys, and below it what two shares say.

    The largest of the three parts has a ring, at each setting of the dial and in each panel.

    Args:
        points: a part of a network each, on every side.
        result: of the experiment.
    """
    chosen = points[(points["side"] == "keys") & (points["kind"] == "AED") & points["learned"]]
    on_dial = chosen[chosen["task"].isin(DIAL)]
    if on_dial.empty:
        return blank()
    hits = result.values["dial"]["hits"]["resample"]["keys"]["attention"]
    quantities = {
        "resample_attention": "Attention moved when the part is drawn anew",
        "split": f"Split share of the keys, their half of every term{with_hits(hits['split'])}",
        "own": f"Own term{with_hits(hits['own'])}",
    }
    with grid(3, 1, size=(NARROW, 6.6), sharex=True) as (figure, panels):
        for axes, (quantity, title) in zip(panels.flat, quantities.items(), strict=True):
            draw_parts_along_dial(axes, on_dial, quantity)
            axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
        upper, lower = panels.flat[0], panels.flat[-1]
        upper.set_ylim(0, 1)
        for part, (place, height) in NAMES_ABOVE.items():
            upper.text(
                place, height, PART_LABELS[part], color=PART_INKS[part], fontsize=9.5, fontweight="bold"
            )
        lower.set_xticks(range(len(DIAL)), [f"{task.rpartition('_')[2]} %" for task in DIAL])
        lower.set_xlabel("sentences that may change the order of their words")
    return figure


def with_hits(hits: Mapping[str, float | None]) -> str:
    """Return in how many networks an attribution names the part that leads, to follow its name."""
    if hits["value"] is None:
        return ""
    return f"\nThe same part leads in {written(hits, ['count'])} networks"


def draw_parts_along_dial(axes: Axes, points: pd.DataFrame, quantity: str) -> None:
    """Draw a pale point for each network, a line through the means of each part, and rings at the largest."""
    at_mark = points.assign(mark=points["task"].map(DIAL.index))
    for part, group in at_mark.groupby("part", sort=False):
        colour = PART_COLOURS[part]
        axes.plot(group["mark"], group[quantity], "o", ms=3.5, alpha=0.3, mew=0, color=colour)
        means = group.groupby("mark")[quantity].mean()
        axes.plot(means.index, means, "-o", ms=5, lw=1.7, color=colour)
    means = at_mark.groupby(["mark", "part"])[quantity].mean().unstack()
    axes.plot(means.index, means.max(axis=1), "o", ms=11, mfc="none", mec=INK, mew=1.1)
    axes.set_ylim(0, 1.15 * at_mark[quantity].max())


def shares_against_effects(points: pd.DataFrame, result: Result) -> Figure:
    """Draw the attention moved over own terms, and below them over split shares.

    Args:
        points: a part of a network each, exchanged in queries and keys.
        result: of the experiment.
    """
    learned = points[points["learned"]]
    with grid(2, 1, size=(NARROW, 6.0), sharex=True) as (figure, panels):
        upper, lower = panels.flat
        draw_points(upper, learned, "own", result)
        draw_points(lower, learned, "split", result)
        annotate_shuffled(upper, learned)
        for part, place in PARTS_AT.items():
            upper.text(*place, PART_LABELS[part], color=PART_COLOURS[part], fontsize=9.5, fontweight="bold")
        lower.set_xlabel("share of the part")
    return figure


def draw_points(axes: Axes, learned: pd.DataFrame, attribution: str, result: Result) -> None:
    """Draw a point for each part of each network, its share across and the attention moved upwards."""
    for part, group in learned.groupby("part", sort=False):
        axes.plot(
            group[attribution], group["exchange_attention"], "o", ms=4, alpha=0.6, mew=0,
            color=PART_COLOURS[part],
        )  # fmt: skip
    rank = over(result)["rank"]["exchange"]["both"]["attention"]["every"][attribution]
    number = "" if rank["value"] is None else f": rank correlation {written(rank)}"
    title = f"{ATTRIBUTION_LABELS[attribution].capitalize()}{number}"
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
    axes.set_ylabel("attention moved by exchange")
    axes.set_xlim(-0.05, 1)
    axes.set_ylim(0, 1)


def annotate_shuffled(axes: Axes, points: pd.DataFrame) -> None:
    """Write above the temporal parts where all sentences may change order what is remarkable of them."""
    shuffled = points[(points["task"] == "reordering_100") & (points["part"] == "temporal")]
    if len(shuffled):
        highest = shuffled["exchange_attention"].max()
        axes.text(0, highest + 0.04, "own term small, and still moves most", fontsize=9)


def compared_attributions(result: Result) -> Figure:
    """Draw for every attribution its rank correlation, and how often it names the strongest part of the keys.

    Args:
        result: of the experiment.
    """
    if over(result)["rank"]["exchange"]["both"]["attention"]["every"]["own"]["value"] is None:
        return blank()
    with grid(2, 1, size=(NARROW, 5.4)) as (figure, panels):
        upper, lower = panels.flat
        for group, (name, colour, shift) in GROUPS.items():
            numbers = result.values if group == "families" else result.values["dial"]
            ranks = numbers["rank"]["exchange"]["both"]["attention"]["every"]
            hits = numbers["hits"]["exchange"]["keys"]["attention"]
            for place, attribution in enumerate(ATTRIBUTION_LABELS):
                for axes, estimates in ((upper, ranks), (lower, hits)):
                    dot(axes, estimates[attribution], place + shift, colour, bar={"lw": 1.6}, ms=6)
            if ranks["own"]["high"] is not None:
                right = ranks["own"]["high"], 1.6 * shift
                upper.annotate(
                    name, right, (5, 0), textcoords="offset points", va="center", fontsize=9, color=colour
                )
        lower.axvline(BY_CHANCE, color=INK, lw=0.9, ls=":")
        for axes in panels.flat:
            for place in range(len(ATTRIBUTION_LABELS)):
                rule(axes, place)
            axes.set_yticks(range(len(ATTRIBUTION_LABELS)), list(ATTRIBUTION_LABELS.values()))
            axes.set_ylim(len(ATTRIBUTION_LABELS) - 0.5, -0.5)
            axes.tick_params(axis="y", length=0)
        look = {"loc": "left", "fontsize": 9.5, "fontweight": "bold"}
        exchange = "\nExchange in {} with one other sentence"
        upper.set_title(
            "Rank correlation with the attention moved" + exchange.format("queries and keys"), **look
        )
        lower.set_title("Networks whose strongest part is named" + exchange.format("the keys"), **look)
        lower.set_xlim(0, 1.02)
        lower.set_xticks([0, BY_CHANCE, 2 / 3, 1], ["none", "by chance", "two thirds", "all"])
        upper.set_xlim(right=1.02)
    return figure
