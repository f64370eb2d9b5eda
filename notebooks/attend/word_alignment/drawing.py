"""Links that attention gets wrong, whole and rebuilt from some of its terms."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.marks import dot, grid, rule
from notebooks.shared.style import INK, PART_COLOURS, Dot, at, blank, task_name

# Neither aligner has parts: a green and a purple that no part of a state has.
ALIGNER_COLOURS = {"ibm_model_1": "#009e73", "diagonal": "#aa4499"}
Point = tuple[str, str, str, bool]
TITLE_AT = -0.38  # of the width of a panel: above the names of rows
GREY = "#777777"
FRAME = (-0.05, 1.05)  # of rates, with room for their intervals
STYLES = {  # key → label, colour, marker, whether it is open, its place in a row
    "attention.full": ("full attention", INK, "o", False, 0.25),
    "attention.no_residual": ("without residuals", INK, "o", True, 0.15),
    "attention.temporal_only": ("temporal term μ·μ alone", PART_COLOURS["temporal"], "o", False, 0.05),
    "attention.input_only": ("input term χ·χ alone", PART_COLOURS["input"], "o", False, -0.05),
    "references.ibm_model_1": ("IBM Model 1", ALIGNER_COLOURS["ibm_model_1"], "D", False, -0.15),
    "references.diagonal": ("diagonal", ALIGNER_COLOURS["diagonal"], "D", True, -0.25),
}
NOT_ALIGNED = ("reversal", "europarl_de_en")  # tasks drawn last: in them full attention errs most
WIDTH = 3.75  # inches, which a telephone shows whole
PANELS = {  # title → key, name beside a point, colour, whether it is open
    "Attention aligns where the task is learned,\nexcept on reversal": (
        ("attention.full", "attention", INK, False),
        ("attention.no_residual", "no residuals", INK, True),
    ),
    "Alone, the position aligns on one task,\nthe word on none": (
        ("attention.temporal_only", "position", PART_COLOURS["temporal"], False),
        ("attention.input_only", "word", PART_COLOURS["input"], False),
    ),
}
NAMED_IN = "reordering_50"  # the row whose points have names, else the first
REMARKS = {"reversal": "learned, looks elsewhere", "europarl_de_en": "learned too little"}


def dots_of(rate: str) -> list[Dot]:
    """A dot for each attention and aligner, at a rate of its links."""
    return [Dot(f"{key}.{rate}", *look) for key, look in STYLES.items()]


def error_rates(result: Result) -> Figure:
    """Draw error rates of the first kind of network, a row for each task, those that it aligns above."""
    kind = next((kind for _, kind, _ in kinds_of(result)), "")
    tasks = sorted(
        (task for task in tasks_of(result) if kind in result.values[task]), key=NOT_ALIGNED.__contains__
    )
    if not tasks:
        return blank()
    with grid(2, 1, size=(WIDTH, 2.2 + 0.56 * len(tasks))) as (figure, panels):
        for axes, (title, points) in zip(panels.flat, PANELS.items(), strict=True):
            for place, task in enumerate(tasks):
                rule(axes, place)
                draw_rates(axes, result.values[task][kind], points, place)
            named = tasks.index(NAMED_IN) if NAMED_IN in tasks else 0
            name_points(axes, result.values[tasks[named]][kind], points, named)
            axes.set_yticks(range(len(tasks)), [task_name(task) for task in tasks])
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(len(tasks) - 0.5, -0.6)
            axes.set_xlim(FRAME)
            axes.set_xticks([0, 0.5, 1], ["none", "half", "all"])
            axes.set_title(title, loc="left", x=TITLE_AT)
        for place, task in enumerate(tasks):
            panels[0, 0].text(0, place, REMARKS.get(task, ""), va="center", fontsize=8.5, color=GREY)
        panels[1, 0].set_xlabel("links that are wrong")
    return figure


def draw_rates(axes: Axes, numbers: dict, points: Iterable[Point], place: int) -> None:
    """Draw the error rates of one network on its row."""
    for key, _, colour, is_open in points:
        rate = at(numbers, f"{key}.error_rate")
        if rate:
            dot(axes, rate, place, colour, filled=not is_open, within=FRAME, ms=7, bar={"lw": 1.3})


def name_points(axes: Axes, numbers: dict, points: Iterable[Point], place: int) -> None:
    """Write above each point of a row what it is."""
    for key, name, colour, _ in points:
        rate = at(numbers, f"{key}.error_rate")
        if rate and rate["value"] is not None:
            axes.annotate(
                name, (rate["value"], place), (0, 5), textcoords="offset points", color=colour,
                ha=anchor_within_frame(rate["value"]), va="bottom", fontsize=9,
            )  # fmt: skip


def anchor_within_frame(rate: float) -> str:
    """Return at which side of a name its point is, so that no name leaves the frame."""
    if rate < 0.2:
        return "left"
    if rate < 0.85:
        return "center"
    return "right"
