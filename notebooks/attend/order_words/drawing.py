"""One word exchanged for another: the attention of a pair of sentences, and the routes of its change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.marks import Mark, dot, matrix, rule
from notebooks.shared.style import INK, PART_COLOURS, Dot, style, task_name

INPUT, RESIDUAL = PART_COLOURS["input"], PART_COLOURS["residual"]
WIDTH = 3.75  # inches, which a telephone shows whole
SWAPS = {
    "join": "and ↔ after",
    "opening": "opening: staying ↔ reversing",
    "modifier": "modifier: staying ↔ swapping",
    "times": "twice ↔ thrice",
    "manner": "opposite ↔ around",
    "opening_within": "opening, same class",
    "modifier_within": "modifier, same class",
    "head": "head ↔ head",
    "verb": "verb ↔ verb",
    "direction": "left ↔ right",
}
ROUTES = {
    "encoder_context": Mark("other words' memory (encoder Δ)", RESIDUAL),
    "encoder_input": Mark("its own input component (encoder χ)", INPUT),
    "encoder_residual": Mark("its own residual (encoder Δ)", RESIDUAL, filled=False),
    "decoder_residual": Mark("decoder's memory (Δ)", RESIDUAL, "s"),
    "decoder_input": Mark("word read (decoder χ)", INPUT, "s", filled=False),
}
LEADING = (
    ("scan", "join"),
    ("reordering_50", "opening"),
    ("reordering_50", "modifier"),
)  # exchanges of the first figure
ARROW = {"arrowstyle": "->", "color": INK, "lw": 0.9, "shrinkB": 4}
MAIN = ("encoder_context", "encoder_input")  # routes that are named in the first figure
OTHERS = "#999999"
NOTES = (  # exchange, route, what is said of it, where along the axis and how far above the row
    (("scan", "join"), "encoder_context", "through other words' memory", (0.62, 0.45)),
    (("scan", "join"), "decoder_residual", "small: three other routes", (0.42, -0.42)),
    (("reordering_50", "modifier"), "encoder_context", "other words' memory", (0.24, 0.45)),
    (("reordering_50", "modifier"), "encoder_input", "its own\ninput component", (0.83, 0.35)),
)


@dataclass(frozen=True, eq=False)
class Run:
    """One sentence and where a network attends while it translates."""

    source: list[str]
    predicted: list[str]
    attention: Float[np.ndarray, "step source"]

    @classmethod
    def of(cls, rows: pd.DataFrame) -> "Run":
        """Read a run from its rows of the table of examples, one a step."""
        weights = [[float(weight) for weight in row.split()] for row in rows["attention"]]
        return cls(
            rows["source"].iloc[0].split(), [in_short(word) for word in rows["predicted"]], np.array(weights)
        )


def in_short(word: str) -> str:
    """Return a word as it is written beside a matrix."""
    return "end" if word == "<eos>" else word.removeprefix("I_").replace("_", " ")


def swaps_of(result: Result, task: str, kinds: Sequence[str] = ("order", "count", "content")) -> list[str]:
    """Exchanges of a task's words, of these kinds."""
    measured = next(iter(result.values[task].values()))
    return [swap for swap in SWAPS if swap in measured and measured[swap]["kind"] in kinds]


def leading_exchanges(result: Result, kind: str) -> list[tuple[str, str]]:
    """The exchanges of the first figure that were measured of a kind of network: task and swap."""
    return [(task, swap) for task, swap in LEADING if swap in (result.values.get(task) or {}).get(kind, {})]


def example_and_routes(result: Result, kind: str) -> Figure:
    """Draw one pair of sentences, and below it the routes of three exchanges."""
    task = "scan" if "scan" in result.values else tasks_of(result)[0]
    swap = swaps_of(result, task, ("order",))[0]
    with style():
        figure = Figure(figsize=(WIDTH, 6.3))
        above, below = figure.subfigures(2, 1, height_ratios=(3.8, 2.5))
        panels, second = draw_example(above, result, (task, kind, swap), columns=1)
        if task == "scan":
            fork = second.attention[0].argmax()
            panels[1].annotate(
                "at the fork\nit jumps",
                (fork - 0.4, 0),
                (1, 0),
                fontsize=9,
                ha="center",
                va="center",
                arrowprops=ARROW,
            )
        draw_routes(below, result, kind)
    return figure


def draw_example(
    figure: Figure | SubFigure, result: Result, names: tuple[str, str, str], columns: int = 2
) -> tuple[Sequence[Axes], Run]:
    """Draw the attention before and after an exchange.

    ``names`` are the task, the kind of network and the swap. Returns the panels, and the run after it.
    """
    rows = pd.DataFrame(result.tables["examples"])
    task, kind, swap = names
    rows = rows[(rows["task"] == task) & (rows["kind"] == kind) & (rows["swap"] == swap)]
    rows = rows.sort_values("target_position")
    before, after = (Run.of(rows[rows["run"] == run]) for run in ("first", "second"))
    place = int(rows["position"].iloc[0])
    panels = figure.subplots(2 // columns, columns)
    draw_run(panels[0], before, place, f"with “{before.source[place]}”")
    draw_run(panels[1], after, place, f"with “{after.source[place]}”")
    panels[0].set_ylabel("next word to write", fontsize=9.5)
    return panels, after


def draw_run(axes: Axes, run: Run, place: int, title: str, **look: object):
    """Draw the attention of a run, the exchanged word bold."""
    image = matrix(axes, run.attention, **look)
    axes.set_xticks(
        range(len(run.source)), [in_short(word) for word in run.source], rotation=90, fontsize=8.5
    )
    axes.set_yticks(range(len(run.predicted)), run.predicted, fontsize=8.5)
    axes.get_xticklabels()[place].set_fontweight("bold")
    axes.set_title(title, fontsize=9.5)
    axes.spines[:].set_visible(True)
    return image


def draw_routes(figure: SubFigure, result: Result, kind: str) -> None:
    """Draw a row for each leading exchange: through which part of which state scores change at the fork."""
    axes = figure.subplots()
    exchanges = leading_exchanges(result, kind)[::-1]
    for place, (task, swap) in enumerate(exchanges):
        rule(axes, place)
        by_route = result.values[task][kind][swap]["routes"]["fork"]
        for name in ROUTES:
            if name not in MAIN:
                dot(axes, by_route[name], place, OTHERS, filled=False, ms=3.5, bar={"lw": 0.8})
        for name in MAIN:
            dot(axes, by_route[name], place, ROUTES[name].colour, ms=6)
    for (task, swap), route, words, (x, above) in NOTES:
        if (task, swap) in exchanges:
            place = exchanges.index((task, swap))
            value = result.values[task][kind][swap]["routes"]["fork"][route]["value"]
            axes.annotate(
                words,
                (value, place),
                (x, place + above),
                fontsize=9,
                ha="center",
                va="center",
                arrowprops=ARROW,
            )
    axes.set_yticks(
        range(len(exchanges)),
        [f"{task_name(task)}\n{SWAPS[swap].partition(':')[0]}" for task, swap in exchanges],
    )
    axes.set_ylim(-0.6, len(exchanges) - 0.2)
    axes.set_xlim(-0.05, 1.03)
    axes.set_xlabel("share of the change of the scores")


def dots_of(marks: Mapping[str, Mark], key: str) -> list[Dot]:
    """Make of each mark a dot at a key, in which ``{}`` is the name of the mark."""
    return [
        Dot(key.format(name), mark.label, mark.colour, mark.marker, open=not mark.filled)
        for name, mark in marks.items()
    ]


def kinds_in(result: Result) -> list[str]:
    """Kinds of network, in the order of the tasks."""
    return list(dict.fromkeys(kind for _, kind, _ in kinds_of(result)))
