"""One setting at a time: dots with intervals by level, the plan's own level shaded."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style, task_name
from companion.results.result import Result
from notebooks.attend.robustness.experiment import level_key

FACTOR_NAMES = {
    "cell": "recurrent cell",
    "width": "width of the states",
    "weight_decay": "weight decay",
    "length": "training length (× the plan's)",
    "n_words": "number of words",
    "embedding_scale": "embedding scale at the start",
    "clip": "largest gradient norm",
}
GREY = PART_COLOURS["residual"]
OPEN = ("accuracy",)  # drawn as rings beside a filled mark
FURTHEST = 0.3  # beyond values, as far as an interval over very few seeds stretches an axis
PANELS = {  # title, then outcome → label, colour, marker
    "covariance share": {
        "temporal_share": ("temporal μ·μ", PART_COLOURS["temporal"], "o"),
        "input_share": ("input χ·χ", PART_COLOURS["input"], "o"),
        "residual_share": ("all five with Δ", GREY, "o"),
    },
    "similarity to the full attention": {
        "temporal_only": ("μ·μ alone", PART_COLOURS["temporal"], "o"),
        "input_only": ("χ·χ alone", PART_COLOURS["input"], "o"),
        "no_residual": ("all but Δ", INK, "o"),
        "uniform": ("uniform", INK, "_"),
    },
    "of the network": {"typicality": ("typicality", INK, "D"), "accuracy": ("accuracy of words", INK, "s")},
}
HALVES = {
    "temporal_share_leads_scan": "temporal share:\none-to-one less SCAN",
    "temporal_beats_input": "one-to-one, similarity:\nμ·μ alone less χ·χ alone",
}
RUNNING = {
    "typicality": "typicality",
    "temporal_share": "share of μ·μ",
    "input_share": "share of χ·χ",
    "residual_residual": "share of Δ·Δ",
    "temporal_only": "μ·μ alone: similarity",
    "input_only": "χ·χ alone: similarity",
    "no_residual": "all but Δ: similarity",
}


def levels_of(result: Result, factor: str, task: str) -> list[tuple[str, bool, dict]]:
    """``(label, whether the plan's, outcomes)`` of a factor's levels on a task, in the order of the settings.

    Levels that nothing has been measured of are left out.
    """
    found = {}
    for row in result.tables["points"]:
        if row["factor"] == factor and row["task"] == task:
            found[row["level"]] = row["planned"]
    values = result.values["factors"].get(factor, {})
    return [(label, planned, values[level_key(label)][task]) for label, planned in found.items()]


def factors_of(result: Result) -> list[str]:
    """Factors of which a task has more than one level, in the order of the settings."""
    named = dict.fromkeys(row["factor"] for row in result.tables["points"])
    return [f for f in named if any(len(levels_of(result, f, task)) > 1 for task in result.config["task"])]


def outcomes_by_level(result: Result, factor: str) -> Figure:
    """Shares, rebuilt attention, and the network itself over the levels of a factor; a row for each task."""
    tasks = [task for task in result.config["task"] if len(levels_of(result, factor, task)) > 1]
    with style():
        figure = Figure(figsize=(8.6, 2.55 * len(tasks) + 0.9))
        grid = figure.subplots(len(tasks), len(PANELS), squeeze=False, sharex="row")
        for row, task in zip(grid, tasks, strict=True):
            levels = levels_of(result, factor, task)
            for axes, (title, outcomes) in zip(row, PANELS.items(), strict=True):
                _shade(axes, levels)
                for offset, (outcome, (label, colour, marker)) in zip(
                    _spread(len(outcomes)), outcomes.items(), strict=True
                ):
                    intervals = [found[outcome] for _, _, found in levels]
                    look = {"markerfacecolor": "white"} if outcome in OPEN else {}
                    _dots(axes, intervals, offset, colour, marker, label, **look)
                axes.set_ylim(*_limits(levels, outcomes))
                axes.set_title(title, fontsize=9.5)
                if task == tasks[-1]:
                    axes.set_xlabel(FACTOR_NAMES[factor], fontsize=9)
                    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.24),
                                ncols=2, handletextpad=0.2, columnspacing=1, labelspacing=0.25)  # fmt: skip
            row[0].set_ylabel(task_name(task), fontsize=10)
    return figure


def _shade(axes: Axes, levels: list[tuple[str, bool, dict]]) -> None:
    for place, (_, planned, _) in enumerate(levels):
        if planned:
            axes.axvspan(place - 0.4, place + 0.4, color="#eeeeee", zorder=0, lw=0)
    axes.axhline(0, color="#dddddd", lw=0.8, zorder=0)
    axes.set_xticks(range(len(levels)), [label for label, _, _ in levels], fontsize=8.5)
    axes.set_xlim(-0.6, len(levels) - 0.4)


def _limits(levels: list[tuple[str, bool, dict]], outcomes: dict) -> tuple[float, float]:
    """Zero to one, and as far as the intervals go; very wide ones leave the picture."""
    intervals = [found[name] for _, _, found in levels for name in outcomes]
    low, high = _ends([interval for interval in intervals if interval["value"] is not None])
    return min(-0.08, low - 0.05), max(1.05, high + 0.05)


def _ends(intervals: list[dict]) -> tuple[float, float]:
    """The lowest and the highest end, none farther than :data:`FURTHEST` beyond all values."""
    values = [interval["value"] for interval in intervals] or [0.0]
    lows = [interval["low"] for interval in intervals if interval["low"] is not None]
    highs = [interval["high"] for interval in intervals if interval["high"] is not None]
    low, high = min(values), max(values)
    return max(min([low, *lows]), low - FURTHEST), min(max([high, *highs]), high + FURTHEST)


def _spread(number: int) -> list[float]:
    return [0.16 * (i - (number - 1) / 2) for i in range(number)]


def _dots(
    axes: Axes, intervals: list[dict], offset: float, colour: str, marker: str, label: str | None, **look
) -> None:
    places = [place for place, interval in enumerate(intervals) if interval["value"] is not None]
    for place in places:
        interval = intervals[place]
        if interval["low"] is not None:
            axes.plot([place + offset] * 2, [interval["low"], interval["high"]], color=colour, lw=1.4)
    across = [place + offset for place in places]
    up = [intervals[place]["value"] for place in places]
    axes.plot(across, up, marker=marker, ls="", color=colour, ms=5, label=label, **look)


def residual_share_by_factor(result: Result) -> Figure:
    """The residual-residual share over the levels of every factor, and how much of it is memory of words.

    A panel for each factor, the one that moves one-to-one most first; a small dot for each network.
    """
    factors = factors_of(result)
    task = result.config["task"][0]
    spans = {factor: result.values["governs"].get(factor, {}).get(task) for factor in factors}
    factors = sorted((f for f in factors if spans[f]), key=lambda f: -spans[f]["value"])
    columns = min(4, max(2, len(factors)))
    rows = max(1, -(-len(factors) // columns))
    with style():
        figure = Figure(figsize=(8.6, 2.6 * rows + 0.5))
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes, factor in zip(grid.flat, factors, strict=False):
            levels = levels_of(result, factor, task)
            _shade(axes, levels)
            places = {label: place for place, (label, _, _) in enumerate(levels)}
            for point in result.tables["points"]:
                if (point["factor"], point["task"]) == (factor, task):
                    axes.plot(
                        places[point["level"]] - 0.28, point["residual_residual"], ".", color=GREY, ms=4
                    )
            _dots(axes, [found["residual_residual"] for *_, found in levels], -0.12, GREY, "o", "Δ·Δ")
            _dots(
                axes, [found["remembered"] for *_, found in levels], 0.14, INK, "o",
                "of it, words read before", markerfacecolor="white",
            )  # fmt: skip
            axes.set_title(FACTOR_NAMES[factor], fontsize=9)
            span = spans[factor]
            axes.text(
                0.03, 0.97, f"span {span['value']:.2f}", transform=axes.transAxes, va="top", fontsize=8.5
            )
        for axes in list(grid.flat)[len(factors) :]:
            axes.axis("off")
        shown = [
            found[outcome]
            for f in factors
            for *_, found in levels_of(result, f, task)
            for outcome in ("residual_residual", "remembered")
            if found[outcome]["value"] is not None
        ]
        low, high = _ends(shown)
        grid[0, 0].set_ylim(min(-0.05, low - 0.03), max(0.3, high + 0.08))  # room for the span's number
        for axes in grid[:, 0]:
            axes.set_ylabel("covariance share", fontsize=9)
        if factors:
            handles = grid[0, 0].get_legend_handles_labels()
            figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def headline_by_setting(result: Result) -> Figure:
    """Both halves of the headline at every setting, as differences; filled where clear of zero."""
    rows = result.tables["settings"]
    names = list(dict.fromkeys((row["factor"], row["level"]) for row in rows))
    with style():
        figure = Figure(figsize=(8.6, 0.24 * len(names) + 1.3))
        for axes, (half, title) in zip(figure.subplots(1, 2, sharey=True), HALVES.items(), strict=True):
            axes.axvline(0, color=INK, lw=0.8)
            for row in rows:
                if row["half"] != half or row["value"] is None:
                    continue
                place = len(names) - 1 - names.index((row["factor"], row["level"]))
                if row["low"] is not None:
                    axes.plot([row["low"], row["high"]], [place] * 2, color=PART_COLOURS["temporal"], lw=1.5)
                face = PART_COLOURS["temporal"] if row["clearly"] else "white"
                axes.plot(
                    row["value"], place, "o", color=PART_COLOURS["temporal"], markerfacecolor=face, ms=5.5
                )
            known = [row["value"] for row in rows if row["half"] == half and row["value"] is not None]
            axes.set_xlim(min([-0.25, *(v - 0.1 for v in known)]), max([1.0, *(v + 0.1 for v in known)]))
            axes.set_title(title, fontsize=9.5)
            axes.set_xlabel("difference, mean over seeds", fontsize=9)
            axes.set_yticks(
                range(len(names)), [_setting_name(*name) for name in reversed(names)], fontsize=8.5
            )
    return figure


def _setting_name(factor: str, level: str) -> str:
    if factor in ("plan", "running"):
        return {"plan": "as planned", "running": "running free"}[factor]
    return f"{FACTOR_NAMES[factor].partition(' (')[0]}: {level}"


def free_running(result: Result) -> Figure:
    """Teacher-forced (filled) beside free-running states (open), a panel for each task."""
    tasks = result.config["task"]
    with style():
        figure = Figure(figsize=(8.6, 3.6))
        panels = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
        for axes, task in zip(panels, tasks, strict=True):
            found = result.values["running"][task]
            for place, outcome in enumerate(reversed(RUNNING)):
                for way, offset in (("teacher_forced", 0.13), ("free_running", -0.13)):
                    interval = found[way][outcome]
                    if interval["value"] is None:
                        continue
                    if interval["low"] is not None:
                        axes.plot(
                            [interval["low"], interval["high"]], [place + offset] * 2, color=INK, lw=1.3
                        )
                    face = INK if way == "teacher_forced" else "white"
                    label = None if place else way.replace("_", " ")
                    axes.plot(interval["value"], place + offset, "o", ls="", color=INK, markerfacecolor=face,
                              ms=5.5, label=label)  # fmt: skip
            right = found["same_words"]["value"]
            written = "" if right is None else f": {right:.0%} of samples without a fault"
            axes.set_title(f"{task_name(task)}{written}", fontsize=9.5)
            axes.set_xlim(-0.1, 1.05)
            axes.axvline(0, color="#dddddd", lw=0.8, zorder=0)
            axes.set_yticks(range(len(RUNNING)), list(RUNNING.values())[::-1], fontsize=8.5)
            axes.set_xlabel("share or similarity", fontsize=9)
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False
        )
    return figure
