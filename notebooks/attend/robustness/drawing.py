"""The headline at every setting: levels of factors by name, and its two halves as differences."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import dot, grid, rule
from notebooks.shared.style import INK, PART_COLOURS, blank
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
HALVES = {  # of the headline, as differences → its name, colour, marker, and shift within a row
    "temporal_share_leads_scan": ("share of position:\none-to-one minus SCAN", BLUE, "o", 0.16),
    "temporal_beats_input": ("attention rebuilt on one-to-one:\nby position minus by word", INK, "D", -0.16),
}
TITLE_AT = -0.4  # of the width of the panel: above the names of rows
NARROW = 4.7  # inches, which a telephone shows nearly whole
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"

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
        return "no change"
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
    """Draw both halves of the headline at every setting, as differences."""
    if all(row["value"] is None for row in rows):
        return blank()
    settings = list(dict.fromkeys((row["factor"], row["level"]) for row in rows))[::-1]
    names = [setting_name(factor, level) for factor, level in settings]
    clear = all(row["clearly"] for row in rows)
    with grid(1, 1, size=(NARROW, 0.25 * len(settings) + 1.8)) as (figure, ((axes,),)):
        axes.axvline(0, color=INK, lw=0.8)
        for half in HALVES:
            draw_half(
                axes, [row for row in rows if row["half"] == half and row["value"] is not None], settings
            )
        for place in range(len(settings)):
            rule(axes, place)
        axes.set_xlim(min(-0.05, axes.get_xlim()[0]), max(0.9, axes.get_xlim()[1]))
        axes.set_xlabel("difference, mean over networks", fontsize=9)
        axes.set_yticks(range(len(settings)), names, fontsize=8.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        if clear:
            axes.set_title("Both differences are above zero in every row", loc="left", x=TITLE_AT)
        figure.legend(loc="outside upper center", ncols=1, frameon=False, fontsize=9)
    return figure


def draw_half(axes: Axes, rows: Sequence[Row], settings: Sequence[Setting]) -> None:
    """Draw one half of the headline at settings from below up."""
    for row in rows:
        _, colour, marker, shift = HALVES[row["half"]]
        place = settings.index((row["factor"], row["level"])) + shift
        dot(axes, row, place, colour, marker=marker, ms=5, bar={"lw": 1.4})
    for half in {row["half"] for row in rows}:
        name, colour, marker, _ = HALVES[half]
        axes.plot([], [], marker, color=colour, ms=5, label=name)
