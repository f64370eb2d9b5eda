"""Links that attention gets wrong, whole and rebuilt from some of its terms."""

from matplotlib.figure import Figure

from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.style import (
    ARROW,
    INK,
    PART_COLOURS,
    Dot,
    at,
    dot_rows,
    network_name,
    style,
    task_name,
    write_labels,
)

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
REMARKS = {  # task → words, what they point to, their place across
    "reversal": ("learned, looking elsewhere", "attention.full", 0.38),
    "reordering_100": ("without residuals\nthe links are lost", "attention.no_residual", 0.5),
    "europarl_de_en": ("hardly better\nthan a diagonal", "attention.full", 0.2),
}
NAMED = "reordering_50"  # in the row of this task each point has its name


def dots_of(rate: str) -> list[Dot]:
    """A dot for each attention and aligner, at a rate of its links."""
    return [Dot(f"{key}.{rate}", *look) for key, look in STYLES.items()]


def error_rates(result: Result) -> Figure:
    """Draw error rates of the first kind of network, a row for each task, with remarks."""
    kind = next((kind for _, kind, _ in kinds_of(result)), "")
    tasks = [task for task in tasks_of(result) if kind in result.values[task]]
    figure = dot_rows(
        result,
        {network_name(kind): dots_of("error_rate")},
        xlabel="alignment error rate (0: all links correct)",
        xlim=FRAME,
        rows=[(task_name(task), result.values[task][kind]) for task in tasks],
        legend=[] if NAMED in tasks else None,
        row_height=0.58,
        columns=3,
    )
    figure.set_figwidth(7.6)
    with style():
        for place, task in enumerate(reversed(tasks)):
            if task == NAMED:
                name_points(figure, result.values[task][kind], place)
            if task in REMARKS:
                remark(figure, result.values[task][kind], task, place)
    return figure


def name_points(figure: Figure, numbers: dict, place: int) -> None:
    """Write the name of each attention and aligner beside its point in the row at a place."""
    rates = {key: at(numbers, f"{key}.error_rate") for key in STYLES}
    labels = [
        (rates[key]["value"], place + shift, label, colour)
        for key, (label, colour, _, _, shift) in STYLES.items()
        if rates[key]
    ]
    write_labels(figure.axes[0], labels, size=9)


def remark(figure: Figure, numbers: dict, task: str, place: int) -> None:
    """Write what is remarkable of a task, if its rate was measured."""
    words, key, across = REMARKS[task]
    rate = at(numbers, f"{key}.error_rate")
    if rate:
        *_, shift = STYLES[key]
        figure.axes[0].annotate(
            words, (rate["value"], place + shift), (across, place + 0.1),
            fontsize=9, ha="center", va="center", arrowprops=ARROW,
        )  # fmt: skip
