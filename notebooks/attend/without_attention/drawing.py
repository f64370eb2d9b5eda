"""Networks without attention: where the words are kept, when they are read out, how many fit."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style
from companion.results.result import Result

ONE_VECTOR, ATTENTION = "#cc79a7", "#009e73"  # as in Part I
KINDS = {  # name in the result → label, colour, line
    "VED": ("VED", ONE_VECTOR, "-"),
    "VED_less": ("VED, less training", ONE_VECTOR, ":"),
    "AED": ("AED", ATTENTION, "--"),
}


def _lengths(result: Result, table: str) -> list[int]:
    return sorted({record["length"] for record in result.tables[table]})


def _line(axes: Axes, records: list[dict], x: str, kind: str, shift: float = 0.0) -> None:
    """Values over a column with their intervals."""
    label, colour, line = KINDS[kind]
    places = [record[x] + 1 + shift for record in records]
    axes.plot(places, [record["value"] for record in records], line, color=colour, lw=1.3, marker="o", ms=3.5,
              label=label)  # fmt: skip
    for place, record in zip(places, records, strict=True):
        if record["low"] is not None and not math.isnan(record["low"]):
            axes.plot([place, place], [record["low"], record["high"]], color=colour, lw=1)


def memory_by_age(result: Result) -> Figure:
    """How much of the last encoder state each source word explains, by its position; a panel a length."""
    lengths = _lengths(result, "memory")
    with style():
        figure = Figure(figsize=(8.6, 2.9 if len(lengths) > 1 else 3.2))
        grid = figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0]
        for axes, length in zip(grid, lengths, strict=True):
            for shift, kind in ((-0.06, "VED"), (0.06, "AED")):
                records = [r for r in result.tables["memory"] if r["length"] == length and r["kind"] == kind]
                if records:
                    _line(axes, records, "position", kind, shift)
            axes.set_title(f"{length} words")
            axes.set_xlabel("source position t")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(-0.03, 1.03)
        grid[0].set_ylabel("share of the variance\nof the last encoder state")
        grid[0].legend(frameon=False, fontsize=9)
    return figure


def exchanged_words(result: Result, length: int, effect: str = "flip") -> Figure:
    """What exchanging one source word's component does to the prediction of each step, three ways."""
    panels = (
        ("VED", "component", "VED, reads on as before"),
        ("VED", "read_too", "VED, reads the new word too"),
        ("AED", "component", "AED, reads on as before"),
    )
    matrices = [
        (title, _matrix(result, "readout", effect, kind=kind, way=way, length=length))
        for kind, way, title in panels
    ]
    label = {
        "flip": "share of sentences that now say the new word",
        "variation": "total variation between predictions before and after",
    }[effect]
    matrices = [
        (title, _not_yet_read(matrix) if "words read\n" in title else matrix) for title, matrix in matrices
    ]
    turned = [(title, None if matrix is None else matrix.T) for title, matrix in matrices]
    return _heatmaps(turned, label, "predicted at step s", "source position t of the word")


def words_in_decoder(result: Result, length: int, kind: str = "VED") -> Figure:
    """Shares of the decoder state that each source word and each word read explain."""
    panels = (
        ("own", "source words\n(own words read)"),
        ("source", "source words\n(another's words read)"),
        ("read", "words read\n(another's words read)"),
    )
    matrices = [
        (title, _matrix(result, "decoder", column, rows="step", columns="position", kind=kind, length=length))
        for column, title in panels
    ]
    title, read = matrices[-1]
    matrices[-1] = title, _read_by_then(read)
    return _heatmaps(matrices, "share of the variance of the decoder state", "state at step s", "word")


def _read_by_then(matrix: np.ndarray | None) -> np.ndarray | None:
    """NaN, which is drawn blank, for words that come after the step."""
    if matrix is None:
        return None
    step, word = np.indices(matrix.shape)
    return np.where(word < step, matrix, np.nan)


def _matrix(
    result: Result, table: str, value: str, rows: str = "position", columns: str = "step", **where: object
) -> np.ndarray | None:
    records = [r for r in result.tables[table] if all(r[name] == given for name, given in where.items())]
    if not records:
        return None
    matrix = np.zeros([1 + max(record[name] for record in records) for name in (rows, columns)])
    for record in records:
        matrix[record[rows], record[columns]] = record[value]
    return matrix


def _heatmaps(matrices: list[tuple[str, np.ndarray | None]], label: str, down: str, across: str) -> Figure:
    """Matrices of (steps, words) side by side; the last step is the one that predicts the end mark."""
    drawn = [(title, matrix) for title, matrix in matrices if matrix is not None]
    steps, words = drawn[0][1].shape
    with style():
        figure = Figure(figsize=(8.6, 3.5))
        grid = figure.subplots(1, len(drawn), squeeze=False)[0]
        for axes, (title, matrix) in zip(grid, drawn, strict=True):
            image = axes.imshow(matrix, cmap="Oranges", vmin=0, vmax=1, aspect="auto")
            axes.set_title(title, fontsize=9.5)
            axes.set_xlabel(across)
            every = max(1, words // 6)
            axes.set_xticks(range(0, words, every), range(1, words + 1, every))
            axes.set_yticks(
                range(0, steps, every),
                ["end" if step == words else step + 1 for step in range(0, steps, every)],
            )
            if words <= 8:
                for place in np.ndindex(matrix.shape):
                    value = matrix[place]
                    if np.isnan(value):
                        continue
                    text = "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")
                    axes.text(place[1], place[0], text, ha="center", va="center", fontsize=8,
                              color="white" if value > 0.6 else INK)  # fmt: skip
        grid[0].set_ylabel(down)
        figure.colorbar(image, ax=list(grid), label=label, location="bottom", shrink=0.6, aspect=40)
    return figure


def capacity(result: Result) -> Figure:
    """Words right against the length of the sentence, and against the position in it."""
    kinds = [kind for kind in KINDS if kind in result.values]
    chance = 1 / result.config["words"]
    with style():
        figure = Figure(figsize=(8.6, 3.3))
        left, right = figure.subplots(1, 2, sharey=True)
        for index, kind in enumerate(kinds):
            found = result.values[kind]
            lengths = sorted(
                int(name.removeprefix("length_")) for name in found if name.startswith("length_")
            )
            records = [
                {"length": length - 1} | found[f"length_{length}"]["token_accuracy"] for length in lengths
            ]
            _line(left, records, "length", kind, 0.06 * (index - 1))
        left.set_xticks([length for length in _lengths(result, "accuracy")])
        left.set_xlabel("words in the sentence")
        left.set_ylabel("words right (teacher-forced)")
        left.legend(frameon=False, fontsize=9)
        for length in _lengths(result, "accuracy"):
            records = [
                r
                for r in result.tables["accuracy"]
                if r["kind"] == "VED" and r["length"] == length and r["position"] < length
            ]
            _line(right, records, "position", "VED")
            right.annotate(f"{length} words", (length, records[-1]["value"]), (4, 3),
                           textcoords="offset points", fontsize=8.5)  # fmt: skip
        right.set_xlabel("position in the sentence (VED)")
        for axes in (left, right):
            axes.axhline(chance, color="#555555", lw=1, ls="--")
            axes.annotate(
                "chance", (axes.get_xlim()[0], chance), (2, 3), textcoords="offset points", fontsize=8.5
            )
            axes.set_ylim(0, 1.04)
        right.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.margins(x=0.12)
    return figure
