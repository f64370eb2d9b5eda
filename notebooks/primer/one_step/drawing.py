"""Attention of the shown sentences over training: the weights that the primers speak of."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlib.plots.style import style
from companion.results.result import Result
from notebooks.primer.one_step.experiment import PAIRS, WEIGHTS
from notebooks.shared.style import blank

COLOURS = {
    "aime_on_love": "#0072b2",
    "t_on_you": "#d55e00",
    "chat_on_cat": "#009e73",
    "chat_on_cat_and_the": "#56b4e9",
}


def name_of(weight: str) -> str:
    """A weight in words: predicted word and source words.

    >>> name_of("chat_on_cat_and_the")
    'chat: the + cat'
    """
    pair, place, sources = WEIGHTS[weight]
    source, target = (text.split() for text in PAIRS[pair])
    return f"{target[place]}: {' + '.join(source[t] for t in sources)}"


def weights_over_training(result: Result) -> Figure:
    """Each weight over updates, with its interval over networks; a panel a weight."""
    rows = result.tables["learned"]
    if not rows:
        return blank()
    with style():
        figure = Figure(figsize=(8.6, 2.6))
        grid = figure.subplots(1, len(COLOURS), sharey=True)
        for axes, (weight, colour) in zip(grid, COLOURS.items(), strict=True):
            own = [row for row in rows if row["weight"] == weight]
            steps = [row["step"] for row in own]
            axes.plot(steps, [row["value"] for row in own], color=colour, lw=1.8)
            if own[0]["low"] is not None:
                low, high = ([row[end] for row in own] for end in ("low", "high"))
                axes.fill_between(steps, low, high, color=colour, alpha=0.15, lw=0)
            axes.set_title(name_of(weight), color=colour)
            axes.set_ylim(0, 1.02)
            axes.set_xlim(0, steps[-1])
            axes.set_xlabel("updates")
            axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        grid[0].set_ylabel("attention")
    return figure
