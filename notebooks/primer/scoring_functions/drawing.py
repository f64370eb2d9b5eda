"""Scores, directions and decoders side by side: learning curves, what is reached and what it costs."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.primer.scoring_functions.experiment import BEFORE, DIRECTIONS
from notebooks.shared.style import blank

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


_REST = "#c8c8c8"


def reached_and_cost(result: Result, task: str) -> Figure:
    """Updates to the threshold, sentences without a fault, and multiplications for one sentence."""
    kinds = kinds_of(result, task)
    if not kinds:
        return blank()
    places = _places(kinds)
    with style():
        figure = Figure(figsize=(8.6, 0.21 * (max(places.values()) + 1) + 1.1))
        speed, faultless, cost = figure.subplots(1, 3, sharey=True, width_ratios=(1, 0.8, 1))
        for (decoder, direction, scoring), place in places.items():
            found, colour = result.values[task][decoder][direction][scoring], SCORES[scoring][1]
            for axes in (speed, faultless, cost):
                axes.axhline(place, color="#eeeeee", lw=0.8, zorder=0)
            draw_interval(speed, _within(found["updates"], 0, result.config["steps"]), place, colour)
            if found["reached"] < found["updates"]["n"]:
                _say_reached(speed, found, place)
            draw_interval(faultless, _within(found["exact_match"], 0, 1), place, colour)
            if "score" in found:
                _draw_cost(cost, found, place, colour)
        speed.set_xlabel(f"updates to {100 * result.config['threshold']:.0f} % of words", fontsize=9)
        faultless.set_xlabel("sentences without a fault", fontsize=9)
        cost.set_xlabel("thousand multiplications", fontsize=9)
        speed.set_xlim(0, result.config["steps"] * 1.05)
        faultless.set_xlim(-0.03, 1.05)
        cost.set_xlim(0, cost.get_xlim()[1] * 1.18)
        _name_rows(speed, places)
    return figure


def _places(kinds: list[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    """Heights of the rows from below; a free row above every group of decoder and encoder, for its name."""
    groups = list(dict.fromkeys(kind[:2] for kind in kinds))
    upwards = [kind for group in groups for kind in (group, *(k for k in kinds if k[:2] == group))][::-1]
    return {kind: height for height, kind in enumerate(upwards) if len(kind) == 3}


def _name_rows(axes: Axes, places: dict[tuple[str, str, str], int]) -> None:
    groups: dict[tuple[str, str], int] = {}
    for kind, height in places.items():
        groups[kind[:2]] = max(groups.get(kind[:2], 0), height + 1)
    names = {height: SCORES[kind[2]][0] for kind, height in places.items()}
    axes.set_yticks(list(names), list(names.values()))
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    for label, kind in zip(axes.get_yticklabels(), places, strict=True):
        label.set_color(SCORES[kind[2]][1])
    for (decoder, direction), height in groups.items():
        text = f"{DECODERS[decoder]}, {ENCODERS[direction][0]}"
        axes.text(
            0, height, text, fontsize=9, fontweight="bold", va="center", transform=axes.get_yaxis_transform()
        )
    axes.set_ylim(-0.7, max(groups.values()) + 0.7)


def _within(interval: dict, low: float, high: float) -> dict:
    """The interval, cut off where the quantity ends."""
    if interval["low"] is None:
        return interval
    return interval | {"low": max(low, interval["low"]), "high": min(high, interval["high"])}


def _say_reached(axes: Axes, found: dict, place: float) -> None:
    text = f"{found['reached']} of {found['updates']['n']}"
    axes.text(
        1, place + 0.42, text, fontsize=8, ha="right", va="center", transform=axes.get_yaxis_transform()
    )


def _draw_cost(axes: Axes, found: dict, place: float, colour: str) -> None:
    score, rest = found["score"] / 1e3, found["rest"] / 1e3
    axes.barh(place, rest, height=0.6, color=_REST)
    axes.barh(place, score, left=rest, height=0.6, color=colour)
    axes.annotate(f"{score:.1f}", (rest + score, place), xytext=(3, 0), textcoords="offset points",
                  fontsize=8, va="center", color=colour)  # fmt: skip
