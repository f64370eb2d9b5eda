"""Accuracy with parts of the context, or a whole path to the output, dropped."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result
from notebooks.shared.marks import error_bar, grid
from notebooks.shared.style import INK, PART_COLOURS, network_name, task_name

ROWS = {  # key → what attention delivers, or what else is dropped; colour
    "full": ("everything", INK),
    "context_only_temporal": ("only position μ", PART_COLOURS["temporal"]),
    "context_only_input": ("only the word χ", PART_COLOURS["input"]),
    "context_only_residual": ("only memory Δ", PART_COLOURS["residual"]),
    "context_none": ("nothing", INK),
    "decoder_none": ("everything, but\nno decoder state", INK),
}
NARROW = 3.75  # inches, which a telephone shows whole
TITLE_AT = -0.36  # of the width of a panel
TITLES = {  # what is found of a task
    "one_to_one": "One-to-one: the word is enough",
    "multi30k_en_fr": "Captions: the word nearly is, but the\ndecoder’s own state is needed",
    "scan": "SCAN: the word is not enough",
}


def what_is_kept(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw the accuracy of the first kind of network of each task, a panel a task."""
    kinds = {task: next(iter(result.values[task])) for task in tasks}
    with grid(len(tasks), 1, size=(NARROW, 0.6 + 1.9 * len(tasks)), sharex=True) as (figure, panels):
        for axes, (task, kind) in zip(panels.flat, kinds.items(), strict=True):
            draw_task(axes, result.values[task][kind], task)
        panels[-1, 0].set_xlabel("words that stay correct, %")
        figure.suptitle(
            f"{network_name(kinds[tasks[-1]])}: attention delivers …", fontsize=10, x=0.02, ha="left"
        )
    return figure


def draw_task(axes: Axes, network: Mapping, task: str) -> None:
    """Draw a bar for each part that is kept; the dotted line is the accuracy by chance."""
    chance, accuracy = chance_of(network), network["accuracy"]["zero"]
    axes.axvline(chance, color=INK, lw=0.8, ls=":")
    for place, (key, (_, colour)) in enumerate(ROWS.items()):
        face = "white" if colour == INK else colour
        axes.barh(place, accuracy[key]["value"], height=0.66, facecolor=face, edgecolor=colour, lw=0.9)
        error_bar(axes, accuracy[key], place, INK, lw=1.2, within=(0, 1))
        written = f"{100 * accuracy[key]['value']:.0f}"
        axes.text(1.17, place, written, ha="right", va="center", fontsize=9)
    axes.set_title(TITLES.get(task, task_name(task)), loc="left", x=TITLE_AT)
    axes.set_yticks(range(len(ROWS)), [label for label, _ in ROWS.values()])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.18)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_ylim(len(ROWS) - 0.5, -0.5)


def chance_of(network: Mapping) -> float:
    """The accuracy of the most frequent word: a number, or an estimate over networks."""
    chance = network["chance"]
    return chance["value"] if isinstance(chance, dict) else chance
