"""Networks with several heads that learn to copy, a curve each, by scenario."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.results.result import Result
from notebooks.shared.marks import grid
from notebooks.shared.style import AMBER, ARROW, INK, PURPLE
from notebooks.shared.thresholds import BAD

WAYS = {"learns to look at the correct word": PURPLE, "learns to look away from it": AMBER}
NOTE = {"textcoords": "axes fraction", "arrowprops": ARROW, "va": "center", "fontsize": 9}
NARROW = 4.7  # inches, which a telephone shows nearly whole


def scenario_names(result: Result) -> dict[str, str]:
    """Say what each scenario is; first those of one network whose other parameters stay the same."""
    several = result.config["heads"]
    return {
        "single": "one head",
        "copied": f"one bad head, {several} copies",
        "all_bad": f"{several} bad heads",
        "one_good": f"1 good head, {several - 1} bad",
        "alone": "one head, each network drawn anew",
        "random": f"{several} heads, each network drawn anew",
    }


def accuracy_by_scenario(result: Result, names: Sequence[str], *, annotated: bool = False) -> Figure:
    """Draw a panel for each scenario, and in it a curve for each network in the colour of its way."""
    courses, judged = pd.DataFrame(result.tables["courses"]), result.config["steps"]
    titles = scenario_names(result)
    with grid(len(names), 1, size=(NARROW, 2.1 * len(names) + 0.5), sharex=True, sharey=True) as (
        figure,
        panels,
    ):
        for axes, name in zip(panels.flat, names, strict=True):
            draw_networks(axes, courses[courses["scenario"] == name], length=result.config["length"])
            axes.axvline(judged, color=INK, lw=0.9, ls=":", zorder=0)
            axes.set_title(titles[name], loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylim(-0.03, 1.03)
            axes.set_yticks([0, 0.5, 1], ["none", "half", "all"])
        panels.flat[0].set_ylabel("words correct")
        panels.flat[-1].set_xlabel("updates")
        if annotated:
            single = courses[(courses["scenario"] == "single") & (courses["steps"] == judged)]["accuracy"]
            annotate_panels(panels.flat, f"{(single < BAD).sum()} of {len(single)} heads\nare late", judged)
        lines = [Line2D([], [], color=colour) for colour in WAYS.values()]
        figure.legend(lines, list(WAYS), loc="outside upper center", ncols=1, frameon=False, fontsize=9)
    return figure


def draw_networks(axes: Axes, courses: pd.DataFrame, *, length: int) -> None:
    """Draw the accuracy of each network; its way is on whose side of uniform attention it ends."""
    for _, course in courses.groupby(["heads", "body", "seed"], sort=False):
        is_drawn = course["attention_right"].iloc[-1] * length >= 1
        axes.plot(
            course["steps"], course["accuracy"], color=PURPLE if is_drawn else AMBER, lw=1.2, alpha=0.75
        )


def annotate_panels(panels: Sequence[Axes], late: str, judged: int) -> None:
    """Say how many single heads are late, and what copies and a good head change."""
    single, copied, one_good = panels
    single.annotate(late, (judged, 0.45), (0.56, 0.18), **NOTE)
    copied.annotate("copies of any of\nthem are in time", (0.8 * judged, 0.93), (0.56, 0.5), **NOTE)
    one_good.annotate("a good head\nadds nothing", (0.8 * judged, 0.95), (0.56, 0.5), **NOTE)
