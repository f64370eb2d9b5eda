"""Trajectories of states through positions: of temporal components, and of networks without words."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.results.result import Result, tasks_of
from notebooks.shared.marks import grid, key_above
from notebooks.shared.style import INK, PART_COLOURS, at, blank, network_name, write_labels

NARROW = 4.7  # inches, which a telephone shows nearly whole
COURSES = {  # course → label, colour, line style
    "temporal": ("part that depends on position, μ", PART_COLOURS["temporal"], "-"),
    "average": ("run without words", INK, "--"),
}


def name_of(kind: str) -> str:
    """A kind of network in words; attention only with the code of its positions."""
    code = kind.removeprefix("AO-")
    if code == kind:
        return network_name(kind)
    return f"attention only, {'no' if code == 'none' else code} codes"


def wordless_courses(result: Result) -> Figure:
    """Draw the first task's trajectories, a panel for each kind of network and side, the encoder first."""
    task = tasks_of(result)[0]
    rows = pd.DataFrame(result.tables["courses"])
    if len(rows):
        rows = rows[rows["task"] == task]
    if rows.empty:
        return blank()
    shown = sorted(rows.groupby(["kind", "side"]), key=lambda panel: encoder_first(panel[0]))
    n_rows = -(-len(shown) // 2)
    with grid(n_rows, 2, size=(NARROW, 2.4 * n_rows + 0.4)) as (figure, panels):
        for axes in panels.flat[len(shown) :]:
            axes.set_visible(False)
        for axes, ((kind, side), courses) in zip(panels.flat, shown, strict=False):
            draw_courses(axes, courses)
            share = at(result.values[task][kind], f"wordless.{side}.average.r2_centred.value")
            axes.set_title(f"{name_of(kind)},\n{side}{share_in_words(share)}", loc="left", fontsize=9.5)
            axes.set_xticks([])
            axes.set_yticks([])
        handles, _ = panels.flat[0].get_legend_handles_labels()
        key_above(figure, handles, ncols=2)
    return figure


def encoder_first(names: tuple[str, str]) -> tuple[str, bool]:
    """Sort kinds by name, and within each the encoder before the decoder, as one reads a network."""
    kind, side = names
    return kind, side != "encoder"


def share_in_words(share: float | None) -> str:
    """Say how much of μ is there without words, where that is known."""
    return "" if share is None else f": {100 * share:.0f} % without words"


def draw_courses(axes: Axes, courses: pd.DataFrame) -> None:
    """Draw each trajectory in a plane, with the numbers of its first and last position."""
    ends = []
    for name, (label, colour, line) in COURSES.items():
        path = courses.loc[courses["course"] == name, ["first", "second"]].to_numpy()
        axes.plot(*path.T, line, color=colour, lw=1.5, marker=".", ms=4, label=label)
        ends += [(*path[0], "0", colour), (*path[-1], str(len(path) - 1), colour)]
    axes.margins(0.12)
    write_labels(axes, ends, size=9)
