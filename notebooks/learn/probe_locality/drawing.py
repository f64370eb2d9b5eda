"""What single positions would say about the label, update by update."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from notebooks.shared.marks import apart, grid, name_ends, range_of_runs, rule
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, PURPLE, SKY

PLACES = {  # position → label, colour, line style
    "keyword": ("at the keyword", PURPLE, "-"),
    "next": ("one after it", AMBER, "-"),
    "last": ("last position", GREEN, "-"),
    "first": ("first position", SKY, "--"),
    "mean": ("mean of all", INK, ":"),
}
INKS = {"next": "#8a6400", "first": "#1f78a8"}  # of names whose lines are too pale for letters
NARROW = 4.7  # inches, which a telephone shows whole
DOZEN = 12  # updates in which the keyword alone counts


def locality_courses(courses: pd.DataFrame, *, annotated: bool = False) -> Figure:
    """Draw γ by update: above the start alone, below all of the training, less the keyword's."""
    steps = sorted(set(courses["step"]))
    third = min(60, steps[-1] // 3)
    start = min(step for step in steps if step >= third)
    with grid(2, 1, size=(NARROW, 6.2)) as (figure, panels):
        above, below = panels.flat
        draw_courses(above, courses[courses["step"] <= start])
        behind = less_keyword(courses)
        draw_networks(below, behind)
        for axes, title in ((above, "The first updates"), (below, "All of the training")):
            axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
        above.set_ylabel("log odds of the correct label")
        below.set_ylabel("log odds, relative to the keyword")
        name_ends_of(above, courses[courses["step"] <= start])
        name_ends_of(below, behind)
        below.set_xlabel("updates")
        if annotated:
            early = courses.groupby("step").mean(numeric_only=True)["keyword"][DOZEN]
            above.annotate(
                "at first only the\nkeyword knows", (DOZEN, early), (0.03, 0.78),
                textcoords="axes fraction", fontsize=9, arrowprops=ARROW,
            )  # fmt: skip
    return figure


def name_ends_of(axes: Axes, courses: pd.DataFrame) -> None:
    """Write the name of each position beside the end of its line."""
    means, end = courses.groupby("step").mean(numeric_only=True), courses["step"].max()
    ends = {
        label: (means[place].iloc[-1], INKS.get(place, colour))
        for place, (label, colour, _) in PLACES.items()
    }
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) / 10)  # names that make room for each other move up
    closest = (high - low) / 14
    for bundle in bundles({name: height for name, (height, _) in ends.items()}, closest):
        named = {name: (height, ends[name][1]) for name, height in bundle.items()}
        name_ends(axes, named, end, closest=closest, away=9, fontsize=9)
        heights = [height for height, _ in (ends[name] for name in bundle)]
        if len(bundle) > 1 and max(heights) - min(heights) < closest / 2:  # a bracket: their lines coincide
            reach = [min(bundle.values()) - closest / 3, max(bundle.values()) + closest / 3]
            axes.plot([0.98, 0.98], reach, color=INK, lw=0.8, transform=axes.get_yaxis_transform())


def bundles(heights: dict[str, float], closest: float) -> list[dict[str, float]]:
    """Spread the names of lines that end close together around the middle of these ends, bundle by bundle.

    >>> bundles({"last": 9.5, "keyword": 9.25, "next": 4.0}, 1.0)
    [{'next': 4.0}, {'keyword': 8.875, 'last': 9.875}]
    """
    moved = apart(heights, closest)
    together: list[list[str]] = []
    for name, height in moved.items():  # the lowest first
        if together and height - moved[together[-1][-1]] <= closest * (1 + 1e-9):
            together[-1].append(name)
        else:
            together.append([name])
    shifts = [sum(moved[name] - heights[name] for name in names) / len(names) for names in together]
    return [
        {name: moved[name] - shift for name in names} for names, shift in zip(together, shifts, strict=True)
    ]


def draw_courses(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw means over networks of each position, over a band from the lowest to the highest."""
    for place, (label, colour, line) in PLACES.items():
        range_of_runs(axes, courses.groupby("step")[place], colour, alpha=0.15)
        means = courses.groupby("step")[place].mean()
        axes.plot(means.index, means, color=colour, ls=line, lw=1.6, label=label)
    rule(axes, 0, "#cccccc")


def less_keyword(courses: pd.DataFrame) -> pd.DataFrame:
    """Return the courses of all positions, each minus the course of the keyword in the same network."""
    return courses.assign(**{place: courses[place] - courses["keyword"] for place in PLACES})


def draw_networks(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw means over networks of each position, and single networks as thin lines."""
    for place, (label, colour, line) in PLACES.items():
        for _, network in courses.groupby("seed"):
            axes.plot(network["step"], network[place], color=colour, ls=line, lw=0.6, alpha=0.45)
        means = courses.groupby("step")[place].mean()
        axes.plot(means.index, means, color=colour, ls=line, lw=1.8, label=label)


def overtaken(courses: pd.DataFrame) -> int | None:
    """The update from which both ends are ahead of the keyword on average; None where they never are."""
    means = courses.groupby("step").mean(numeric_only=True)
    ahead = means[means[["first", "last"]].min(axis="columns") > means["keyword"]]
    later = ahead.index[ahead.index > DOZEN]
    return None if later.empty else later[0]
