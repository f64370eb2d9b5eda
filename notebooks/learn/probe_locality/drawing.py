"""What single positions would say about the label, update by update."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import grid, range_of_runs, rule
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, PURPLE, SKY

PLACES = {  # position → label, colour, line style
    "keyword": ("at the keyword", PURPLE, "-"),
    "next": ("one after it", AMBER, "-"),
    "last": ("last position", GREEN, "-"),
    "first": ("first position", SKY, "--"),
    "mean": ("mean over positions", INK, ":"),
}
DOZEN = 12  # updates in which the keyword alone counts


def locality_courses(courses: pd.DataFrame, *, annotated: bool = False) -> Figure:
    """Draw γ by update: left the start alone, right all of the training."""
    steps = sorted(set(courses["step"]))
    third = min(60, steps[-1] // 3)
    start = min(step for step in steps if step >= third)
    with grid(1, 2, size=(8.6, 3.7)) as (figure, ((left, right),)):
        draw_courses(left, courses[courses["step"] <= start])
        left.set_title("the first updates", loc="left")
        draw_courses(right, courses)
        right.set_title("all of the training", loc="left")
        left.set_ylabel("log odds of the correct label, γ")
        if annotated:
            means = courses.groupby("step").mean(numeric_only=True)
            note = {"textcoords": "axes fraction", "arrowprops": ARROW}
            early, late = means["keyword"][DOZEN], means["last"][steps[-1]]
            left.annotate("at first only the\nkeyword counts", (DOZEN, early), (0.03, 0.8), **note)
            right.annotate(
                "the end of the sequence\nrises, too", (steps[-1] * 0.8, late), (0.33, 0.12), **note
            )
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside upper center", ncols=5, frameon=False, columnspacing=1.2, fontsize=9.5,
        )  # fmt: skip
    return figure


def draw_courses(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw means over networks of each position, over a band from the lowest to the highest."""
    for place, (label, colour, line) in PLACES.items():
        range_of_runs(axes, courses.groupby("step")[place], colour, alpha=0.15)
        means = courses.groupby("step")[place].mean()
        axes.plot(means.index, means, color=colour, ls=line, lw=1.6, label=label)
    rule(axes, 0, "#cccccc")
    axes.set_xlabel("updates")


def overtaken(courses: pd.DataFrame) -> int | None:
    """The update from which the position at an end is ahead of the keyword's; None where it never is."""
    means = courses.groupby("step").mean(numeric_only=True)
    ahead = means[means[["first", "last"]].max(axis="columns") > means["keyword"]]
    later = ahead.index[ahead.index > DOZEN]
    return None if later.empty else later[0]
