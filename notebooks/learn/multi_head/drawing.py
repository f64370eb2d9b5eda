"""Networks of several heads, by how their heads start: a curve a network."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from attnlib.plots.style import style
from companion.results.result import Result
from notebooks.shared.copying_drawing import curves

DRAWN, AWAY = "#0072b2", "#d55e00"
SCENARIO_LOOKS = {
    "single": ("one head, one body", "#999999"),
    "all_bad": ("all heads bad", "#d55e00"),
    "copied": ("one bad head, copied", "#e69f00"),
    "one_good": ("one head good", "#0072b2"),
    "alone": ("one head, any body", "#999999"),
    "random": ("heads at random, any body", "#009e73"),
}


def weights(result: Result) -> Figure:
    """Weight of single heads on the word to be said, over that of uniform attention; a line a run."""
    with style():
        figure = Figure(figsize=(7.4, 3.0))
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, scenario in zip(panels, ("single", "alone"), strict=True):
            axes.axhline(1, color="#777777", lw=0.9, ls="--", zorder=0)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            for course in _courses(result, scenario):
                relative = [row["attention_right"] * result.config["length"] for row in course]
                colour = DRAWN if relative[-1] >= 1 else AWAY
                axes.plot([row["steps"] for row in course], relative, color=colour, lw=1.0, alpha=0.75)
            axes.set_title(SCENARIO_LOOKS[scenario][0], fontsize=9)
            axes.set_xlabel("updates")
        panels[0].set_ylabel("weight on the word to be\nsaid, over uniform")
        handles = [Line2D([], [], color=colour) for colour in (DRAWN, AWAY)]
        figure.legend(
            handles, ["ends above uniform", "ends below"], loc="outside upper center", ncols=2, frameon=False,
            fontsize=9,
        )  # fmt: skip
    return figure


def _courses(result: Result, scenario: str) -> list[list[dict]]:
    """Rows of each network of a scenario."""
    runs: dict[tuple, list[dict]] = {}
    for row in result.tables["courses"]:
        if row["scenario"] == scenario:
            runs.setdefault((row["heads"], row["body"], row["seed"]), []).append(row)
    return list(runs.values())


def scenarios(result: Result, name: str = "accuracy") -> Figure:
    """A panel a scenario, first those that stand in one body; networks are judged at the upright line.

    Args:
        name: column of the courses, ``accuracy`` or ``attention_accuracy``.
    """
    with style():
        figure = Figure(figsize=(7.4, 4.4))
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for axes, (scenario, (label, colour)) in zip(panels.flat, SCENARIO_LOOKS.items(), strict=True):
            axes.axhline(0.95, color="#bbbbbb", lw=0.8, ls=":", zorder=0)
            look = {"color": colour, "lw": 1.1, "alpha": 0.75}
            if result.config["followed"] > result.config["steps"]:
                axes.axvline(result.config["steps"], color="#bbbbbb", lw=0.8, zorder=0)
            for heads in dict.fromkeys(
                row["heads"] for row in result.tables["courses"] if row["scenario"] == scenario
            ):
                curves(axes, result, name, look, label, scenario=scenario, heads=heads)
            axes.set_title(label, fontsize=9)
            axes.set_ylim(-0.03, 1.03)
        for axes in panels[1]:
            axes.set_xlabel("updates")
        for axes in panels[:, 0]:
            axes.set_ylabel(name.replace("_", " "))
    return figure
