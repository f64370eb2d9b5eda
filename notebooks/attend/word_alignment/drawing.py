"""Links that attention gets wrong, whole and rebuilt from some of its terms."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.marks import dot, grid, key_above, rule
from notebooks.shared.style import INK, PART_COLOURS, Dot, at, blank, network_name, task_name

# Neither aligner has parts: a green and a purple that no part of a state has.
ALIGNER_COLOURS = {"ibm_model_1": "#009e73", "diagonal": "#aa4499"}
FRAME = (-0.05, 1.05)  # of rates, with room for their intervals
STYLES = {  # key → label, colour, marker, whether it is open, its place in a row
    "attention.full": ("full attention", INK, "o", False, 0.25),
    "attention.no_residual": ("without residuals", INK, "o", True, 0.15),
    "attention.temporal_only": ("temporal term μ·μ alone", PART_COLOURS["temporal"], "o", False, 0.05),
    "attention.input_only": ("input term χ·χ alone", PART_COLOURS["input"], "o", False, -0.05),
    "references.ibm_model_1": ("IBM Model 1", ALIGNER_COLOURS["ibm_model_1"], "D", False, -0.15),
    "references.diagonal": ("diagonal", ALIGNER_COLOURS["diagonal"], "D", True, -0.25),
}
ALIGNERS = ("references.ibm_model_1", "references.diagonal")  # which are not attention
NOT_ALIGNED = ("reversal", "europarl_de_en")  # tasks drawn last: in them full attention errs most
WIDTH = 4.7  # inches, which a telephone shows nearly whole


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
    with grid(1, 1, size=(WIDTH, 1.5 + 0.42 * len(tasks))) as (figure, ((axes,),)):
        for place, task in enumerate(tasks):
            rule(axes, place)
            draw_rates(axes, result.values[task][kind], place)
        axes.set_yticks(range(len(tasks)), [task_name(task) for task in tasks])
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.set_xlim(FRAME)
        axes.set_xlabel("alignment error rate (0: all links correct)")
        axes.set_title(
            f"{network_name(kind)}: links that are wrong", loc="left", fontsize=9.5, fontweight="bold"
        )
        key_above(figure, legend(), ncols=2, fontsize=8.5)
    return figure


def draw_rates(axes: Axes, numbers: dict, place: int) -> None:
    """Draw the rates of one network on its row: attention as points, the aligners as strokes."""
    for key, (_, colour, _, is_open, _) in reversed(STYLES.items()):
        rate = at(numbers, f"{key}.error_rate")
        if not rate:
            continue
        if key in ALIGNERS:
            line = "--" if is_open else "-"
            axes.plot(2 * [rate["value"]], [place - 0.3, place + 0.3], line, color=colour, lw=1.6, zorder=1)
        else:
            dot(axes, rate, place, colour, filled=not is_open, within=FRAME, ms=7, bar={"lw": 1.3})


def legend() -> list[Line2D]:
    """Return a point for each attention and a stroke for each aligner, with their names."""
    handles = []
    for key, (label, colour, _, is_open, _) in STYLES.items():
        if key in ALIGNERS:
            handles.append(Line2D([], [], ls="--" if is_open else "-", color=colour, lw=1.6, label=label))
        else:
            face = "white" if is_open else colour
            handles.append(
                Line2D([], [], ls="", marker="o", color=colour, markerfacecolor=face, ms=7, label=label)
            )
    return handles
