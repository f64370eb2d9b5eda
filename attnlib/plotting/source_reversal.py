"""Reading the source backwards: distances, learning curves, and where in the sentence it helps."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.experiments.result import Result
from attnlib.experiments.source_reversal import ONE_LENGTH, ORDERS
from attnlib.plotting.blank import blank
from attnlib.plotting.style import INK, style, task_name

LOOKS = {"forward": ("read forwards", INK, "-"), "reversed": ("read backwards", "#d55e00", "--")}
KINDS = {
    "initial": "one vector, at the start",
    "every_step": "one vector, at every step",
    "attention": "attention",
    ONE_LENGTH: "attention, one length",
}
EXAMPLE = ["this", "is", "an", "example"]
TRANSLATED = ["esto", "es", "un", "ejemplo"]


def kinds_of(result: Result) -> list[str]:
    """Kinds of networks that the result has, in the order of the figures."""
    return [kind for kind in KINDS if kind in result.values]


def example_paths(result: Result) -> Figure:
    """The steps between each word and its translation, for the primer's sentence, both ways."""
    with style():
        figure = Figure(figsize=(8.6, 3.4))
        grid = figure.subplots(1, 2, sharey=True)
        for axes, order in zip(grid, ORDERS, strict=True):
            _draw_paths(axes, order, result.values["example"][order])
    return figure


def _draw_paths(axes: Axes, order: str, steps: list[int]) -> None:
    words = EXAMPLE if order == "forward" else EXAMPLE[::-1]
    row = [*words, "⟨end⟩", *TRANSLATED]
    title, colour, _ = LOOKS[order]
    axes.plot(range(len(row)), [0] * len(row), "-", color="#bbbbbb", lw=1, zorder=0)
    for place, word in enumerate(row):
        axes.plot(place, 0, "o", ms=7, color=colour if place < len(words) else "#0072b2")
        axes.text(place, -0.35, word, rotation=40, ha="right", va="top", fontsize=9)
    for target, word in enumerate(EXAMPLE):
        start, end = words.index(word), len(words) + 1 + target
        height = 0.3 * steps[target]
        middle = (start + end) / 2
        across = [start + (end - start) * i / 40 for i in range(41)]
        axes.plot(across, [height * (1 - ((x - middle) / (end - middle)) ** 2) for x in across],
                  color=colour, lw=1.3)  # fmt: skip
        axes.text(middle, height, f"{steps[target]}", ha="center", va="bottom", fontsize=9, color=colour)
    mean = sum(steps) / len(steps)
    axes.set_title(f"{title}: {mean:g} steps on average, at least {min(steps)}")
    axes.set_ylim(-1.6, 2.9)
    axes.set_xlim(-0.9, len(row) - 0.3)
    axes.axis("off")


def counted(result: Result) -> dict[str, dict]:
    """Distances of the tasks whose data is at hand."""
    return {name: own for name, own in result.values["distances"].items() if "cannot_be_run" not in own}


def distances(result: Result) -> Figure:
    """Share of linked word pairs at each distance, both ways; a panel a task."""
    tasks = list(counted(result))
    if not tasks:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.7))
        for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
            for order, (label, colour, line) in LOOKS.items():
                rows = [r for r in result.tables["distances"] if (r["task"], r["order"]) == (task, order)]
                axes.plot(
                    [row["distance"] for row in rows], [row["share"] for row in rows],
                    color=colour, ls=line, lw=1.5, label=label,
                )  # fmt: skip
                mean = result.values["distances"][task][order]["mean"]
                axes.axvline(mean, color=colour, ls=line, lw=0.8, alpha=0.6)
            axes.set_title(task_name(task), fontsize=9.5)
            axes.set_xlabel("steps", fontsize=9)
            axes.set_ylim(bottom=0)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        figure.axes[0].set_ylabel("share of linked words", fontsize=9)
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _band(axes: Axes, rows: list[dict], across: str, look: tuple[str, str, str]) -> None:
    label, colour, line = look
    places = [row[across] for row in rows]
    axes.plot(places, [row["value"] for row in rows], color=colour, ls=line, lw=1.7, label=label)
    if rows and rows[0]["low"] is not None:
        low, high = [row["low"] for row in rows], [row["high"] for row in rows]
        axes.fill_between(places, low, high, color=colour, alpha=0.13, lw=0)


def learning_curves(result: Result) -> Figure:
    """Words right over updates, both ways: all words, and those of the first and the last third."""
    kinds, cell = kinds_of(result), result.config["cell"][0]
    if not kinds:
        return blank()
    parts = {"token_accuracy": "all words", "first": "first third", "last": "last third"}
    with style():
        figure = Figure(figsize=(8.6, 1.9 * len(parts) + 0.8))
        grid = figure.subplots(len(parts), len(kinds), squeeze=False, sharex=True, sharey=True)
        for row, (part, name) in zip(grid, parts.items(), strict=True):
            for axes, kind in zip(row, kinds, strict=True):
                for order, look in LOOKS.items():
                    own = [
                        r
                        for r in result.tables["curves"]
                        if (r["kind"], r["cell"], r["order"], r["part"]) == (kind, cell, order, part)
                    ]
                    _band(axes, own, "step", look)
                axes.set_ylim(0, 1.05)
                if part == "token_accuracy":
                    axes.set_title(KINDS[kind], fontsize=9.5)
                if part == "last":
                    axes.set_xlabel("updates", fontsize=9)
            row[0].set_ylabel(f"{name}: right", fontsize=9)
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def right_by_place(result: Result) -> Figure:
    """Words right in the end, by place in the sentence, both ways."""
    kinds, cell = kinds_of(result), result.config["cell"][0]
    if not kinds:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.8))
        grid = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, kind in zip(grid, kinds, strict=True):
            for order, look in LOOKS.items():
                named = (kind, cell, order)
                own = [r for r in result.tables["places"] if (r["kind"], r["cell"], r["order"]) == named]
                _band(axes, own, "place", look)
            axes.set_title(KINDS[kind], fontsize=9.5)
            axes.set_xlabel("place in the sentence", fontsize=9)
            axes.set_ylim(0, 1.05)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        grid[0].set_ylabel("words right", fontsize=9)
        handles = grid[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure
