"""Networks that are pushed, frozen or given attention: where attention goes, and what comes later."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import Mark, dot, dots, grid, legend_of, scale_by_uniform, stripes
from notebooks.shared.style import AMBER, GREEN, INK, PURPLE, SKY, sentences_name

PUSHES = {"toward": PURPLE, "away": AMBER}
NAMES = {  # in a corner of the panel: its place and alignment, what it says, its colour
    "toward": ((0.98, 0.65), "pushed toward the correct word", PURPLE),
    "away": ((0.98, 0.05), "pushed away from it", "#8f6200"),
    "alone": ((0.98, 0.55), "grey: left alone", "#777777"),
}
ALONE = "#c4c4c4"  # curves of networks that nobody pushes
WIDTH = 8.6  # inches
NARROW = 3.75  # which a telephone shows whole
KINDS = ("permutation", "sample", "mixture")
INTERVENTIONS = {
    "alone": "left alone",
    "toward": "pushed toward",
    "away": "pushed away",
    "elsewhere": "pushed to another word",
    "anywhere": "pushed to any word",
    "late_toward": "pushed toward, later",
    "late_away": "pushed away, later",
    "readout": "readout frozen",
    "states": "states frozen",
    "words": "words frozen",
    "attention": "attention held",
    "late_readout": "readout frozen, later",
    "late_states": "states frozen, later",
    "late_words": "words frozen, later",
    "late_attention": "attention held, later",
    "gold": "attention given",
}
EVENTS = {
    "known": Mark("words known", PURPLE, "o", 0.22),
    "sure": Mark("words certain", SKY, "D", 0.0),
    "there": Mark("attention correct", AMBER, "s", -0.22),
}
FROZEN = {
    "words": "All but the queries frozen",
    "states": "States frozen",
    "readout": "Readout frozen",
    "attention": "Attention held uniform",
}
EARLY_AND_LATE = {"": Mark("", INK, shift=0.16), "late_": Mark("", INK, shift=-0.16, filled=False)}
TIMES = {
    "alone": Mark("attention learned", INK, "o", 0.12, filled=False),
    "gold": Mark("attention given", GREEN, "o", -0.12),
}
LOWEST = 0.01  # times uniform attention, the least weight that is drawn


def pushed_courses(result: Result) -> Figure:
    """Draw the weight on the correct word of networks pushed early, and of the same pushed later."""
    courses = pd.DataFrame(result.tables["courses"])
    courses = courses[courses["kind"] == "permutation"]
    config = result.config
    panels = (
        ("", config["push_from"], f"Pushed after {config['push_from']} updates: the push decides"),
        ("late_", config["late_from"], f"Pushed after {config['late_from']} updates: it hardly turns any"),
    )
    with grid(len(panels), 1, size=(NARROW, 5.6), sharex=True, sharey=True) as (figure, column):
        for axes, (prefix, start, title) in zip(column.flat, panels, strict=True):
            axes.axvspan(start, start + config["push_for"], color="#dddddd", lw=0, zorder=0)
            draw_weights(axes, courses[courses["intervention"] == "alone"], config["length"], ALONE)
            for push, colour in PUSHES.items():
                draw_weights(
                    axes, courses[courses["intervention"] == prefix + push], config["length"], colour
                )
            axes.set_title(title, loc="left", fontsize=10.5)
            axes.set_ylabel("weight on the next word,\ntimes uniform attention's")
            scale_by_uniform(axes)
        name_the_turned(column[-1, 0], courses, config["length"])
        for place, name, colour in NAMES.values():
            column[0, 0].text(
                *place, name, transform=column[0, 0].transAxes, color=colour, ha="right", fontsize=9
            )
        column[-1, 0].set_xlabel("updates")
        column[-1, 0].set_ylim(LOWEST, 1.3 * config["length"])
    return figure


def name_the_turned(axes: Axes, courses: pd.DataFrame, length: int) -> None:
    """Write beside the curve that a later push turned that it is the only one, if it is."""
    last = courses[courses["steps"] == courses["steps"].max()]
    sides = {
        (row["intervention"], row["seed"]): length * row["attention_right"] >= 1
        for row in last.to_dict("records")
    }
    turned = [
        (push, seed)
        for (push, seed), side in sides.items()
        if push in {f"late_{name}" for name in PUSHES} and side != sides.get(("alone", seed), side)
    ]
    if len(turned) != 1:
        return
    ((push, seed),) = turned
    course = courses[(courses["intervention"] == push) & (courses["seed"] == seed)].sort_values("steps")
    middle = course.iloc[len(course) // 2]
    axes.annotate(
        "the only one\nthat turned", (middle["steps"], length * middle["attention_right"]),
        (middle["steps"] + 14, 0.35), color=PUSHES[push.removeprefix("late_")], fontsize=9, va="center",
        arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.9},
    )  # fmt: skip


def draw_weights(axes: Axes, courses: pd.DataFrame, length: int, colour: str) -> None:
    """Draw the weight on the correct word, in multiples of uniform attention, a curve for each network."""
    for _, course in courses.groupby("seed", sort=False):
        weight = (length * course["attention_right"]).clip(lower=LOWEST)
        axes.plot(course["steps"], weight, color=colour, lw=1.2, alpha=0.75)


def delays(result: Result) -> Figure:
    """Draw by how much words and attention are later than in the same networks left alone.

    Filled points are of networks in which something is frozen from the start, hollow ones of the same later.
    """
    config = result.config
    with grid(len(FROZEN), 1, size=(NARROW, 6.4), sharex=True) as (figure, column):
        for axes, (name, title) in zip(column.flat, FROZEN.items(), strict=True):
            for (place, (event, mark)), (when, place_in_row) in product(
                enumerate(reversed(EVENTS.items())), EARLY_AND_LATE.items()
            ):
                dot(
                    axes, _later(result, f"{when}{name}")[event], place + place_in_row.shift, mark.colour,
                    marker=mark.marker, filled=place_in_row.filled, ms=6,
                )  # fmt: skip
            axes.axvspan(0, config["freeze_for"], color="#eeeeee", lw=0, zorder=0)
            axes.axvline(0, color=INK, lw=0.9, ls="--", zorder=0)
            axes.set_yticks(range(len(EVENTS)), [mark.label for mark in reversed(EVENTS.values())])
            axes.set_ylim(-0.6, len(EVENTS) - 0.4)
            axes.tick_params(axis="y", length=0)
            axes.set_title(title, loc="left", x=-0.33, fontsize=10)
        column[-1, 0].set_xlabel("updates later than left alone")
        when = ("frozen from the start", f"frozen from update {config['freeze_from']} on")
        legend_of(
            figure,
            [replace(mark, label=label) for mark, label in zip(EARLY_AND_LATE.values(), when, strict=True)],
            ncols=2,
        )
    return figure


def times_to_learn(result: Result) -> Figure:
    """Draw the updates until networks copy that learn attention, and that are given it, by kind."""
    kinds = {kind: sentences_name(kind, result) for kind in KINDS}
    times = {kind: _times(result.values[kind]) for kind in kinds}
    with grid(1, 1, size=(WIDTH, 2.3)) as (figure, ((axes,),)):
        draw_rows(axes, times, TIMES, kinds)
        axes.set_xlim(left=0)
        axes.set_xlabel("updates until 95 % of the words are correct")
        legend_of(figure, TIMES.values(), ncols=2)
    return figure


def draw_rows(
    axes: Axes, rows: Mapping[str, Mapping], marks: Mapping[str, Mark], names: Mapping[str, str]
) -> None:
    """Draw estimates in a row for each name, the first above."""
    stripes(axes, len(names))
    for place, name in enumerate(reversed(names)):
        dots(axes, rows[name], marks, place)
    axes.set_yticks(range(len(names)), reversed(names.values()))
    axes.set_ylim(-0.5, len(names) - 0.5)


def _later(result: Result, intervention: str) -> Mapping:
    return result.values["sample"][intervention]["later"]


def _times(of_kind: Mapping) -> dict[str, Mapping]:
    return {name: of_kind[name]["steps_to_learn"] for name in TIMES}
