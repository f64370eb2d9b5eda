"""Accuracy with parts of the context, or a whole path to the output, dropped."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import error_bar, grid
from notebooks.shared.style import ARROW, INK, PART_COLOURS, network_name, task_name

ROWS = {  # key → what is kept, colour
    "full": ("everything", INK),
    "context_only_temporal": ("attention delivers position μ only", PART_COLOURS["temporal"]),
    "context_only_input": ("… the word χ only", PART_COLOURS["input"]),
    "context_only_residual": ("… memory Δ only", PART_COLOURS["residual"]),
    "context_none": ("… nothing", INK),
    "decoder_none": ("no decoder state", INK),
}
TITLES = {"multi30k_en_fr": "captions, English to French"}
NOTES = {  # task → what to see, at which row, how far below
    "one_to_one": ("the word\nis enough", "context_only_input", 0.9),
    "multi30k_en_fr": ("the decoder's\nstate matters", "decoder_none", -0.9),
    "scan": ("the word is not\nenough here", "context_only_input", 0.9),
}


def what_is_kept(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw the accuracy of the first kind of network of each task, a panel a task."""
    kinds = {task: next(iter(result.values[task])) for task in tasks}
    with grid(1, max(len(tasks), 2), size=(8.6, 3.1), sharey=True) as (figure, (panels,)):
        for axes, (task, kind) in zip(panels, kinds.items(), strict=False):
            draw_task(axes, result.values[task][kind], task)
        panels[0].set_yticks(range(len(ROWS)), [label for label, _ in ROWS.values()])
        figure.suptitle(network_name(kinds[tasks[-1]]), fontsize=10)
    return figure


def draw_task(axes: Axes, network: Mapping, task: str) -> None:
    """Draw a bar for each part that is kept; the dotted line is the accuracy by chance."""
    axes.axvline(chance_of(network), color=INK, lw=0.8, ls=":")
    accuracy = network["accuracy"]["zero"]
    for place, (key, (_, colour)) in enumerate(ROWS.items()):
        face = "white" if colour == INK else colour
        axes.barh(place, accuracy[key]["value"], height=0.62, facecolor=face, edgecolor=colour, lw=0.9)
        error_bar(axes, accuracy[key], place, INK, lw=1.2)
    if task in NOTES:
        text, key, below = NOTES[task]
        place = list(ROWS).index(key)
        written = (1.12, place + below)
        axes.annotate(
            text, (accuracy[key]["value"], place), written, va="center", fontsize=9, arrowprops=ARROW
        )
    axes.set_title(TITLES.get(task, task_name(task)), fontsize=10, loc="left")
    axes.set_xlim(0, 1.75)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_ylim(len(ROWS) - 0.5, -0.5)
    axes.set_xlabel("% of words correct")


def chance_of(network: Mapping) -> float:
    """The accuracy of the most frequent word: a number, or an estimate over networks."""
    chance = network["chance"]
    return chance["value"] if isinstance(chance, dict) else chance
