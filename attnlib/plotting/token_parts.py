"""Which tokens attend by time and which by input: single tokens, and classes of them."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.experiments.result import Result
from attnlib.plotting.style import INK, PART_COLOURS, style, task_name

PANELS = {  # title → (what is drawn: label and colour)
    "share of the scores' covariance": {
        "temporal_share": ("μ·μ", PART_COLOURS["temporal"]),
        "input_share": ("χ·χ", PART_COLOURS["input"]),
        "residual_share": ("residual terms", PART_COLOURS["residual"]),
    },
    "similarity of rebuilt rows to the full ones": {
        "temporal_only": ("μ·μ alone", PART_COLOURS["temporal"]),
        "input_only": ("χ·χ alone", PART_COLOURS["input"]),
        "no_residual": ("no residual", INK),
        "uniform": ("no term", INK),
    },
}
OPEN = ("uniform",)  # drawn as rings: a reference, and no part of a state
ROLES = {"predicted": "token predicted at the step", "read": "token read at the step"}


@dataclass(frozen=True)
class _Row:
    """A label and ``{share: (value, low, high)}``; low and high are None where one model was measured."""

    label: str
    shares: dict[str, tuple[float | None, float | None, float | None]]


def rank(row: dict) -> float:
    """What tokens are ordered by: how close μ·μ alone comes to the rows − how close χ·χ alone does.

    The substitution test, not the shares: a token whose rows neither term makes has two shares near zero, and
    would pass for input-driven as soon as that of μ·μ is a little negative.
    """
    return row["temporal_only"] - row["input_only"]


def extreme_tokens(result: Result, task: str, kind: str, role: str, each: int) -> list[dict]:
    """The tokens that lean most on time and those that lean least on it, the most temporal first, none twice.

    The last ones need not be input-driven: other terms may make their rows.
    """
    rows = [
        row
        for row in result.tables["tokens"]
        if (row["task"], row["kind"], row["role"]) == (task, kind, role)
    ]
    rows.sort(key=rank, reverse=True)
    return rows if len(rows) <= 2 * each else rows[:each] + rows[-each:]


def token_parts(result: Result, task: str, kind: str, role: str = "predicted", each: int = 12) -> Figure:
    """Of the frequent tokens, the ``each`` that lean most on time and the ``each`` that lean least on it."""
    found = extreme_tokens(result, task, kind, role, each)
    rows = [
        _Row(
            f"{_shown(row['token'])}  ({row['rows']})",
            {
                share: (row[share], row[f"{share}_low"], row[f"{share}_high"])
                for panel in PANELS.values()
                for share in panel
            },
        )
        for row in found
    ]
    title = f"{task_name(task)}, {kind}: by the {ROLES[role]} (number of its rows)"
    figure = _dot_panels(rows, title)
    if len(rows) == 2 * each:  # a gap in the list
        for axes in figure.get_axes():
            axes.axhline(each - 0.5, color=INK, lw=0.8, ls=(0, (1, 2)))
    return figure


def class_parts(result: Result, role: str = "predicted") -> Figure:
    """The same by class of token, for every task and architecture of the result."""
    rows = [
        _Row(
            f"{task_name(task)}, {kind}: {label.replace('_', ' ')}  ({found['rows']})",
            {
                share: tuple(found[share][end] for end in ("value", "low", "high"))
                for panel in PANELS.values()
                for share in panel
            },
        )
        for task in result.config["tokens_of"]
        for kind, values in result.values["tokens"].get(task, {}).items()
        for label, found in values["classes"][role].items()
    ]
    return _dot_panels(rows, f"By class of the {ROLES[role]} (number of its rows)")


def _dot_panels(rows: list[_Row], title: str) -> Figure:
    with style():
        figure = Figure(figsize=(8.6, 0.235 * len(rows) + 1.7))
        if not rows:
            figure.text(0.5, 0.5, "no token is measured yet", ha="center")
            return figure
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, (heading, shares) in zip((left, right), PANELS.items(), strict=True):
            for place, row in enumerate(reversed(rows)):
                axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
                for share, (_, colour) in shares.items():
                    _dot(axes, row.shares[share], place, colour, "white" if share in OPEN else colour)
            for share, (label, colour) in shares.items():
                face = "white" if share in OPEN else colour
                axes.plot([], [], "o", color=colour, markerfacecolor=face, label=label, ms=5, ls="")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=8.5,
                        handletextpad=0.1, columnspacing=0.8)  # fmt: skip
            axes.set_xlabel(heading)
            axes.set_ylim(-0.7, len(rows) - 0.3)
        left.axvline(0, color=INK, lw=0.7)
        right.set_xlim(0, 1.02)
        left.set_yticks(range(len(rows)), [row.label for row in reversed(rows)], fontsize=8.5)
        figure.suptitle(title, fontsize=10.5)
    return figure


def _dot(axes: Axes, interval: tuple, place: int, colour: str, face: str) -> None:
    value, low, high = interval
    if value is None:
        return
    if low is not None:
        axes.plot([low, high], [place, place], color=colour, lw=1.3, alpha=0.7)
    axes.plot(value, place, "o", color=colour, markerfacecolor=face, ms=5)


def _shown(token: str) -> str:
    marks = {"<eos>": "(end)", "<bos>": "(start)", "<unk>": "(unknown)"}
    return marks.get(token, token.removeprefix("I_").lower()).replace("$", r"\$")
