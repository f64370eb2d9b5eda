"""The nine covariance shares of a score as a square of squares."""

from collections.abc import Mapping, Sequence
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.book.numbers import written
from companion.claims.presupposed import holds
from companion.results.result import Result, kinds_of
from notebooks.shared.marks import Estimate, grid
from notebooks.shared.style import INK, PART_COLOURS, PART_NAMES, PART_SYMBOLS, network_name, task_name

WIDTH_OF_GRID = 2.35  # inches; a telephone shows two of them whole
WORDS = {"temporal": "position", "input": "word", "residual": "memory"}
SMALLEST = 0.005  # share that is written: what rounds to 0.00 is not
HALF = 0.47  # of the side of a square
FAINT = "#666666"  # what is written of a residual, or of networks that have not learned

Shares = Mapping[str, Estimate]  # by the decoder's part and the encoder's, ``temporal_input``


def chosen_grids(result: Result, tasks: Sequence[str]) -> Figure:
    """Draw a grid for each task (row) and architecture (column), and say what leads in it."""
    kinds = chosen_kinds(result, tasks)
    size = (WIDTH_OF_GRID * max(len(kinds), 2), 2.75 * len(tasks) + 0.2)
    with grid(len(tasks), len(kinds), size=size) as (figure, panels):
        for row, task in zip(panels, tasks, strict=True):
            for axes, kind in zip(row, kinds, strict=True):
                if kind in result.values[task]:
                    draw_network(axes, result.values[task][kind])
                    axes.set_title(f"{task_name(task)},\n{network_name(kind)}\n", fontsize=9.5, pad=4)
                else:
                    axes.set_visible(False)
            row[0].set_ylabel("decoder's part")
        for axes in panels[-1]:
            axes.set_xlabel("encoder's part")
    return figure


def chosen_kinds(result: Result, tasks: Sequence[str]) -> list[str]:
    """The architectures that all tasks have, or else the first two kinds of network."""
    everywhere = [kind for kind in ("AED", "AO") if all(kind in result.values[task] for task in tasks)]
    return everywhere or list(dict.fromkeys(kind for _, kind, _ in kinds_of(result)))[:2]


def draw_network(axes: Axes, network: Mapping) -> None:
    """Draw the shares of one kind of network; above them what leads, or that it has not learned."""
    shares = network["covariance_share"]
    draw_shares(axes, shares, size=10.5, named=True)
    above = {"transform": axes.transAxes, "ha": "center", "fontsize": 9}
    if holds("learned", token_accuracy=network["token_accuracy"]["value"] or 0):
        axes.text(0.5, 1.02, what_leads(shares), weight="bold", color=INK, **above)
    else:
        axes.text(0.5, 1.02, "word accuracy below 95 %", weight="normal", color=FAINT, **above)


def what_leads(shares: Shares) -> str:
    """The largest of μ·μ, of the other terms without a residual, and of all with one, in words."""
    value = {name: share["value"] or 0.0 for name, share in shares.items()}
    sums = {"μ·μ": value["temporal_temporal"]}
    sums["terms with Δ"] = sum(number for name, number in value.items() if "residual" in name)
    sums["other terms"] = sum(value.values()) - sum(sums.values())
    leader = max(sums, key=lambda name: sums[name])
    return f"{100 * sums[leader]:.0f} % from {leader}"


def draw_shares(axes: Axes, shares: Shares, size: float = 9, *, named: bool = False) -> None:
    """Draw the nine shares with their numbers, rows for the decoder's part, columns for the encoder's.

    The parts are ``named`` in words below the columns, as well as by their symbols.
    """
    for (row, decoder), (column, encoder) in product(enumerate(PART_NAMES), repeat=2):
        share = shares[f"{decoder}_{encoder}"]
        draw_square(axes, (column, row), (decoder, encoder), share["value"] or 0.0)
        if abs(share["value"] or 0.0) < SMALLEST:
            continue
        axes.text(
            column, row, written(share, ["±"]).replace(" ± ", "\n±"), ha="center", va="center", fontsize=size,
            linespacing=1.1, color="white" if (share["value"] or 0.0) > 0.5 else INK,
        )  # fmt: skip
    symbols = [PART_SYMBOLS[name] for name in PART_NAMES]
    names = [f"{PART_SYMBOLS[name]} {WORDS[name]}" for name in PART_NAMES]
    axes.set_xticks(range(3), names if named else symbols)
    axes.set_yticks(range(3), symbols)
    for labels, height in ((axes.get_xticklabels(), 9 if named else 11), (axes.get_yticklabels(), 11)):
        for label, name in zip(labels, PART_NAMES, strict=True):
            label.set_color(FAINT if name == "residual" else PART_COLOURS[name])
            label.set_fontsize(height)
    axes.set(xlim=(-0.5, 2.5), ylim=(2.5, -0.5), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_square(axes: Axes, middle: tuple[int, int], parts: tuple[str, str], share: float) -> None:
    """Draw a square, the stronger the larger the share.

    Below its diagonal it has the colour of the decoder's part, above it the encoder's.
    """
    (x, y), (decoder, encoder) = middle, parts
    left, right = x - HALF, x + HALF
    bottom, top = y + HALF, y - HALF  # the first row is above
    strength = min(max(share, 0.0), 1.0) ** 0.5
    axes.fill([left, left, right], [top, bottom, bottom], color=PART_COLOURS[decoder], alpha=strength, lw=0)
    axes.fill([left, right, right], [top, top, bottom], color=PART_COLOURS[encoder], alpha=strength, lw=0)
    axes.plot([left, left, right, right, left], [bottom, top, top, bottom, bottom], color="#cccccc", lw=0.6)
