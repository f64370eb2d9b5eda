"""What figures are drawn with: the look of the book, markers, lines, panels, labels, and what is cut off."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from companion.book.style import INK, PART_COLOURS, PART_NAMES, PART_SYMBOLS, style, task_name
from companion.results.result import Result, kinds_of
from notebooks.shared.marks import error_bar, line_with_band

__all__ = [
    "INK",
    "PART_COLOURS",
    "PART_NAMES",
    "PART_SYMBOLS",
    "style",
    "task_name",
]  # which notebooks take from here

ATTRIBUTION_LABELS = {
    "own": "own term",
    "split": "split share",
    "any_term": "any-term share",
    "mean_absolute": "size of terms",
    "substitution": "substitution",
}

# What is neither temporal nor input nor residual takes these, which colour-blind readers can tell apart.
GREEN, WINE, PINK, OCHRE, INDIGO = "#009e73", "#882255", "#cc79a7", "#a06a00", "#332288"
PURPLE, AMBER, SKY = "#6a3d9a", "#e69f00", "#56b4e9"  # with INK and GREEN, where five lie in one panel
ARROW = {"arrowstyle": "->", "color": INK, "lw": 0.9}  # from a note to what it is about
REMARK = {
    "fontsize": 9,
    "ha": "center",
    "va": "center",
    "arrowprops": ARROW | {"shrinkB": 5},
}  # a note with its arrow
ARCHITECTURE_MARKERS = {
    "AED": "o", "AO": "s", "VED": "D", "AED-lstm": "^", "AED-vanilla": "v", "AED-ugrnn": "<",
}  # fmt: skip
NETWORKS = {"AED": "GRU with attention", "AO": "attention only", "VED": "GRU without attention"}
DATA_NAMES = {
    "own": "your own", "known_polarity": "known polarity", "sst": "SST",
    "sst_as_text": "SST (labels of the text)", "sms_spam": "SMS", "ag_news": "AG News (part)",
    "twenty_newsgroups": "20 NG", "amazon": "Amazon (part)", "imdb": "IMDB", "yelp": "Yelp (part)",
    "known_lexicon": "known lexicon", "multi30k_en_de": "Multi30k En–De",
    "multi30k_de_en": "Multi30k De–En", "iwslt14_de_en": "IWSLT14 De–En (part)",
    "tatoeba_en_de": "Tatoeba En–De", "tatoeba_en_fr": "Tatoeba En–Fr",
    "multi30k_en_fr": "Multi30k En–Fr", "europarl_de_en": "Europarl De–En",
    "news_it_pt": "News It–Pt", "news_en_nl": "News En–Nl", "news_en_pt": "News En–Pt",
}  # fmt: skip


def network_name(kind: str) -> str:
    """A kind of network as a reader calls it, such as ``LSTM with attention`` for ``AED-lstm``."""
    cell = kind.removeprefix("AED-")
    return NETWORKS.get(kind, f"{cell if cell == 'vanilla' else cell.upper()} with attention")


def row_name(kind: str) -> str:
    """The same in few letters, for a row of dots: ``LSTM``, or ``AO, no codes`` for ``AO-none``."""
    architecture, _, variant = kind.partition("-")
    if architecture == "AO" and variant:
        return f"AO, {'no' if variant == 'none' else variant} codes"
    return (variant if variant == "vanilla" else variant.upper()) or kind


def data_name(name: str) -> str:
    """What a data set is called in figures and tables; its own name where it has no other."""
    return DATA_NAMES.get(name, name)


def data_of(result: Result) -> list[str]:
    """The data sets that a result has numbers of: texts, then sentence pairs."""
    order = dict.fromkeys((*DATA_NAMES, *result.values))
    return [name for name in order if "validation" in result.values.get(name, ())]


def blank() -> Figure:
    """A sentence in place of axes, so that a page of a run that asked for less has every figure."""
    with style():
        figure = Figure(figsize=(8.6, 0.8))
        figure.text(0.5, 0.5, "This run measured nothing of this.", ha="center", va="center", color=INK)
    return figure


def legend_above(figure: Figure, ncols: int = 2) -> None:
    """Each label of any panel once, above all of them."""
    labelled: dict[str, object] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    figure.legend(
        labelled.values(), labelled.keys(), loc="outside upper center", ncols=ncols, frameon=False, fontsize=9
    )


Styles = Mapping[str, tuple[str, str, str]]  # name of a group → its label, colour and line style


def lines(axes: Axes, table: pd.DataFrame, x: str, by: str, styles: Styles, *, lw=1.7, band=0.13) -> None:
    """A line for each group of a tidy table, with a band (of so little opacity) where it has intervals.

    The table has the columns ``value``, ``low``, ``high``, ``x`` and ``by``; looks are in the legend's order.
    """
    for name, (label, colour, line) in styles.items():
        rows = table[table[by] == name]
        line_with_band(axes, rows[x], rows, colour, band=band, ls=line, lw=lw, label=label)


def curves(axes: Axes, courses: pd.DataFrame, name: str, label: str | None = None, **props: object) -> None:
    """A column of a table of courses by update, a line for each seed; the first carries the label."""
    for place, (_, course) in enumerate(courses.groupby("seed", sort=False)):
        axes.plot(course["steps"], course[name], label=None if place else label, **props)


# Small panels for many tasks: a column a task, a row an architecture, in bands like lines of text.

# Called with axes, task, kind, leftmost, lowest; False leaves the panel empty.
Draw = Callable[[Axes, str, str, bool, bool], bool]


def panels(
    tasks: list[str], kinds: list[str], draw: Draw, *, width: float, height: float, per_band: int = 4
) -> Figure:
    """A figure of one panel, so many inches wide and high, for each task and kind."""
    if not tasks or not kinds:
        return blank()
    columns, rows = max(min(len(tasks), per_band), 2), -(-len(tasks) // per_band) * len(kinds)
    with style():
        figure = Figure(figsize=(width * columns, height * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for (place, task), (below, kind) in product(enumerate(tasks), enumerate(kinds)):
            band, column = divmod(place, per_band)
            axes = grid[band * len(kinds) + below, column]
            axes.set_title(f"{task_name(task)}, {kind}")
            axes.set_visible(draw(axes, task, kind, column == 0, below == len(kinds) - 1))
    return figure


# Dots with intervals over seeds: a row for each task and kind of model, a panel for each question.


@dataclass(frozen=True)
class Dot:
    """One quantity of every row: where it stands in the values of a kind, and how it is drawn."""

    key: str  # dotted, below ``<task>.<kind>``; leads to an interval or a plain number
    label: str
    colour: str
    marker: str = "o"  # filled unless ``open``
    open: bool = False
    shift: float = 0.0  # vertical place in the row, in rows; 0 is the middle


def dot_rows(
    result: Result, panels: dict[str, list[Dot]], *, xlabel: str,
    xlim: tuple[float, float] | None = (-0.02, 1.03), rows: list[tuple[str, dict]] | None = None,
    legend: list[Dot] | None = None, row_height: float = 0.56, columns: int = 4,
) -> Figure:  # fmt: skip
    """A panel for each title, side by side over the same rows; one legend above, by default the first's.

    ``rows`` are a label and what dots' keys lead into; by default all tasks and kinds of network.
    """
    rows = rows or [
        (f"{task_name(task)}, {row_name(kind)}", values) for task, kind, values in kinds_of(result)
    ]
    if not rows:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, row_height * len(rows) + 1.7))
        grid = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[0]
        for axes, (title, dots) in zip(grid, panels.items(), strict=True):
            for place, (_, values) in enumerate(reversed(rows)):
                axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
                for dot in dots:
                    draw_dot(axes, dot, values, place)
            axes.set_title(title, loc="left")
            axes.set_xlabel(xlabel)
            if xlim is not None:
                axes.set_xlim(*xlim)
            axes.set_ylim(-0.6, len(rows) - 0.4)
        grid[0].set_yticks(range(len(rows)), [label for label, _ in reversed(rows)])
        shown = legend if legend is not None else next(iter(panels.values()))
        figure.legend(
            handles=[Line2D([], [], marker=dot.marker, label=dot.label, **_props(dot)) for dot in shown],
            loc="outside upper center", ncols=columns, frameon=False, fontsize=9, handletextpad=0.2,
            columnspacing=1.2,
        )  # fmt: skip
    return figure


def at(values: dict, key: str) -> dict | float | None:
    """What stands at a dotted key; None where nothing does."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def draw_dot(axes: Axes, dot: Dot, values: dict, place: float) -> None:
    """A dot and its interval in the row at a place."""
    interval = at(values, dot.key)
    interval = interval if isinstance(interval, dict) else {"value": interval, "low": None}
    if interval["value"] is None:
        return
    height = place + dot.shift
    error_bar(axes, interval, height, dot.colour, lw=1.3, solid_capstyle="butt")
    axes.plot(interval["value"], height, dot.marker, **_props(dot))


def _props(dot: Dot) -> dict[str, object]:
    face = "white" if dot.open else dot.colour
    return {"color": dot.colour, "markerfacecolor": face, "markeredgewidth": 1.4, "ms": 5.5, "ls": ""}


Label = tuple[float, float, str, str]  # where, what it says, its colour
# From the point to its label: right, left, above, below and between, nearest first; in points.
AWAYS = [
    (far * along, far * above)
    for far in (5, 9, 14, 20, 27)
    for along, above in ((1, 1), (1, -1), (-1, 1), (-1, -1), (1.3, 0), (-1.3, 0), (0, 1.3), (0, -1.3))
]
LETTER, LINE = 0.62, 1.1  # width and height of a letter, of its size
MARK = 3.5  # half of what a point is wide, and some air
HALO = withStroke(linewidth=1.2, foreground="white")  # over lines and points


def write_labels(axes: Axes, labels: list[Label], size: float = 8) -> None:
    """Text beside points, the first first: nearby, where it covers no label and fewest points and lines.

    Some way off a thin line joins it to its point; one that has no room without covering another is left out.
    The limits of the axes must be the final ones.
    """
    axes.autoscale_view()  # which happens while drawing otherwise
    frame, scale = axes.get_window_extent(), 72 / axes.figure.dpi
    extent = np.array([frame.width, 0.8 * frame.height]) * scale  # titles and names of axes will take some
    drawn = np.concatenate([np.empty((0, 2)), *(_marks(axes, line) for line in axes.get_lines())]) * extent
    taken: list[np.ndarray] = []  # the middle of a label, and half of what it is wide and high
    for x, y, text, colour in labels:
        place = axes.transLimits.transform((x, y)) * extent
        half = np.array([LETTER * len(text), LINE]) * size / 2
        middles = place + np.array([(a + np.sign(a) * half[0], b + np.sign(b) * half[1]) for a, b in AWAYS])
        covered = [np.sum((np.abs(drawn - middle) < half + MARK).all(1)) for middle in middles]
        free = ((middles >= half) & (middles <= extent + half)).all(1)  # inside, or a little to the right
        for other in taken:
            free &= (np.abs(other[:2] - middles) >= other[2:] + half).any(1)
        if not free.any():
            continue
        best = min(np.flatnonzero(free), key=lambda n: covered[n])
        taken.append(np.concatenate([middles[best], half]))
        joined = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 0, "shrinkB": 2}
        axes.annotate(
            text, (x, y), middles[best] - place, textcoords="offset points", fontsize=size, color=colour,
            ha="center", va="center", path_effects=[HALO], zorder=4,
            arrowprops=joined if max(map(abs, AWAYS[best])) > 9 else None,
        )  # fmt: skip


def _marks(axes: Axes, line: Line2D) -> np.ndarray:
    """Points of a line, and between them where it is drawn, in fractions of the axes."""
    places = axes.transLimits.transform(np.asarray(line.get_xydata(), float).reshape(-1, 2))
    if line.get_linestyle() == "None" or len(places) < 2:
        return places
    between = np.linspace(0, 1, 8)[:, None, None]
    return ((1 - between) * places[:-1] + between * places[1:]).reshape(-1, 2)


SLACK = 0.005  # of the axis: what nobody sees is not cut
NOTE = " What leaves the frame is cut off there."


def cut_note(figure: Figure) -> str:
    """A sentence for the caption, with a space before it; empty where everything stands inside its axes."""
    return NOTE if any(_leaves(axes) for axes in figure.get_axes() if axes.get_visible()) else ""


def _leaves(axes: Axes) -> bool:
    """Lines, bars and bands in the axes' own coordinates; lines that span the axes are none of them."""
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    across, up = SLACK * (right - left), SLACK * (high - low)
    places = [
        place
        for line in axes.get_lines()
        if line.get_transform() == axes.transData
        for place in line.get_xydata()
    ]
    for bar in axes.patches:
        if isinstance(bar, Rectangle) and bar.get_data_transform() == axes.transData:
            places.append((bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height()))
    for band in axes.collections:
        if band.get_transform() == axes.transData:
            places += [place for path in band.get_paths() for place in path.vertices]
    return any(not (left - across <= x <= right + across and low - up <= y <= high + up) for x, y in places)


# What the instrument *toward or away* draws on three pages: courses, with weights on words.

CURVES = {
    "accuracy": "word accuracy",
    "right": "weight on the correct word",
    "later": "weight on a later one",
    "known": "correct word ranked first",
}


def toward_or_away(
    courses: pd.DataFrame, kinds: Mapping[str, str], **more: object
) -> tuple[dict, pd.DataFrame]:
    """Every network's course, and a table of how it ends.

    ``courses``: a row a snapshot, with ``kind``, ``name`` and ``way`` of the network, ``steps``, and columns
    of :data:`CURVES`, weights as multiples of uniform attention. ``kinds`` are those shown, by what a reader
    calls them. ``more``: ``doublings`` of the updates across, what networks that go ``neither`` way do.
    """
    shown = courses[courses["kind"].isin(list(kinds))] if len(courses) else courses
    if shown.empty:
        return {}, pd.DataFrame()
    steps, networks = {}, []
    for (kind, name, way), course in shown.groupby(["kind", "name", "way"], sort=False, dropna=False):
        steps[kind] = course["steps"].tolist()
        rounded = {curve: [_short(value) for value in course[curve]] for curve in CURVES if curve in course}
        networks.append({"kind": kind, "name": name, "way": way if isinstance(way, str) else None} | rounded)
    ends = shown.groupby(["kind", "name"], sort=False).last().fillna({"way": "neither"}).reset_index()
    groups = ends.replace({"kind": dict(kinds)}).groupby(["kind", "way"], sort=False)
    table = groups[[curve for curve in CURVES if curve in ends]].mean().round(2).rename(columns=CURVES)
    names = {kind: kinds[kind] for kind in kinds if kind in steps}
    return {"kinds": names, "steps": steps, "networks": networks} | more, table.assign(networks=groups.size())


def _short(value: float) -> float | None:
    return None if pd.isna(value) else float(f"{value:.3g}")


def of_sentences(result: Result) -> tuple[dict, pd.DataFrame]:
    """The courses of networks that learn to copy, by kind of sentences."""
    if not result.tables.get("outcomes"):
        return {}, pd.DataFrame()
    courses = _copying(result)
    ways = pd.DataFrame(result.tables["outcomes"])[["kind", "network", "seed", "way"]]
    learned = courses[courses["network"] == "learned"].merge(ways).rename(columns={"seed": "name"})
    kinds = {
        "permutation": f"permutations of {result.config['length']} words",
        "sample": "samples of a larger set",
        "mixture": "one of two sets",
    }
    return toward_or_away(learned, kinds)


def of_heads(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """By scenario, networks named by number; one goes the way on whose side of uniform attention it ends."""
    if not result.tables.get("courses"):
        return {}, pd.DataFrame()
    courses = _copying(result)
    by_network = courses.groupby(["scenario", "heads", "body", "seed"], sort=False)
    numbers = by_network.ngroup()
    courses["name"] = numbers - numbers.groupby(courses["scenario"]).transform("min")
    courses["way"] = _way(by_network["right"].transform("last"))
    return toward_or_away(courses.rename(columns={"scenario": "kind"}), kinds)


def _copying(result: Result) -> pd.DataFrame:
    """Courses of networks that copy, in the columns of :data:`CURVES`."""
    names = {"attention_right": "right", "attention_later": "later", "probe_agreement": "known"}
    courses = pd.DataFrame(result.tables["courses"]).rename(columns=names)
    courses[["right", "later"]] *= result.config["length"]
    return courses


def _way(ends: pd.Series) -> pd.Series:
    return pd.Series(np.where(ends >= 1, "drawn", "away"), ends.index, dtype=object)


def of_tasks(result: Result, kinds: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """By task: those that learn go the way on whose side of even attention they end; the others neither."""
    names = {"task": "kind", "step": "steps", "token_accuracy": "accuracy", "word_accuracy": "known"}
    courses = pd.DataFrame(result.tables.get("snapshots", [])).rename(columns=names)
    if courses.empty:
        return {}, courses
    uniform = courses["attention"] == "uniform"
    courses["right"] = (courses["on_word"] / courses["chance"]).mask(uniform, 1.0)
    ends = courses.groupby(["kind", "attention", "seed"])["right"].transform("last")
    courses["way"] = _way(ends).mask(uniform)
    courses["name"] = courses["seed"].astype(str) + np.where(uniform, ", held uniform", "")
    return toward_or_away(courses, kinds, doublings=True, neither="with attention held uniform")


def sentences_name(kind: str, result: Result) -> str:
    """A kind of sentences as a reader calls it, say 20 of 30 words."""
    length = result.config["length"]
    names = {
        "permutation": f"permutations of {length} words",
        "sample": f"{length} of {length + length // 2} words",
        "mixture": f"either of two sets of {length}",
    }
    return names[kind]
