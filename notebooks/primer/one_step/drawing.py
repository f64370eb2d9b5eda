"""One step of a decoder as bars, and weights along training."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from notebooks.shared.style import ARROW, GREEN, INK, OCHRE, PINK, WINE, blank, lines, style

WIDTH, HEIGHT = 3.7, 4.6  # inches; a telephone shows all of it
PERCENT_FROM = 0.05  # smaller shares have no number at their bar
WEIGHTS = {
    "aime_on_love": ("aime: love", WINE, "-"),
    "t_on_you": ("t': you", PINK, "-"),
    "chat_on_cat": ("chat: cat", GREEN, "-"),
    "chat_on_cat_and_the": ("chat: the + cat", OCHRE, "-"),
}


def the_step(worked: pd.DataFrame, predicted: pd.DataFrame) -> Figure:
    """Draw scores beside the weights that they become, and below them the likeliest next words."""
    if worked.empty:
        return blank()
    with style():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        panels = figure.subplot_mosaic(
            [["scores", "weights"], ["words", "words"]], height_ratios=[len(worked), len(predicted) + 1]
        )
        draw_bars(panels["scores"], worked["source"], worked["score"], GREEN)
        panels["scores"].set_title("1. scores", loc="left")
        draw_bars(panels["weights"], worked["source"], worked["attention"], GREEN)
        panels["weights"].set_title("2. weights", loc="left")
        panels["weights"].set_yticklabels([])
        draw_bars(panels["words"], predicted["word"], predicted["probability"], WINE)
        panels["words"].set_title("4. probability of the next word", loc="left")
        for name in ("weights", "words"):
            panels[name].set_xlim(0, 1.3)  # room for a number
            panels[name].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        write_percents(panels["weights"], worked["attention"])
        write_percents(panels["words"], predicted["probability"])
        say_what_the_context_is(panels["weights"], worked)
    return figure


def draw_bars(axes: Axes, names: pd.Series, values: pd.Series, colour: str) -> None:
    """Draw a bar for each word, the first one above."""
    axes.barh(range(len(values)), values, color=colour, height=0.7)
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(names)), list(names))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def write_percents(axes: Axes, shares: pd.Series) -> None:
    """Write its number behind each bar that is long enough to be seen."""
    for place, share in enumerate(shares):
        if share >= PERCENT_FROM:
            axes.text(share + 0.03, place, f"{100 * share:.0f} %", va="center", fontsize=9)


def say_what_the_context_is(axes: Axes, worked: pd.DataFrame) -> None:
    """Point from a note to the longest bar."""
    best = worked["attention"].argmax()
    note = f"3. the context\nis mostly the state\nof “{worked['source'].iloc[best]}”"
    longest = worked["attention"].iloc[best]
    below = best + 3.2 if best < len(worked) / 2 else best - 3.2
    axes.annotate(
        note, (longest / 2, best), (0.68, below), ha="center", va="center", fontsize=9,
        arrowprops=ARROW | {"shrinkB": 6},
    )  # fmt: skip


def weights_over_training(learned: pd.DataFrame) -> Figure:
    """Draw each weight over updates, a panel for each."""
    if learned.empty:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.6))
        grid = figure.subplots(1, len(WEIGHTS), sharey=True)
        for axes, (weight, look) in zip(grid, WEIGHTS.items(), strict=True):
            lines(axes, learned, "step", "weight", {weight: look}, lw=1.8, band=0.15)
            axes.set_title(look[0], color=look[1])
            axes.set_ylim(0, 1.02)
            axes.set_xlim(0, learned["step"].max())
            axes.set_xlabel("updates")
            axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        grid[0].set_ylabel("attention")
    return figure
