"""Scores, directions and decoders side by side: learning curves, what is reached and what it costs."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.experiments.result import Result
from attnlib.experiments.scoring_settings import BEFORE, DIRECTIONS
from attnlib.plotting.blank import blank
from attnlib.plotting.style import INK, style

Look = tuple[str, str, str]  # label, colour, line
SCORES: dict[str, Look] = {
    "dot": ("dot", "#0072b2", "-"),
    "scaled_dot": ("scaled dot", "#6a3d9a", "--"),
    "general": ("general", "#00845f", "-"),
    "concat": ("concat", "#a06a00", (0, (1, 1))),
    "additive": ("additive", "#d55e00", "-"),
}
DECODERS = {
    "luong": "Luong",
    "luong_feeding": "Luong, input feeding",
    BEFORE: "Luong, previous state asks",
    "bahdanau": "Bahdanau",
}
ASKING: dict[str, Look] = {
    "luong": ("present", "#0072b2", "-"),
    BEFORE: ("previous", "#d55e00", "--"),
    "bahdanau": ("Bahdanau", "#777777", ":"),
}
ENCODERS: dict[str, Look] = {
    "one": ("one direction", INK, "-"),
    "two": ("two directions", "#00845f", "--"),
}
NETWORKS: dict[str, Look] = {
    "cho": ("Cho", "#aa4499", "--"),
    "sutskever": ("Sutskever", "#a06a00", "--"),
    "bahdanau": ("Bahdanau", "#00845f", "-"),
    "luong": ("Luong", "#0072b2", "-"),
}
_SMALL = 8.5


def kinds_of(result: Result, task: str) -> list[tuple[str, str, str]]:
    """(decoder, directions, scoring) of the networks of a task, in the order of the figures."""
    values = result.values.get(task, {})
    return [
        (decoder, direction, scoring)
        for decoder in DECODERS
        for direction in DIRECTIONS.values()
        for scoring in SCORES
        if scoring in values.get(decoder, {}).get(direction, {})
    ]


def learning_curves(result: Result, task: str) -> Figure:
    """Words right over updates: a column a decoder, a row an encoder, a line a score."""
    kinds = [kind for kind in kinds_of(result, task) if kind[0] != BEFORE]
    if not kinds:
        return blank()
    columns, rows = list(dict.fromkeys(k[0] for k in kinds)), list(dict.fromkeys(k[1] for k in kinds))
    with style():
        figure = Figure(figsize=(8.6, 2.5 * len(rows) + 0.3))
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
        for line, direction in zip(grid, rows, strict=True):
            for axes, decoder in zip(line, columns, strict=True):
                shown = [k[2] for k in kinds if k[:2] == (decoder, direction)]
                name = {"task": task, "decoder": decoder, "directions": direction}
                courses = {SCORES[own]: _course(result, name | {"scoring": own}) for own in shown}
                _draw_courses(axes, courses, result.config["threshold"])
                axes.set_title(f"{DECODERS[decoder]}, {ENCODERS[direction][0]}", fontsize=9.5)
            line[0].set_ylabel("words right", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("updates", fontsize=9)
        _name_lines(figure)
    return figure


def who_asks(result: Result) -> Figure:
    """Words right over updates with the present and the previous state asking; a panel a task and score."""
    panels = [
        (task, scoring)
        for task in result.config["task"]
        for scoring in SCORES
        if BEFORE in result.values.get(task, {}).get("who_asks", {}).get(scoring, {})
    ]
    if not panels:
        return blank()
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with style():
        figure = Figure(figsize=(8.6, 2.5 * rows + 0.3))
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes, (task, scoring) in zip(grid.flat, panels, strict=False):
            name = {"task": task, "directions": "one", "scoring": scoring}
            courses = {look: _course(result, name | {"decoder": own}) for own, look in ASKING.items()}
            _draw_courses(axes, courses, result.config["threshold"])
            axes.set_title(f"{task.replace('_', ' ')}, {SCORES[scoring][0]}", fontsize=9.5)
            axes.set_xlabel("updates", fontsize=9)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for line in grid:
            line[0].set_ylabel("words right", fontsize=9)
        _name_lines(figure)
    return figure


def translation(result: Result) -> Figure:
    """The four networks with names on captions: words right over updates, and BLEU."""
    found = {name: look for name, look in NETWORKS.items() if name in result.values["translation"]}
    if not found:
        return blank()
    rows = result.tables["translation_curves"]
    with style():
        figure = Figure(figsize=(8.6, 3.0))
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        courses = {look: [row for row in rows if row["network"] == name] for name, look in found.items()}
        best = max(row["value"] for own in courses.values() for row in own)
        _draw_courses(left, courses, result.config["text_threshold"], top=min(1.08, 1.3 * best))
        left.set_ylabel("words right", fontsize=9)
        left.set_xlabel("updates", fontsize=9)
        for place, (name, (_, colour, _)) in enumerate(reversed(found.items())):
            interval = result.values["translation"][name]["bleu"]
            draw_interval(right, interval, place, colour)
            if interval["value"] is not None:
                right.text(
                    interval["value"],
                    place + 0.14,
                    f"{interval['value']:.1f}",
                    ha="center",
                    fontsize=_SMALL,
                    color=colour,
                )
        right.set_yticks(range(len(found)), [look[0] for look in reversed(found.values())])
        right.set_ylim(-0.5, len(found) - 0.3)
        right.set_xlim(left=0)
        right.set_xlabel("BLEU", fontsize=9)
        _name_lines(figure)
    return figure


def context_of_states(result: Result) -> Figure:
    """Bits of the words around it in an encoder state, one direction and two; a panel a task."""
    rows = result.tables["context"]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(min(8.6, 4.8 * len(tasks)), 2.7))
        grid = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
        for axes, task in zip(grid, tasks, strict=True):
            for shift, direction in zip((-0.06, 0.06), ENCODERS, strict=True):
                own = [row for row in rows if (row["task"], row["directions"]) == (task, direction)]
                _draw_offsets(axes, own, shift, ENCODERS[direction])
            axes.axhline(0, color="#cccccc", lw=0.8, zorder=0)
            axes.set_xticks(range(-2, 3), ["−2", "−1", "its own", "+1", "+2"])
            axes.set_xlim(-2.3, 2.5)
            axes.set_xlabel("word, counted from that of the state", fontsize=9)
            axes.set_title(task.replace("_", " "), fontsize=9.5)
        grid[0].set_ylabel("bits of the word there", fontsize=9)
    return figure


def _draw_offsets(axes: Axes, rows: list[dict], shift: float, look: Look) -> None:
    label, colour, line = look
    places = [row["offset"] + shift for row in rows]
    axes.plot(places, [row["value"] for row in rows], color=colour, ls=line, lw=1.2)
    for place, row in zip(places, rows, strict=True):
        draw_interval(axes, row, place, colour, upright=True)
        if row["offset"] == 1:  # where the two part
            above = row["value"] > 1
            axes.annotate(
                label,
                (place, row["value"]),
                xytext=(8, 4) if above else (-8, -2),
                textcoords="offset points",
                ha="left" if above else "right",
                fontsize=9,
                color=colour,
            )


def draw_interval(axes: Axes, interval: dict, place: float, colour: str, *, upright: bool = False) -> None:
    """A dot with its interval, lying, or upright where the quantity goes up."""
    if interval["value"] is None:
        return
    if interval["low"] is not None:
        ends = [interval["low"], interval["high"]]
        axes.plot(*([place] * 2, ends) if upright else (ends, [place] * 2), color=colour, lw=1.4)
    point = (place, interval["value"]) if upright else (interval["value"], place)
    axes.plot(*point, "o", color=colour, ms=5)


def _course(result: Result, name: dict[str, str]) -> list[dict]:
    return [row for row in result.tables["curves"] if all(row[own] == name[own] for own in name)]


def _draw_courses(axes: Axes, courses: dict[Look, list[dict]], threshold: float, top: float = 1.08) -> None:
    """Courses with bands of their intervals, cut off at 0 and 1."""
    for (label, colour, line), rows in courses.items():
        if not rows:
            continue
        steps, values = [row["step"] for row in rows], [row["value"] for row in rows]
        axes.plot(steps, values, color=colour, ls=line, lw=1.7, label=label)
        if rows[0]["low"] is not None:
            low, high = [max(0, row["low"]) for row in rows], [min(1, row["high"]) for row in rows]
            axes.fill_between(steps, low, high, color=colour, alpha=0.1, lw=0)
    axes.axhline(threshold, color="#999999", lw=0.8, ls=":", zorder=0)
    axes.text(0, threshold, f"{threshold:.0%}".replace("%", " %"), fontsize=8, color="#666666", va="bottom")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylim(0, top)


def _name_lines(figure: Figure) -> None:
    """The lines of all panels above the figure, each once."""
    named = {
        label: line
        for axes in figure.get_axes()
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(), named, loc="outside upper center", ncols=len(named), frameon=False, fontsize=_SMALL
    )
