"""What gets through one vector, and what through attention, over the length of the sentence."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.experiments.result import Result
from attnlib.plotting.blank import blank
from attnlib.plotting.style import INK, style

LINKS = {  # title, colour
    "initial": ("one vector, at the start", "#cc79a7"),
    "every_step": ("one vector, at every step", "#882255"),
    "attention": ("attention", "#009e73"),
}
QUALITIES = {"exact_match": "sentences without a fault", "token_accuracy": "words right (teacher-forced)"}


def widths_of(result: Result) -> list[int]:
    return sorted({row["width"] for row in result.tables["lengths"]})


def _shade(width: int, widths: list[int]) -> float:
    """The wider, the darker."""
    return 0.35 + 0.65 * (widths.index(width) + 1) / len(widths)


def _course(result: Result, link: str, width: int, quantity: str) -> list[dict]:
    rows = result.tables["lengths"]
    return [row for row in rows if (row["link"], row["width"], row["quantity"]) == (link, width, quantity)]


def _draw(axes: Axes, rows: list[dict], colour: str, shade: float, **look) -> None:
    rows = [row for row in rows if row["value"] is not None]
    lengths = [row["length"] for row in rows]
    axes.plot(lengths, [row["value"] for row in rows], color=colour, alpha=shade, lw=1.8, **look)
    if rows and rows[0]["low"] is not None:
        low, high = [row["low"] for row in rows], [row["high"] for row in rows]
        axes.fill_between(lengths, low, high, color=colour, alpha=0.12, lw=0)


def quality_by_length(result: Result) -> Figure:
    """Sentences without a fault, and words right, over the length; a panel a link, a line a width."""
    links = [link for link in LINKS if link in result.values]
    if not links:
        return blank()
    widths = widths_of(result)
    with style():
        figure = Figure(figsize=(8.6, 2.5 * len(QUALITIES) + 0.6))
        grid = figure.subplots(len(QUALITIES), len(links), squeeze=False, sharex=True, sharey=True)
        for row, (quantity, label) in zip(grid, QUALITIES.items(), strict=True):
            for axes, link in zip(row, links, strict=True):
                title, colour = LINKS[link]
                for width in widths:
                    rows = _course(result, link, width, quantity)
                    _draw(axes, rows, colour, _shade(width, widths), label=f"width {width}")
                axes.set_ylim(-0.03, 1.05)
                if quantity == "exact_match":
                    axes.set_title(title)
                    axes.legend(frameon=False, fontsize=8.5)
                else:
                    axes.set_xlabel("words of the sentence")
            row[0].set_ylabel(label, fontsize=9)
    return figure


def bits_by_length(result: Result) -> Figure:
    """Bits of a sentence and of a word over the length, with what the sentence holds."""
    links, widths = [link for link in LINKS if link in result.values], widths_of(result)
    if not links:
        return blank()
    lengths = sorted({row["length"] for row in result.tables["lengths"]})
    a_word = math.log2(result.config["words"])
    with style():
        figure = Figure(figsize=(8.6, 3.9))
        left, right = figure.subplots(1, 2)
        for link in links:
            title, colour = LINKS[link]
            for width in widths:
                shade, label = _shade(width, widths), f"{title}, width {width}"
                _draw(left, _course(result, link, width, "bits"), colour, shade, label=label)
                _draw(right, _course(result, link, width, "bits_of_word"), colour, shade)
        left.plot(lengths, [a_word * n for n in lengths], ":", color=INK, lw=1.2, label="what it holds")
        right.axhline(a_word, ls=":", color=INK, lw=1.2)
        _draw_share(right, result, lengths, a_word)
        left.set_ylim(min(-1.0, *left.get_ylim()), a_word * lengths[-1] * 1.05)
        right.set_ylim(-0.1, a_word * 1.12)
        left.set_ylabel("bits of the sentence that arrive")
        right.set_ylabel("bits of a word that arrive")
        for axes in (left, right):
            axes.set_xlabel("words of the sentence")
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def _draw_share(axes: Axes, result: Result, lengths: list[int], a_word: float) -> None:
    """The primer's arithmetic: a capacity shared evenly by the words, for the widest single vector."""
    widest = f"width_{max(result.config['width'])}"
    for link in ("initial", "every_step"):
        found = result.values.get(link, {}).get(widest)
        if found and found["capacity"]["value"] is not None:
            bits = found["capacity"]["value"]
            shares = [min(a_word, bits / n) for n in lengths]
            axes.plot(lengths, shares, "--", color=LINKS[link][1], lw=1.1)
            place = len(lengths) // 2
            axes.annotate(
                f"{bits:.0f} bits, shared",
                (lengths[place], shares[place]),
                xytext=(4, 6),
                textcoords="offset points",
                fontsize=8.5,
                color=LINKS[link][1],
            )


def probe_by_position(result: Result) -> Figure:
    """Bits that a linear probe reads off the one vector, by position; a panel a probed length."""
    rows = result.tables["probe"]
    lengths = sorted({row["length"] for row in rows})
    if not lengths:
        return blank()
    widths = widths_of(result)
    with style():
        figure = Figure(figsize=(8.6, 3.2))
        grid = figure.subplots(1, len(lengths), squeeze=False, sharey=True)[0]
        for axes, length in zip(grid, lengths, strict=True):
            for link, (title, colour) in LINKS.items():
                for width in widths:
                    own = [r for r in rows if (r["link"], r["width"], r["length"]) == (link, width, length)]
                    own = [row | {"length": row["position"] + 1} for row in own]
                    if own:
                        _draw(axes, own, colour, _shade(width, widths), label=f"{title}, width {width}")
            axes.axhline(math.log2(result.config["words"]), ls=":", color=INK, lw=1.2)
            axes.axhline(0, color="#cccccc", lw=0.8, zorder=0)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_title(f"{length} words")
            axes.set_xlabel("place in the sentence")
        grid[0].set_ylabel("bits of the word there")
        handles = grid[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=8.5)
    return figure
