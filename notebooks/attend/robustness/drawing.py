"""The headline at every setting: levels of factors by name, and its two halves as differences."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import dot, grid
from notebooks.shared.style import INK, PART_COLOURS
from notebooks.shared.summaries import level_key

BLUE = PART_COLOURS["temporal"]
FACTORS = {  # its name, and how one of its levels is called
    "cell": ("recurrent cell", "{} cell"),
    "width": ("width of the states", "width {}"),
    "weight_decay": ("weight decay", "weight decay {}"),
    "length": ("training length, times", "training × {}"),
    "n_words": ("number of words", "{} words in the task"),
    "embedding_scale": ("embedding scale", "embeddings of scale {}"),
    "clip": ("gradient norm, at most", "gradients clipped at {}"),
}
HALVES = {  # of the headline, as differences → title
    "temporal_share_leads_scan": "temporal share μ·μ:\none-to-one less SCAN",
    "temporal_beats_input": "one-to-one, attention rebuilt:\nby position less by word",
}
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
ARROW = {"arrowstyle": "->", "color": INK, "lw": 0.9, "shrinkB": 4}

Row = Mapping[str, object]  # of the table of settings: one half of the headline at one setting
Setting = tuple[str, str]  # a factor and its level


def level_name(level: str) -> str:
    """Write a level as ``LSTM``, ``10⁻⁵`` or a plain number."""
    if level == "vanilla":
        return level
    if level.isalpha():
        return level.upper()
    mantissa, _, power = f"{float(level):e}".partition("e-0")
    if float(mantissa) == 1 and power in "3456789" and power:
        return f"10⁻{SUPERSCRIPTS[int(power)]}"
    return level


def setting_name(factor: str, level: str) -> str:
    """Say what a setting has that the plan has not."""
    if factor == "plan":
        return "as planned"
    if factor == "running":
        return "running free"
    _, name = FACTORS[factor]
    return name.format(level_name(level))


def levels_of(result: Result, factor: str, task: str) -> list[tuple[str, bool, dict]]:
    """Levels of a factor that were measured on a task: label, whether it is the plan's, outcomes."""
    rows = [row for row in result.tables["points"] if row["factor"] == factor and row["task"] == task]
    planned = {row["level"]: row["planned"] for row in rows}
    outcomes = result.values["factors"].get(factor, {})
    return [(level, is_planned, outcomes[level_key(level)][task]) for level, is_planned in planned.items()]


def tasks_by_factor(result: Result) -> dict[str, list[str]]:
    """The tasks on which a factor has more than one level, for each factor that has any."""
    varied = {}
    for factor in dict.fromkeys(row["factor"] for row in result.tables["points"]):
        tasks = [task for task in result.config["task"] if len(levels_of(result, factor, task)) > 1]
        if tasks:
            varied[factor] = tasks
    return varied


def headline_by_setting(rows: Sequence[Row]) -> Figure:
    """Draw both halves of the headline at every setting, as differences; filled where clear of zero."""
    settings = list(dict.fromkeys((row["factor"], row["level"]) for row in rows))[::-1]
    names = [setting_name(factor, level) for factor, level in settings]
    with grid(1, 2, size=(8.6, 0.22 * len(settings) + 1.3), sharey=True) as (figure, (panels,)):
        for axes, (half, title) in zip(panels, HALVES.items(), strict=True):
            known = [row for row in rows if row["half"] == half and row["value"] is not None]
            draw_half(axes, known, settings)
            axes.set_title(title, fontsize=9.5)
            axes.set_xlabel("difference, mean over networks", fontsize=9)
            axes.set_yticks(range(len(settings)), names, fontsize=8.5)
            if known:
                point_at_smallest(axes, known, settings)
    return figure


def draw_half(axes: Axes, rows: Sequence[Row], settings: Sequence[Setting]) -> None:
    """Draw one half of the headline at settings from below up."""
    axes.axvline(0, color=INK, lw=0.8)
    for row in rows:
        place = settings.index((row["factor"], row["level"]))
        dot(axes, row, place, BLUE, filled=row["clearly"], ms=5.5, bar={"lw": 1.5})
    values = [row["value"] for row in rows]
    lowest = min([-0.25, *(value - 0.1 for value in values)])
    highest = max([1.0, *(value + 0.1 for value in values)])
    axes.set_xlim(lowest, highest)


def point_at_smallest(axes: Axes, rows: Sequence[Row], settings: Sequence[Setting]) -> None:
    least = min(rows, key=lambda row: row["value"])
    place = settings.index((least["factor"], least["level"]))
    axes.annotate(
        "the smallest\ndifference", (least["value"], place), (0.87, max(place - 4.5, 1)),
        fontsize=9, ha="center", va="center", arrowprops=ARROW,
    )  # fmt: skip
