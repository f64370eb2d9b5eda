"""What one vector keeps of each word, and at which steps an exchanged word is written."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from companion.results.result import Result
from notebooks.shared.marks import line_of_dots, matrix
from notebooks.shared.style import GREEN, INK, PINK, WINE, network_name, style

ONE_VECTOR, ATTENTION = PINK, GREEN  # as in Part I
KINDS = {  # kind of network → label, colour, line style
    "VED": (network_name("VED"), ONE_VECTOR, "-"),
    "VED_less": ("the same, less training", ONE_VECTOR, ":"),
    "AED": (network_name("AED"), ATTENTION, "--"),
}
NARROW = 4.7  # inches, which a telephone shows whole
HEADING = {"fontsize": 9.5, "fontweight": "bold"}
FLIPPED = "share of sentences that write the new word"
LEAST = 0.05  # numbers below are not written into a matrix
DARK = 0.6  # from here on numbers are white


def kept_and_read(result: Result) -> Figure:
    """Draw the shares of the last encoder state, and where an exchanged word is written in two ways."""
    length = min(lengths_of(result))
    with style():
        figure = Figure(figsize=(NARROW, 5.6))
        panels = figure.subplot_mosaic([["kept", "kept"], ["old", "new"]], height_ratios=(1, 1.3))
        kept, old, new = panels["kept"], panels["old"], panels["new"]
        draw_shares(kept, pd.DataFrame(result.tables["memory"]), length)
        kept.set_title("Without attention the first word is kept best", loc="left", **HEADING)
        kept.set_ylabel("share of the\nlast encoder state")
        name_lines(kept)

        flips = exchanged(result, "VED", "component")
        heat_map(old, flips, "", "word exchanged")
        old.set_title("New word not read:\nlater steps write it, too", loc="left", **HEADING)
        old.set_ylabel("written at step")

        image = heat_map(new, exchanged(result, "VED", "read_too"), "", "word exchanged")
        new.set_title("New word read: only\nits own step writes it", loc="left", **HEADING)
        figure.colorbar(image, ax=[old, new], label=FLIPPED, location="bottom", shrink=0.8, aspect=40)
    return figure


def name_lines(axes: Axes) -> None:
    """Write the name of each kind of network beside the word that it keeps most strongly."""
    named = {"VED": (0.08, 0.63, "left"), "AED": (0.92, 0.86, "right")}
    for kind, (x, y, side) in named.items():
        label, colour, _ = KINDS[kind]
        ink = WINE if kind == "VED" else colour  # its own is too pale for letters
        axes.text(x, y, label, ha=side, va="center", color=ink, transform=axes.transAxes, fontsize=9)


def lengths_of(result: Result) -> list[int]:
    """Lengths of sentences, with the end mark, that networks without attention were measured on."""
    names = [name for name in result.values["VED"] if name.startswith("length_")]
    return sorted(int(name.removeprefix("length_")) for name in names)


def draw_points(axes: Axes, rows: pd.DataFrame, across: str, kind: str, shift: float = 0.0) -> None:
    """Draw values of a kind of network over a column that counts from 0, a little aside."""
    label, colour, line = KINDS[kind]
    places = rows[across] + 1 + shift
    estimates = rows[["value", "low", "high"]].to_dict("records")
    line_of_dots(axes, places, estimates, colour, ls=line, lw=1.3, ms=3.5, label=label, bar_width=1)


def draw_shares(axes: Axes, memory: pd.DataFrame, length: int) -> None:
    """Draw what each position of the sentence has of the last encoder state, without and with attention."""
    of_length = memory[memory["length"] == length]
    for shift, kind in ((-0.06, "VED"), (0.06, "AED")):
        rows = of_length[of_length["kind"] == kind]
        if len(rows):
            draw_points(axes, rows, "position", kind, shift)
    axes.set_xlabel("source position t")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(-0.03, 1.03)


def exchanged(result: Result, kind: str, way: str) -> Float[np.ndarray, "step position"] | None:
    """How often each step says the word that replaces each source word, in the shortest sentences."""
    rows = pd.DataFrame(result.tables["readout"])
    shortest = rows["length"] == min(result.config["length"])
    return as_matrix(rows[shortest & (rows["kind"] == kind) & (rows["way"] == way)], "flip")


def as_matrix(rows: pd.DataFrame, column: str) -> Float[np.ndarray, "step position"] | None:
    """Lay a column out by step and position; None where there is no row."""
    if rows.empty:
        return None
    return rows.pivot(index="step", columns="position", values=column).to_numpy()


def heat_map(axes: Axes, shares: Float[np.ndarray, "step word"], title: str, xlabel: str) -> AxesImage:
    """Draw shares from 0 to 1 as a heat map; the last step is the one that predicts the end mark."""
    steps, words = shares.shape
    every = max(1, words // 6)
    image = matrix(axes, shares, cmap="Purples", interpolation=None)
    axes.set_title(title, fontsize=9.5)
    axes.set_xlabel(xlabel)
    axes.set_xticks(range(0, words, every), range(1, words + 1, every))
    axes.set_yticks(
        range(0, steps, every), ["end" if step == words else step + 1 for step in range(0, steps, every)]
    )
    if words <= 8:
        write_numbers(axes, shares)
    return image


def write_numbers(axes: Axes, shares: Float[np.ndarray, "step word"]) -> None:
    """Write shares that are not small into their squares, without the zero before the point."""
    for step, word in np.argwhere(shares >= LEAST):
        share = shares[step, word]
        text = "1" if share >= 0.995 else f"{share:.2f}".removeprefix("0")
        ink = "white" if share > DARK else INK
        axes.text(word, step, text, ha="center", va="center", fontsize=8, color=ink)
