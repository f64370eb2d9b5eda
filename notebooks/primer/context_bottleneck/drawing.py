"""What arrives of a sentence over its length, a line for each width: the wider, the darker."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from companion.results.result import Result
from notebooks.shared.marks import grid, line_with_band, name_ends
from notebooks.shared.style import ARROW, GREEN, INK, PINK, WINE, blank, style

LINKS = {  # what the decoder gets → title, colour
    "initial": ("one vector, at the start", PINK),
    "every_step": ("one vector, at every step", WINE),
    "attention": ("attention", GREEN),
}
NARROW = 3.75  # inches, which a telephone shows whole
COMPARED = {  # colour; its name and where it ends, in shares of the panel
    "attention": (GREEN, ("with attention", 0.7, 0.78)),
    "initial": (WINE, ("one vector, by width", 1.12, 0.64)),
}


def links_of(result: Result) -> list[str]:
    return [link for link in LINKS if link in result.values]


def vector_or_attention(result: Result) -> Figure:
    """Draw bits of a sentence over its length: one vector of each width, and attention at the widest."""
    links = [link for link in COMPARED if link in links_of(result)]
    if not links:
        return blank()
    rows = pd.DataFrame(result.tables["lengths"]).query("quantity == 'bits'")
    widths, lengths = sorted(set(rows["width"])), sorted(set(rows["length"]))
    held = [math.log2(result.config["words"]) * length for length in lengths]
    ends: dict[str, tuple[float, str]] = {}
    with grid(1, 1, size=(NARROW, 3.6)) as (figure, ((axes,),)):
        axes.plot(lengths, held, ":", color=INK, lw=1.4)
        for link in links:
            shown = widths if link == "initial" else widths[-1:]
            here = rows[rows["link"] == link]
            colour, where = COMPARED[link]
            draw_widths(axes, here, "length", colour, shown)
            for width in shown:
                last = here[(here["width"] == width) & here["value"].notna()].tail(1)
                if link == "initial" and len(last):
                    ends[str(width)] = (float(last["value"].iloc[0]), colour)
            name, right, above = where
            axes.text(right * lengths[-1], above * held[-1], name, color=colour, ha="right", fontsize=9.5)
        name_ends(axes, ends, lengths[-1], closest=0.06 * held[-1])
        axes.set_title(
            "With one vector the bits reach a maximum;\nwith attention nearly all arrive", loc="left"
        )
        axes.set_xlabel("words of the sentence")
        axes.set_ylabel("bits of the sentence that arrive")
        axes.set_xlim(right=1.12 * lengths[-1])
        axes.set_ylim(-0.1 * held[-1], held[-1] * 1.05)  # all of the bands
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return figure


def bits_by_length(result: Result) -> Figure:
    """Draw bits of a sentence over its length, what it holds, and what a fixed capacity would leave of it."""
    if not links_of(result):
        return blank()
    lengths = sorted(set(pd.DataFrame(result.tables["lengths"])["length"]))
    held = [math.log2(result.config["words"]) * length for length in lengths]
    further = {"what it holds": ":", "the most bits of any sentence": "--"}
    with style():
        figure, panels = over_lengths(result, {"bits": "bits of the sentence that arrive"}, further)
        for link, axes in panels["bits"].items():
            axes.plot(lengths, held, ":", color=INK, lw=1.2)
            axes.set_ylim(-0.03 * held[-1], held[-1] * 1.05)
            if link == "attention":
                say_nearly_all(axes, lengths, held)
            else:
                draw_capacity(axes, capacity_of(result, link), lengths, held)
    return figure


def say_nearly_all(axes: Axes, lengths: Sequence[int], held: Sequence[float]) -> None:
    """Point at the upper end of the line of what sentences hold."""
    place, written = (lengths[-1] * 0.8, held[-1] * 0.78), (lengths[-1], held[-1] * 0.3)
    axes.annotate("nearly all arrives", place, written, ha="right", fontsize=9.5, arrowprops=ARROW)


def capacity_of(result: Result, link: str) -> float | None:
    """The most bits of any sentence that arrive in the widest network; None where that is not known."""
    widest = result.values[link].get(f"width_{max(result.config['width'])}")
    return widest["capacity"]["value"] if widest else None


def draw_capacity(axes: Axes, bits: float | None, lengths: Sequence[int], held: Sequence[float]) -> None:
    """Draw what a fixed capacity would leave of sentences that hold so many bits."""
    if bits is None:
        return
    axes.plot(lengths, [min(bits, all_of_it) for all_of_it in held], "--", color=INK, lw=1.2)
    axes.annotate(
        f"{bits:.0f} bits",
        (lengths[-1] * 0.55, bits),
        (lengths[0], held[-1] * 0.62),
        fontsize=9.5,
        arrowprops=ARROW,
    )


Panels = dict[str, dict[str, Axes]]  # by quantity and link


def over_lengths(
    result: Result, quantities: Mapping[str, str], further: Mapping[str, str]
) -> tuple[Figure, Panels]:
    """Draw a row of panels for each quantity, a column for each link.

    ``quantities`` have labels by column of the result, ``further`` line styles of what is added, by name.
    """
    rows, links = pd.DataFrame(result.tables["lengths"]), links_of(result)
    widths = sorted(set(rows["width"]))
    size = (8.6, 2.5 * len(quantities) + 0.6)
    with grid(len(quantities), len(links), size=size, sharex=True, sharey="row") as (figure, panels):
        for line, (quantity, label) in zip(panels, quantities.items(), strict=True):
            for axes, link in zip(line, links, strict=True):
                here = rows[(rows["link"] == link) & (rows["quantity"] == quantity)]
                draw_widths(axes, here, "length", LINKS[link][1], widths)
            line[0].set_ylabel(label, fontsize=9)
        for axes, link in zip(panels[0], links, strict=True):
            axes.set_title(LINKS[link][0])
        for axes in panels[-1]:
            axes.set_xlabel("words of the sentence")
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        name_lines(figure, widths, further)
    return figure, {
        name: dict(zip(links, line, strict=True)) for name, line in zip(quantities, panels, strict=True)
    }


def draw_widths(axes: Axes, rows: pd.DataFrame, across: str, colour: str, widths: Sequence[int]) -> None:
    """Draw a line and a band for each width: the wider, the darker."""
    for width in widths:
        known = rows[(rows["width"] == width) & rows["value"].notna()]
        line_with_band(axes, known[across], known, colour, band=0.12, alpha=shade(width, widths), lw=1.8)


def name_widths(axes: Axes, rows: pd.DataFrame) -> None:
    """Write the width beside the right end of each line of a panel."""
    known = rows[rows["value"].notna()]
    if known.empty:
        return
    ends = known[known["place"] == known["place"].max()].sort_values("width")
    heights = {str(width): (value, INK) for width, value in zip(ends["width"], ends["value"], strict=True)}
    low, high = axes.get_ylim()
    name_ends(axes, heights, ends["place"].iloc[0], closest=0.1 * (high - low), fontsize=8.5)


def shade(width: int, widths: Sequence[int]) -> float:
    """Opacity of a width, 1 of the widest."""
    if len(widths) == 1:
        return 1.0
    return 0.35 + 0.65 * widths.index(width) / (len(widths) - 1)


def name_lines(figure: Figure, widths: Sequence[int], further: Mapping[str, str]) -> None:
    """Say above the figure what shades and line styles mean."""
    handles = [Line2D([], [], color=INK, alpha=shade(width, widths), lw=1.8) for width in widths]
    handles += [Line2D([], [], color=INK, ls=line, lw=1.2) for line in further.values()]
    names = [*(f"width {width}" for width in widths), *further]
    figure.legend(
        handles, names, loc="outside upper center", ncols=min(6, len(names)), frameon=False, fontsize=8.5
    )
