"""Attention against gold word alignments: error rates by subset of terms, term by term, and one sentence."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import INK, PART_COLOURS, PART_SYMBOLS, style, task_name
from companion.results.result import Result, kinds_of, tasks_of
from notebooks.shared.bands import panels
from notebooks.shared.dots import Dot, dot_rows

# Neither aligner has parts: a green and a purple of Okabe and Ito's, which no part of a state has.
ALIGNER_COLOURS = {"ibm_model_1": "#009e73", "diagonal": "#aa4499"}
FRAME = (-0.05, 1.05)  # of rates, with room for their intervals
LETTERS = 14  # of a word along an axis; a longer one ends in an ellipsis
LABELS = {
    "error_rate": "alignment error rate (0: the gold links)",
    "mass_on_gold": "attention on gold links (1: all of it)",
}
SOURCES = {  # in the example, by name in its table
    "full": "full attention",
    "temporal_only": "μ·μ alone",
    "input_only": "χ·χ alone",
    "no_residual": "no residual",
    "ibm_model_1": "IBM Model 1",
}


def alignment_errors(result: Result) -> Figure:
    """Error rate and attention on gold links, of the full attention, of terms alone, and of two aligners."""
    asked = ("error_rate", "mass_on_gold")
    shown = dict(zip(("links", "weights"), map(_dots, asked), strict=True))
    figure = dot_rows(result, shown, xlabel="", xlim=FRAME, row_height=0.62, columns=4)
    for axes, quality in zip(figure.get_axes(), asked, strict=False):  # a blank figure has no axes
        axes.set_xlabel(LABELS[quality])
    return figure


def _dots(quality: str) -> list[Dot]:
    def of(key: str) -> str:
        return f"{key}.{quality}"

    colours = PART_COLOURS
    return [
        Dot(of("attention.full"), "full attention", INK, shift=0.3),
        Dot(of("attention.no_residual"), "all terms without residuals", INK, open=True, shift=0.18),
        Dot(of("attention.temporal_only"), "μ·μ alone", colours["temporal"], shift=0.06),
        Dot(of("attention.input_only"), "χ·χ alone", colours["input"], shift=-0.06),
        Dot(of("attention.with_residual_only"), "residual terms alone", colours["residual"], shift=-0.18),
        Dot(of("references.ibm_model_1"), "IBM Model 1", ALIGNER_COLOURS["ibm_model_1"], "D", shift=-0.28),
        Dot(of("references.diagonal"), "diagonal", ALIGNER_COLOURS["diagonal"], "D", open=True, shift=-0.4),
    ]  # fmt: skip


def rules(result: Result) -> Figure:
    """Error rate of the same attention under three rules of making links."""
    titles = {"words": "predicted word", "null": "with a null word", "read": "word read"}
    found = {
        title: [
            Dot(f"rules.{rule}.full.error_rate", "full attention", INK, shift=0.24),
            Dot(f"rules.{rule}.no_residual.error_rate", "no residuals", INK, open=True, shift=0.08),
            Dot(f"rules.{rule}.temporal_only.error_rate", "μ·μ alone", PART_COLOURS["temporal"], shift=-0.08),
            Dot(f"rules.{rule}.input_only.error_rate", "χ·χ alone", PART_COLOURS["input"], shift=-0.24),
            Dot(f"rules.{rule}.ibm_model_1.error_rate", "IBM Model 1", ALIGNER_COLOURS["ibm_model_1"], "D"),
        ]
        for rule, title in titles.items()
    }
    legend = found["predicted word"]
    return dot_rows(result, found, xlabel="alignment error rate", xlim=FRAME, legend=legend, columns=5)


def term_grids(result: Result, asked: str = "alone") -> Figure:
    """Each of the nine terms, decoder part down and encoder part across, for each task and architecture.

    Args:
        asked: ``alone`` (error rate of the attention from one term) or ``without`` (how much the error rate
            rises when one term is left out).
    """
    by_kind = {(task, kind): _terms(found, asked) for task, kind, found in kinds_of(result)}

    def draw(axes: Axes, task: str, kind: str, leftmost: bool, lowest: bool) -> bool:
        if (task, kind) not in by_kind:
            return False
        _draw_terms(axes, by_kind[task, kind], asked)
        axes.set_ylabel("decoder part" if leftmost else "")
        axes.set_xlabel("encoder part" if lowest else "")
        return True

    kinds = list(dict.fromkeys(kind for _, kind in by_kind))
    return panels(tasks_of(result), kinds, draw, width=2.15, height=2.3)


def _terms(found: dict, asked: str) -> dict[tuple[int, int], dict]:
    """Intervals by (decoder part, encoder part)."""
    if asked == "alone":
        of = {pair: found["attention"][f"only_{pair}"]["error_rate"] for pair in found["rise_without"]}
    else:
        of = found["rise_without"]
    return {(i, j): of[f"{PART_NAMES[i]}_{PART_NAMES[j]}"] for i, j in np.ndindex(3, 3)}


def _draw_terms(axes: Axes, terms: dict[tuple[int, int], dict], asked: str) -> None:
    matrix, texts = np.full((3, 3), np.nan), {}
    for place, found in terms.items():
        if found["value"] is None:
            continue
        matrix[place] = found["value"]
        half = "" if found["low"] is None else f"\n±{(found['high'] - found['low']) / 2:.2f}"
        number = f"{found['value']:{'' if asked == 'alone' else '+'}.2f}"
        texts[place] = {"+0.00": "0.00", "-0.00": "0.00"}.get(number, number.replace("-", "−")) + half
    low, high, colours = (0, 1, "Greys_r") if asked == "alone" else (-0.6, 0.6, "PuOr_r")
    axes.imshow(matrix, cmap=colours, vmin=low, vmax=high)
    for (i, j), text in texts.items():
        dark = matrix[i, j] < 0.45 if asked == "alone" else abs(matrix[i, j]) > 0.4
        axes.text(j, i, text, ha="center", va="center", fontsize=8, linespacing=1.1,
                  color="white" if dark else INK)  # fmt: skip
    symbols = [PART_SYMBOLS[name] for name in PART_NAMES]
    axes.set_xticks(range(3), symbols, fontsize=10)
    axes.set_yticks(range(3), symbols, fontsize=10)
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        for label, name in zip(ticks, PART_NAMES, strict=True):
            label.set_color({"residual": "#666666"}.get(name, PART_COLOURS[name]))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def example(result: Result, task: str, kind: str) -> Figure:
    """One sentence as full attention, some of its terms and IBM Model 1 align it; gold links are framed."""
    rows = [row for row in result.tables["example"] if (row["task"], row["kind"]) == (task, kind)]
    by_source: dict[str, list[dict]] = {}
    for row in rows:
        by_source.setdefault(row["links_from"], []).append(row)
    with style():
        figure = Figure(figsize=(8.6, 3.1))
        if not rows:
            figure.text(0.5, 0.5, "no model of this kind is measured yet", ha="center")
            return figure
        grid = figure.subplots(1, len(SOURCES), sharey=True)
        for axes, (source, title) in zip(grid, SOURCES.items(), strict=True):
            _draw_example(axes, by_source["full"], by_source.get(source, []))
            axes.set_title(title, fontsize=9.5, color=_colour(source))
        grid[0].set_ylabel("predicted word")
        figure.supxlabel("source word", fontsize=10)
    return figure


def _colour(source: str) -> str:
    parts = {"temporal_only": PART_COLOURS["temporal"], "input_only": PART_COLOURS["input"]}
    return (parts | ALIGNER_COLOURS).get(source, INK)


def _draw_example(axes: Axes, full: list[dict], rows: list[dict]) -> None:
    """The weights in ``rows``; words and gold links are those of ``full``, which has every entry."""
    source = {row["source_position"]: row["source"] for row in full}
    target = {row["target_position"]: row["target"] for row in full}
    matrix = np.zeros((len(target), len(source)))
    for row in rows:
        matrix[row["target_position"], row["source_position"]] = row["attention"]
    for row in full:
        if row["gold"]:
            corner = (row["source_position"] - 0.46, row["target_position"] - 0.46)
            axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, lw=1.1, edgecolor="#cc3311"))
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set_xticks(list(source), [_shown(word) for word in source.values()], rotation=90, fontsize=8)
    axes.set_yticks(list(target), [_shown(word) for word in target.values()], fontsize=8)
    axes.spines[:].set_visible(True)


def _shown(word: str) -> str:
    """A word that is not in the vocabulary as a question mark; a dollar sign would start a formula."""
    word = {"<unk>": "?"}.get(word, word)
    word = word if len(word) <= LETTERS else f"{word[: LETTERS - 1]}…"
    return word.replace("$", r"\$")


# Which tokens attend by time and which by input: single tokens, and classes of them.

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
            f"{_shown_token(row['token'])}  ({row['rows']})",
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


def _shown_token(token: str) -> str:
    marks = {"<eos>": "(end)", "<bos>": "(start)", "<unk>": "(unknown)"}
    return marks.get(token, token.removeprefix("I_").lower()).replace("$", r"\$")
