"""Networks of several heads, by how their heads start: a curve a network."""

from matplotlib.figure import Figure

from attnlib.experiments.result import Result
from attnlib.plotting.copying import curves
from attnlib.plotting.style import style

SCENARIO_LOOKS = {
    "single": ("one head, one body", "#999999"),
    "all_bad": ("all heads bad", "#d55e00"),
    "one_good": ("one head good", "#0072b2"),
    "alone": ("one head, any body", "#999999"),
    "random": ("heads at random, any body", "#009e73"),
}


def scenarios(result: Result, name: str = "accuracy") -> Figure:
    """A panel a scenario, first those that stand in one body; networks are judged at the upright line.

    Args:
        name: column of the courses, ``accuracy`` or ``attention_accuracy``.
    """
    with style():
        figure = Figure(figsize=(10.2, 2.6))
        panels = figure.subplots(1, len(SCENARIO_LOOKS), sharex=True, sharey=True)
        for axes, (scenario, (label, colour)) in zip(panels, SCENARIO_LOOKS.items(), strict=True):
            axes.axhline(0.95, color="#bbbbbb", lw=0.8, ls=":", zorder=0)
            look = {"color": colour, "lw": 1.1, "alpha": 0.75}
            if result.config["followed"] > result.config["steps"]:
                axes.axvline(result.config["steps"], color="#bbbbbb", lw=0.8, zorder=0)
            for heads in dict.fromkeys(
                row["heads"] for row in result.tables["courses"] if row["scenario"] == scenario
            ):
                curves(axes, result, name, look, label, scenario=scenario, heads=heads)
            axes.set_title(label, fontsize=9)
            axes.set_xlabel("updates")
            axes.set_ylim(-0.03, 1.03)
        panels[0].set_ylabel(name.replace("_", " "))
    return figure
