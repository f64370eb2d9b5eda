"""Count tables as grids of words, and the first derivative of the bag of words over its width."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.plots.style import INK, PART_COLOURS, style
from companion.results.result import Result

CORPUS_NAMES = {
    "lexicon": "a lexicon",
    "permutation": "permutations",
    "sample": "4 of 6 letters",
    "mixture": "two sets, mixed",
    "polarity": "labels",
}
TABLE_NAMES = {
    "counts": "count table C",
    "translation": "Trans, from C",
    "iterated": "Trans, after iterations",
}
ALIGNMENT_NAMES = {"counted": "α, from C", "iterated": "α, after iterations"}
# Each corpus in one colour and shape, whatever else is drawn.
LOOKS = {
    "lexicon": (PART_COLOURS["temporal"], "o"),
    "sample": (PART_COLOURS["input"], "s"),
    "mixture": ("#009e73", "^"),
    "polarity": ("#cc79a7", "D"),
}


def count_grids(
    result: Result, corpora: tuple[str, ...], tables: tuple[str, ...] = tuple(TABLE_NAMES)
) -> Figure:
    """Tables of words as grids, a row a corpus, a column a table; darker is more.

    Count tables are scaled to their own largest entry, probabilities to one.
    """
    with style():
        figure = Figure(figsize=(8.6, 2.6 * len(corpora)))
        grid = figure.subplots(len(corpora), len(tables), squeeze=False)
        for row, corpus in zip(grid, corpora, strict=True):
            for axes, table in zip(row, tables, strict=True):
                records = [r for r in result.tables["counts"] if (r["corpus"], r["table"]) == (corpus, table)]
                words = [list(dict.fromkeys(r[side] for r in records)) for side in ("source", "target")]
                _draw_table(axes, records, *words, counted=table == "counts")
                axes.set_title(TABLE_NAMES[table] if axes in grid[0] else "", loc="left")
            row[0].set_ylabel(f"{CORPUS_NAMES[corpus]}\nsource word")
        for axes in grid[-1]:
            axes.set_xlabel("target word")
    return figure


def alignment_grids(result: Result, corpora: tuple[str, ...]) -> Figure:
    """α of each corpus's first pair, a row a corpus: from the count table, and after the iterations."""
    found = {
        place: [row for row in result.tables["alignments"] if (row["corpus"], row["table"]) == place]
        for place in ((corpus, table) for corpus in corpora for table in ALIGNMENT_NAMES)
    }
    heights = [1 + max(row["target_position"] for row in found[corpus, "counted"]) for corpus in corpora]
    with style():
        figure = Figure(figsize=(7.2, 0.4 * sum(heights) + 1.1 * len(corpora)))
        grid = figure.subplots(len(corpora), len(ALIGNMENT_NAMES), squeeze=False, height_ratios=heights)
        for (corpus, table), axes in zip(found, grid.flat, strict=True):
            records = found[corpus, table]
            sources, targets = (
                list({row[f"{side}_position"]: row[side] for row in records}.values())
                for side in ("source", "target")
            )
            _draw_table(axes, records, targets, sources)
            axes.set_title(ALIGNMENT_NAMES[table] if axes in grid[0] else "", loc="left")
        for row, corpus in zip(grid, corpora, strict=True):
            row[0].set_ylabel(f"{CORPUS_NAMES[corpus]}\ntarget word")
        for axes in grid[-1]:
            axes.set_xlabel("source word")
    return figure


def _draw_table(
    axes: Axes, records: list[dict], rows: list[str], columns: list[str], *, counted: bool = False
) -> None:
    values = np.array([record["value"] for record in records]).reshape(len(rows), len(columns))
    top = values.max() if counted else 1
    axes.imshow(values, cmap="Greys", vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    small = max(len(rows), len(columns)) > 8
    upright = 90 if max(map(len, columns)) > 3 else 0
    axes.set_xticks(range(len(columns)), columns, rotation=upright, fontsize=7.5 if small else 9)
    axes.set_yticks(range(len(rows)), rows, fontsize=7.5 if small else 9)
    if len(columns) > 8:
        return
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        text = f"{value:.0f}" if counted else f"{value:.2f}"
        dark = value > 0.55 * top
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else INK)


def convergence(result: Result) -> Figure:
    """Left, the error of the derivative in theory over the width; right, measured over theory as a slope.

    Filled marks are the logits against 2 (C − mean C); open ones the probabilities against the same, as
    printed. Dashed lines stand at 1/N for N target words, where that factor would bring them.
    """
    with style():
        figure = Figure(figsize=(8.6, 3.9))
        left, right = figure.subplots(1, 2)
        for corpus, (colour, marker) in LOOKS.items():
            rows = [row for row in result.tables["derivative"] if row["corpus"] == corpus]
            widths = sorted({row["width"] for row in rows})

            def mean(field, widths=widths, rows=rows):
                return [np.mean([row[field] for row in rows if row["width"] == width]) for width in widths]

            look = {"color": colour, "marker": marker, "ms": 5, "lw": 1.2}
            left.plot(widths, mean("logits_error"), label=CORPUS_NAMES[corpus], **look)
            left.plot(widths, mean("derived_error"), mfc="white", ls=":", **look)
            right.plot(widths, mean("logits_slope"), label=CORPUS_NAMES[corpus], **look)
            right.plot(widths, mean("printed_slope"), mfc="white", ls=":", **look)
            outputs = result.values["derivative"][corpus]["outputs"]
            right.axhline(1 / outputs, color=colour, lw=0.8, ls="--", zorder=0)
            right.annotate(f"1/{outputs}", (widths[-1], 1 / outputs), (10, 0), textcoords="offset points",
                           va="center", fontsize=8.5, color=colour)  # fmt: skip
        right.axhline(1, color=INK, lw=0.8, ls="--", zorder=0)
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
            axes.set_xlabel("width of the bag of words")
        left.set_yticks([0.01, 0.03, 0.1, 0.3])
        right.set_yticks([0.1, 0.2, 0.5, 1.0])
        left.set_ylabel("error, over the size of the theory's")
        left.set_title("logits (filled) and probabilities,\nas derived (open)", loc="left")
        right.set_ylim(0.06, 1.4)
        right.set_ylabel("slope of measured over 2 (C − mean C)")
        right.set_title("logits (filled) and probabilities,\nas printed (open)", loc="left")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure
