"""Networks that learn to copy, a curve each: they learn to look at the correct word, or away from it."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import grid, scale_by_uniform
from notebooks.shared.style import AMBER, ARROW, INK, PURPLE, curves
from notebooks.shared.thresholds import enough

WIDTH = 3.75  # inches, which a telephone shows whole
WAYS = {  # which way a network's attention goes → colour, label
    "drawn": (PURPLE, "learns to look at the correct word"),
    "away": (AMBER, "learns to look away from it"),
    None: ("#777777", "neither"),
}
ENDS = {  # way → colour of a text, points above the curves' end, what they do there
    "drawn": (PURPLE, -4, "look at\nthe correct word"),
    "away": ("#8f6200", -6, "look\neverywhere else"),
}


def two_ways(result: Result, kind: str) -> Figure:
    """Draw weight on the correct word, in multiples of uniform attention, and accuracy below it."""
    courses, judged = courses_of(result, kind), result.config["steps"]
    with grid(2, 1, size=(WIDTH, 5.4), sharex=True) as (figure, ((above,), (below,))):
        for way, (colour, _) in WAYS.items():
            networks = courses[courses["way"].isna() if way is None else courses["way"] == way]
            look = {"color": colour, "lw": 1.3, "alpha": 0.8}
            curves(below, networks, "accuracy", **look)
            curves(above, networks, "weight", **look)
        for axes in (above, below):
            axes.axvline(judged, color=INK, lw=0.9, ls=":", zorder=0)
        scale_by_uniform(above)
        name_ways(above, courses)
        above.set_ylabel("weight on the next word,\ntimes uniform attention's")
        below.set_ylim(-0.03, 1.04)
        below.set_xlabel("updates")
        below.set_ylabel("accuracy on new sentences")
        annotate_failures(below, courses, judged)
    return figure


def courses_of(result: Result, kind: str) -> pd.DataFrame:
    """Courses of networks that learn attention on a kind of sentences, with way and relative weight."""
    courses, outcomes = (pd.DataFrame(result.tables[name]) for name in ("courses", "outcomes"))
    courses = courses[(courses["kind"] == kind) & (courses["network"] == "learned")]
    outcomes = outcomes[(outcomes["kind"] == kind) & (outcomes["network"] == "learned")]
    way = outcomes.set_index("seed")["way"]
    weight = result.config["length"] * courses["attention_right"]
    return courses.assign(way=courses["seed"].map(way), weight=weight)


def annotate_failures(axes: Axes, courses: pd.DataFrame, judged: int) -> None:
    """Say how many networks fail when they are judged, and that all copy later."""
    last = courses["steps"].max()
    late = courses[(courses["steps"] == judged) & ~courses["accuracy"].map(enough)]
    if late.empty or last <= judged:
        return
    text = f"judged here,\n{len(late)} networks\nhave failed …"
    axes.annotate(
        text, (judged, late["accuracy"].min()), (judged + 0.09 * last, 0.3), arrowprops=ARROW, va="center"
    )
    text, written = "… but all copy\nin the end", ("axes fraction", "data")
    axes.annotate(text, (last * 0.82, 0.99), (0.64, 0.62), textcoords=written, arrowprops=ARROW, va="center")


def name_ways(axes: Axes, courses: pd.DataFrame) -> None:
    """Write at the right ends of the curves where their networks look."""
    ends = {
        "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right", "va": "top",
    }  # fmt: skip
    axes.annotate("uniform attention", (0.98, 1), (0, -3), **ends)
    last = courses[courses["steps"] == courses["steps"].max()]
    by_way = last.groupby("way")["weight"].agg(["median", "size"])
    for way, (colour, above, text) in ENDS.items():
        if way in by_way.index:
            height, networks = by_way.loc[way]
            text = f"{networks:.0f} {text}"
            axes.annotate(text, (0.98, height), (0, above), color=colour, weight="bold", **ends)
