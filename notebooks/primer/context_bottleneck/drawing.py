"""What gets through one vector, and what through attention, over the length of the sentence."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import INK, style
from companion.results.result import Result
from notebooks.shared.style import blank

LINKS = {  # title, colour
    "initial": ("one vector, at the start", "#cc79a7"),
    "every_step": ("one vector, at every step", "#882255"),
    "attention": ("attention", "#009e73"),
}
QUALITIES = {"exact_match": "sentences without a fault", "token_accuracy": "words right (teacher-forced)"}
_SHARED = "--"
BITS = {"bits": "bits of the sentence that arrive", "bits_of_word": "bits of a word that arrive"}


def widths_of(result: Result) -> list[int]:
    return sorted({row["width"] for row in result.tables["lengths"]})


def _shade(width: int, widths: list[int]) -> float:
    """The wider, the darker."""
    return 1.0 if len(widths) == 1 else 0.35 + 0.65 * widths.index(width) / (len(widths) - 1)


def _draw(axes: Axes, rows: list[dict], colour: str, shade: float) -> None:
    rows = [row for row in rows if row["value"] is not None]
    lengths = [row["length"] for row in rows]
    axes.plot(lengths, [row["value"] for row in rows], color=colour, alpha=shade, lw=1.8)
    if rows and rows[0]["low"] is not None:
        low, high = [row["low"] for row in rows], [row["high"] for row in rows]
        axes.fill_between(lengths, low, high, color=colour, alpha=0.12, lw=0)


def _over_lengths(result: Result, quantities: dict[str, str]) -> tuple[Figure, dict[str, dict[str, Axes]]]:
    """A row a quantity, a column a link, a line a width; the axes by quantity and link."""
    links, widths = [link for link in LINKS if link in result.values], widths_of(result)
    figure = Figure(figsize=(8.6, 2.5 * len(quantities) + 0.6))
    grid = figure.subplots(len(quantities), len(links), squeeze=False, sharex=True, sharey="row")
    for row, (quantity, label) in zip(grid, quantities.items(), strict=True):
        for axes, link in zip(row, links, strict=True):
            for width in widths:
                kind = {"link": link, "width": width, "quantity": quantity}
                rows = [own for own in result.tables["lengths"] if kind.items() <= own.items()]
                _draw(axes, rows, LINKS[link][1], _shade(width, widths))
        row[0].set_ylabel(label, fontsize=9)
    for axes, link in zip(grid[0], links, strict=True):
        axes.set_title(LINKS[link][0])
    for axes in grid[-1]:
        axes.set_xlabel("words of the sentence")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    return figure, {
        name: dict(zip(links, row, strict=True)) for name, row in zip(quantities, grid, strict=True)
    }


def _name_lines(figure: Figure, widths: list[int], further: dict[str, str] | None = None) -> None:
    """Above the figure, the shades of the widths, and label and line style of what else is drawn."""
    lines = [Line2D([], [], color=INK, alpha=_shade(width, widths), lw=1.8) for width in widths]
    names = [f"width {width}" for width in widths]
    for name, line in (further or {}).items():
        lines.append(Line2D([], [], color=INK, ls=line, lw=1.2))
        names.append(name)
    figure.legend(
        lines, names, loc="outside upper center", ncols=min(6, len(names)), frameon=False, fontsize=8.5
    )


def quality_by_length(result: Result) -> Figure:
    """Sentences without a fault, and words right, over the length; a panel a link, a line a width."""
    if not any(link in result.values for link in LINKS):
        return blank()
    with style():
        figure, grid = _over_lengths(result, QUALITIES)
        for row in grid.values():
            for axes in row.values():
                axes.set_ylim(-0.03, 1.05)
        _name_lines(figure, widths_of(result))
    return figure


def bits_by_length(result: Result) -> Figure:
    """Bits of a sentence and of a word over the length, with what the sentence holds."""
    if not any(link in result.values for link in LINKS):
        return blank()
    lengths = sorted({row["length"] for row in result.tables["lengths"]})
    a_word = math.log2(result.config["words"])
    with style():
        figure, grid = _over_lengths(result, BITS)
        for axes in grid["bits"].values():
            axes.plot(lengths, [a_word * n for n in lengths], ":", color=INK, lw=1.2)
            axes.set_ylim(-0.05 * a_word * lengths[-1], a_word * lengths[-1] * 1.05)
        for link, axes in grid["bits_of_word"].items():
            axes.axhline(a_word, ls=":", color=INK, lw=1.2)
            axes.set_ylim(-0.1, a_word * 1.12)
            _draw_share(axes, result, link, lengths)
        _name_lines(
            figure, widths_of(result), {"what it holds": ":", "the most that arrives, shared": _SHARED}
        )
    return figure


def _draw_share(axes: Axes, result: Result, link: str, lengths: list[int]) -> None:
    """The primer's arithmetic: a capacity shared evenly by the words, for the widest single vector."""
    found = result.values[link].get(f"width_{max(result.config['width'])}")
    if link == "attention" or not found or found["capacity"]["value"] is None:
        return
    bits, a_word = found["capacity"]["value"], math.log2(result.config["words"])
    axes.plot(lengths, [min(a_word, bits / n) for n in lengths], _SHARED, color=INK, lw=1.2)
    place = len(lengths) // 2
    axes.annotate(
        f"{bits:.0f} bits, shared",
        (lengths[place], min(a_word, bits / lengths[place])),
        xytext=(4, 6),
        textcoords="offset points",
        fontsize=8.5,
    )


def probe_by_position(result: Result) -> Figure:
    """Bits that a linear probe reads off the one vector, by position; a row a link, a column a length."""
    rows = result.tables["probe"]
    lengths = sorted({row["length"] for row in rows})
    links = [link for link in LINKS if any(row["link"] == link for row in rows)]
    if not lengths:
        return blank()
    widths = widths_of(result)
    with style():
        figure = Figure(figsize=(8.6, 1.9 * len(links) + 0.8))
        grid = figure.subplots(len(links), len(lengths), squeeze=False, sharey=True, sharex="col")
        for line, link in zip(grid, links, strict=True):
            for axes, length in zip(line, lengths, strict=True):
                for width in widths:
                    kind = {"link": link, "width": width, "length": length}
                    own = [
                        row | {"length": row["position"] + 1} for row in rows if kind.items() <= row.items()
                    ]
                    _draw(axes, own, LINKS[link][1], _shade(width, widths))
                axes.axhline(math.log2(result.config["words"]), ls=":", color=INK, lw=1.2)
                axes.axhline(0, color="#cccccc", lw=0.8, zorder=0)
                axes.set_ylim(-0.3, 1.12 * math.log2(result.config["words"]))
                axes.set_xticks([1, length])
            line[0].set_ylabel(f"bits of the word there,\n{LINKS[link][0]}", fontsize=8.5)
        for axes, length in zip(grid[0], lengths, strict=True):
            axes.set_title(f"{length} words")
        figure.supxlabel("place in the sentence", fontsize=10)
        _name_lines(figure, widths, {"what a word holds": ":"})
    return figure
