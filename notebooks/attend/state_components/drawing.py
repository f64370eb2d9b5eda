"""How much of states position and word explain, and components in a plane: curves and clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from companion.results.result import Result
from notebooks.shared.marks import dot, grid, key_above
from notebooks.shared.style import INK, PART_COLOURS, PINK, blank, network_name, task_name, write_labels
from notebooks.shared.thresholds import LEARNED, ROUNDING

TEMPORAL, INPUT, RESIDUAL = (PART_COLOURS[part] for part in ("temporal", "input", "residual"))
FILL = {"encoder": True, "decoder": False}  # filled markers are the encoder's, open ones the decoder's
TITLES = {"temporal": "Temporal components μ", "input": "Input components χ"}
FRAMES = ("temporal", "input", "states", "explained")
NARROW = 3.75  # inches, which a telephone shows whole
LABELLED = 4  # words of each side with a label, the most frequent
ARROW = {"arrowstyle": "->", "color": INK}
PIECES = {  # of the variance of states: colour of each
    "position only": TEMPORAL,
    "either": PINK,
    "word only": INPUT,
    "neither": "#e2e2e2",
}
JUDGED = {"one_to_one", "scan"}  # tasks of which this is found
FOUND = {
    "encoder": "Encoder: most is explained, on SCAN about half",
    "decoder": "Decoder: more than half, if it can attend",
}
TEXTS = ("multi30k", "tatoeba", "parallel", "aligned")  # of which no network predicts 95 of 100 words

Frames = Mapping[str, pd.DataFrame]  # the tables of FRAMES, by name
Label = tuple[float, float, str]  # where, and what it says
Row = tuple[str, str, Mapping]  # a task, a kind of network, and its numbers


@dataclass(frozen=True)
class Plane:
    """What of one network is in a plane, and how much of the variance is along its axes."""

    frames: Frames

    @classmethod
    def of(cls, frames: Frames, task: str, kind: str) -> "Plane":
        """Keep the rows of one kind of network on one task."""
        return cls(
            {name: rows[(rows["task"] == task) & (rows["kind"] == kind)] for name, rows in frames.items()}
        )

    @property
    def is_empty(self) -> bool:
        return self.frames["temporal"].empty

    def side(self, name: str, side: str) -> pd.DataFrame:
        """Rows of a table that are of the encoder, or of the decoder."""
        rows = self.frames[name]
        return rows[rows["side"] == side]

    def name_axes(self, axes: Axes, space: str) -> None:
        """Say how much of the variance of these components each axis has."""
        explained = self.frames["explained"]
        share = explained[explained["space"] == space].set_index("axis")["share"]
        axes.set_xlabel(f"axis 1 ({100 * share[0]:.0f} % of variance)", fontsize=9)
        axes.set_ylabel(f"axis 2 ({100 * share[1]:.0f} %)", fontsize=9)


def has_learned(row: Row) -> bool:
    """Return True unless a network of a synthetic task has not learned it."""
    task, _, measured = row
    accuracy = measured["quality"]["token_accuracy"]["value"]
    return task.startswith(TEXTS) or (accuracy is not None and accuracy + ROUNDING >= LEARNED)


def variance_explained(rows: Sequence[Row], *, columns: int = 1) -> Figure:
    """Draw a bar for each network, of pieces of the variance of its held-out states; the first is above.

    The encoder is above the decoder, or in the first of two columns. Networks that have not learned are pale.
    """
    if not rows:
        return blank()
    panel = (0.42 if columns == 1 else 0.36) * len(rows) + 0.45
    size = (NARROW, 2 * panel + 1.1) if columns == 1 else (8.6, panel + 0.9)
    with grid(3 - columns, columns, size=size, sharex=True, sharey=True) as (figure, panels):
        for axes, side in zip(panels.flat, FILL, strict=True):
            for place, row in enumerate(reversed(rows)):
                draw_pieces(axes, row, side, place)
            axes.axvline(0.5, color="white", lw=1)
            narrow = columns == 1
            is_judged = narrow and {task for task, *_ in rows} >= JUDGED
            title = FOUND[side] if is_judged else f"{side} states: position and word explain"
            axes.set_title(title, loc="left", x=-0.57 if narrow else 0)
            axes.set_xlim(0, 1.14)
            axes.set_ylim(-0.5, len(rows) - 0.5)
            axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
            axes.set_yticks(range(len(rows)), [row_label(row, columns) for row in reversed(rows)], fontsize=9)
            axes.tick_params(axis="y", left=False)
            axes.spines["left"].set_visible(False)
        for axes in panels[-1]:
            axes.set_xlabel("share of the variance of held-out states")
        handles = [Patch(color=colour, label=name) for name, colour in PIECES.items()]
        key_above(figure, handles, ncols=4, columnspacing=0.9, handlelength=0.9, handletextpad=0.4)
    return figure


def row_label(row: Row, columns: int) -> str:
    """Name a task and a network, in two lines where there is one column."""
    task, kind, _ = row
    between = "\n" if columns == 1 else ", "
    unlearned = "" if has_learned(row) else " (not learned)"
    return f"{task_name(task)}{between}{network_name(kind)}{unlearned}"


def draw_pieces(axes: Axes, row: Row, side: str, place: float) -> None:
    """Draw the bar of one network, with an interval at the end of what is explained."""
    *_, measured = row
    held_out = measured[side]["held_out"]
    explained = held_out["additive"]["value"]
    if explained is None:
        return
    position, word = held_out["temporal_unique"]["value"], held_out["input_unique"]["value"]
    widths = (position, max(explained - position - word, 0), word, 1 - explained)
    start = 0.0
    for width, colour in zip(widths, PIECES.values(), strict=True):
        axes.barh(place, width, 0.66, left=start, color=colour, alpha=1 if has_learned(row) else 0.35, lw=0)
        start += width
    dot(axes, held_out["additive"], place, INK, ms=4, zorder=3)
    axes.text(1.02, place, f"{100 * explained:.0f} %", va="center", fontsize=9.5)


def clock_and_dictionary(frames: Frames, task: str, kind: str) -> Figure:
    """Draw one encoder: positions numbered along their curve, and states gathered round their words."""
    plane = Plane.of(frames, task, kind)
    if plane.side("temporal", "encoder").empty:
        return blank()
    with grid(2, 1, size=(NARROW, 7.2)) as (figure, ((clock,), (dictionary,))):
        draw_clock(clock, plane)
        clock.set_title("μ: positions lie along a curve", fontsize=10.5, loc="left")
        draw_dictionary(dictionary, plane)
        title = "χ: what is left of a state lies near its word"
        dictionary.set_title(title, fontsize=10.5, loc="left")
        for axes, space in ((clock, "temporal"), (dictionary, "input")):
            axes.margins(0.12)
            plane.name_axes(axes, space)
    return figure


def draw_clock(axes: Axes, plane: Plane) -> None:
    """Draw the encoder's temporal components; every second is a circle with the number of its position."""
    places = plane.side("temporal", "encoder")
    axes.plot(places["pc1"], places["pc2"], "-", color=TEMPORAL, lw=1.5)
    for place in places.itertuples():
        point = place.pc1, place.pc2
        if place.position % 2:
            axes.plot(*point, "o", color=TEMPORAL, ms=5)
        else:
            axes.plot(*point, "o", color="white", mec=TEMPORAL, ms=14)
            axes.annotate(place.position, point, ha="center", va="center", fontsize=9, color=TEMPORAL)


def draw_dictionary(axes: Axes, plane: Plane) -> None:
    """Draw the encoder's most frequent words, and its states minus their temporal components."""
    states = plane.side("states", "encoder")
    axes.plot(states["pc1"], states["pc2"], ".", ms=5, color=RESIDUAL, alpha=0.7, rasterized=True)
    words = plane.side("input", "encoder").head(2 * LABELLED)
    axes.plot(words["pc1"], words["pc2"], "o", ms=8, color=INPUT)
    names = words["word"].replace("<eos>", "end").str.replace("$", r"\$").str.strip("<>").str.lower()
    labels = [(*point, INPUT) for point in zip(words["pc1"], words["pc2"], names, strict=True)]
    write_labels(axes, labels, size=11)


def curves_and_clusters(frames: Frames, result: Result, tasks: Sequence[str], kind: str) -> Figure:
    """Draw temporal components above input components of one kind of network, a column for each task."""
    if frames["temporal"].empty:
        return blank()
    with grid(2, len(tasks), size=(2.87 * max(len(tasks), 2), 5.6)) as (figure, panels):
        for (above, below), task in zip(panels.T, tasks, strict=True):
            draw_plane(above, Plane.of(frames, task, kind), "temporal")
            above.set_title(f"{task_and_variance(result, task, kind)}\n{TITLES['temporal']}", fontsize=9.5)
            draw_plane(below, Plane.of(frames, task, kind), "input")
            below.set_title(TITLES["input"], fontsize=9.5)
        if tasks[0] == "one_to_one":
            point_at(panels[0, 0], "two curves of one shape", (0.5, 0.87), (0.5, 0.95))
            point_at(panels[1, 0], "states gather\nround their word", (0.78, 0.78), (0.42, 0.87))
        name_sides(figure)
    return figure


def task_and_variance(result: Result, task: str, kind: str) -> str:
    """Return the name of a task, and how much of the encoder's states position and word explain."""
    network = result.values[task].get(kind)
    explained = network and network["encoder"]["held_out"]["additive"]["value"]
    if explained is None:
        return task_name(task)
    return f"{task_name(task)}: μ + χ explain {100 * explained:.0f} %"


def point_at(axes: Axes, text: str, place: tuple[float, float], written: tuple[float, float]) -> None:
    """Write a note with an arrow to a place, both in fractions of the panel."""
    axes.annotate(
        text, place, written, xycoords="axes fraction", textcoords="axes fraction", fontsize=9, ha="center",
        arrowprops=ARROW,
    )  # fmt: skip


def planes(frames: Frames, tasks: Sequence[str], kinds: Sequence[str], space: str) -> Figure:
    """Draw one space of components: a column for each task, a row for each kind of network."""
    width = 8.6 if len(tasks) > 3 else 8.6 / 3 * max(len(tasks), 2)
    with grid(len(kinds), len(tasks), size=(width, 2.6 * len(kinds))) as (figure, panels):
        for row, kind in zip(panels, kinds, strict=True):
            for axes, task in zip(row, tasks, strict=True):
                draw_plane(axes, Plane.of(frames, task, kind), space)
                axes.set_title(f"{task_name(task)}, {kind}", fontsize=9.5)
        name_sides(figure)
    return figure


def draw_plane(axes: Axes, plane: Plane, space: str) -> None:
    """Draw one network (seed 0) along the first two axes of a space; hide the panel of one not measured."""
    if plane.is_empty:
        axes.set_visible(False)
        return
    axes.margins(0.2)
    labels = draw_curves(axes, plane) if space == "temporal" else draw_words(axes, plane)
    write_labels(axes, [(*label, INK) for label in labels], size=9)
    plane.name_axes(axes, space)


def draw_curves(axes: Axes, plane: Plane) -> list[Label]:
    """Join temporal components of both sides in the order of positions; return labels of the ends."""
    labels = []
    for side, filled in FILL.items():
        rows = plane.side("temporal", side)
        x, y = rows["pc1"].tolist(), rows["pc2"].tolist()
        axes.plot(x, y, "-" if filled else "--", color=TEMPORAL, lw=1.2, alpha=0.8)
        axes.plot(
            x, y, "o" if filled else "s", ms=3.6, color=TEMPORAL, mfc=TEMPORAL if filled else "white", mew=0.9
        )
        positions = rows["position"].tolist()
        for end in (0, -1):
            labels.append((x[end], y[end], str(positions[end])))
    return labels


def draw_words(axes: Axes, plane: Plane) -> list[Label]:
    """Draw input components and states; return labels of the most frequent words, the sides taking turns."""
    labels = []
    for side, filled in FILL.items():
        states = plane.side("states", side)
        axes.plot(
            states["pc1"], states["pc2"], "." if filled else "+", ms=3 if filled else 4,
            color=RESIDUAL, alpha=0.6, zorder=1, rasterized=True,
        )  # fmt: skip
        words = plane.side("input", side)
        axes.plot(
            words["pc1"], words["pc2"], "o" if filled else "s", ls="", ms=5, color=INPUT, zorder=3, mew=1.1,
            mfc=INPUT if filled else "white",
        )  # fmt: skip
        words = words.assign(word=words["word"].replace("<eos>", "end"))
        names = words["word"].str.replace("$", r"\$").str.removeprefix("I_").str.strip("<>").str.lower()
        ranked = enumerate(zip(words["pc1"], words["pc2"], names, strict=True))
        labels += [(rank, label) for rank, label in ranked if rank < LABELLED]
    return [label for _, label in sorted(labels, key=lambda ranked: ranked[0])]


def name_sides(figure: Figure) -> None:
    """Say above the figure which markers are the encoder's, and which the decoder's."""
    axes = figure.axes[0]
    for side, filled in FILL.items():
        face = INK if filled else "white"
        axes.plot([], [], "o" if filled else "s", color=INK, mfc=face, ms=5, label=side)
    axes.plot([], [], ".", color=RESIDUAL, label="single states minus μ (+: decoder)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
