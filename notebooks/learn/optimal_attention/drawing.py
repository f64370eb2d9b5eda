"""Optimal attention: the counterexample's triangle, a sentence as three maps, agreements with intervals."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style
from companion.results.result import Result
from notebooks.learn.optimal_attention.experiment import COUNTEREXAMPLE

MAPS = {"attention": "attention α", "probe": "lexical probe β", "optimal": "optimal attention α*"}
# Key below the values, label, colour; the first is what the paper prints.
AGREEMENTS = (
    ("summed.agreement.optimal_probe", "α*, β", PART_COLOURS["input"]),
    ("summed.agreement.optimal_other_probe", "α*, β of another run", "#e69f00"),
    ("summed.agreement.optimal_main_probe", "α*, β of the main model", "#cc79a7"),
    ("summed.agreement.learned_probe", "α, β", PART_COLOURS["temporal"]),
    ("joined.agreement.learned_probe", "α, β, main model", "#56b4e9"),
    ("summed.agreement.learned_optimal", "α, α*", PART_COLOURS["residual"]),
)
LIKELIHOODS = (
    ("summed.log_likelihood.optimal", "α*", PART_COLOURS["input"]),
    ("summed.log_likelihood.largest_probe", "all on the largest β", "#e69f00"),
    ("summed.log_likelihood.learned", "α, as learned", PART_COLOURS["temporal"]),
    ("summed.log_likelihood.uniform", "uniform", PART_COLOURS["residual"]),
)
PUBLISHED = 0.53  # 𝒜(α*, β) on Multi30k
_CORNERS = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])  # positions 1, 2, 3


def triangle(steps: int = 80) -> Figure:
    """Probability of the right word for every attention over the counterexample's three positions."""
    first, second = (grid.ravel() for grid in np.meshgrid(*2 * [np.arange(steps + 1)]))
    inside = first + second <= steps
    attention = np.stack([first, second, steps - first - second], 1)[inside] / steps
    logits = attention @ np.array(COUNTEREXAMPLE)
    right = 1 / np.exp(logits).sum(1)  # its logit is 0 everywhere
    x, y = (attention @ _CORNERS).T
    with style():
        figure = Figure(figsize=(5.4, 4.0))
        axes = figure.subplots()
        drawn = axes.tricontourf(x, y, right, levels=np.linspace(0, 0.9, 19), cmap="Greys")
        figure.colorbar(drawn, ax=axes, label="probability of the right word", ticks=np.arange(0, 1, 0.1))
        axes.plot(*_CORNERS[[0, 1, 2, 0]].T, color=INK, lw=1)
        axes.plot(0.5, 0, "o", color=PART_COLOURS["input"], ms=9, clip_on=False)
        axes.annotate(
            f"α*: {right.max():.2f}", (0.5, 0), (0, -14), textcoords="offset points", ha="center",
            va="top", color=PART_COLOURS["input"],
        )  # fmt: skip
        beta = 1 / np.exp(COUNTEREXAMPLE).sum(1)
        for place, (corner, shift) in enumerate(zip(_CORNERS, (8, -14, -14), strict=True)):
            axes.annotate(
                f"position {place + 1}\nβ = {beta[place]:.3f}", corner, (0, shift),
                textcoords="offset points", ha="center", va="bottom" if shift > 0 else "top", fontsize=9,
            )  # fmt: skip
        axes.set_xlim(-0.12, 1.12)
        axes.set_ylim(-0.14, 1.0)
        axes.set_aspect("equal")
        axes.axis("off")
    return figure


def sentence_maps(result: Result) -> Figure:
    """One held-out sentence: α, β and α^opt as grids of target word against source word."""
    records = result.tables["example"]
    source = {record["source_position"]: record["source"] for record in records}
    target = {record["target_position"]: record["target"] for record in records}
    with style():
        figure = Figure(figsize=(8.6, 1.5 + 0.26 * len(target)))
        panels = figure.subplots(1, len(MAPS), sharey=True)
        for axes, (name, title) in zip(panels, MAPS.items(), strict=True):
            matrix = np.zeros((len(target), len(source)))
            for record in records:
                matrix[record["target_position"], record["source_position"]] = record[name]
            image = axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
            axes.spines[:].set_visible(True)
            axes.set_title(title, loc="left")
            axes.set_xlabel("source")
            axes.set_xticks(list(source), [_word(one) for one in source.values()], rotation=90, fontsize=8.5)
            for row, column in enumerate(matrix.argmax(1)):  # the largest of each row
                axes.plot(column, row, ".", color=PART_COLOURS["input"], ms=5)
        panels[0].set_yticks(list(target), [_word(one) for one in target.values()], fontsize=8.5)
        panels[0].set_ylabel("word to be said")
        figure.colorbar(image, ax=list(panels), shrink=0.9, aspect=18)
    return figure


def of_multi30k(result: Result) -> bool:
    """Whether the translation models are of the text that the published numbers are of, all of it."""
    whole = result.config["train_pairs"] == result.config["n_validation"] == 0
    return whole and result.values["data"]["translation"] == "multi30k_en_de"


def agreements(result: Result) -> Figure:
    """Agreements with intervals and chance; beside them what each attention makes of the right words."""
    with style():
        figure = Figure(figsize=(8.8, 3.5))
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _dots(left, result, AGREEMENTS)
        chance = result.values["summed"]["agreement"]["chance"]["value"]
        if chance is not None:
            left.axvline(chance, color="#bbbbbb", lw=1, ls="--", zorder=0)
            left.annotate("chance", (chance, 0.0), (3, 3), xycoords=("data", "axes fraction"),
                          textcoords="offset points", fontsize=8.5, color="#777777")  # fmt: skip
        if of_multi30k(result):
            top = len(AGREEMENTS) - 1
            left.plot([PUBLISHED] * 2, [top - 2.3, top + 0.3], color=INK, lw=1, ls=":")
            left.annotate(f"published {PUBLISHED}", (PUBLISHED, top + 0.3), (0, 2), ha="center",
                          textcoords="offset points", fontsize=8.5)  # fmt: skip
        left.set_xlim(0, 1.02)
        left.set_xlabel("agreement of the first with the second")
        _dots(right, result, LIKELIHOODS)
        right.margins(x=0.14)
        right.set_xlabel("log-likelihood (nats a word)")
    return figure


def _dots(axes: Axes, result: Result, rows: tuple[tuple[str, str, str], ...]) -> None:
    for place, (key, _, colour) in enumerate(reversed(rows)):
        interval = result.value(key)
        axes.axhline(place, color="#e8e8e8", lw=0.8, zorder=0)
        if interval["value"] is None:
            continue
        if interval["low"] is not None:
            axes.plot([interval["low"], interval["high"]], [place, place], color=colour, lw=1.6)
        axes.plot(interval["value"], place, "o", color=colour, ms=6.5)
        axes.annotate(
            f"{interval['value']:.2f}".replace("-", "−"), (interval["value"], place), (0, 6),
            textcoords="offset points", ha="center", fontsize=8.5,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [label for _, label, _ in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.3)


def _word(piece: str) -> str:
    """A piece as a reader knows it; a dollar sign would start a formula."""
    plain = {"<bos>": "begin", "<eos>": "end", "<unk>": "?"}.get(piece, piece.removeprefix("▁") or piece)
    return plain.replace("$", r"\$")[:12]
