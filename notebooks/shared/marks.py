"""Marks of estimates: panels, error bars, dots in rows, names at the ends of lines, matrices and legends.

An estimate has a ``value`` and the ends of its interval, ``low`` and ``high``; each is None or NaN where
there is no such number. Nothing is drawn of what is not there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator
from pandas.api.typing import SeriesGroupBy

from companion.book.style import INK, style

Estimate = Mapping[str, float | int | None]
EVERYWHERE = (-inf, inf)


@contextmanager
def grid(
    rows: int, columns: int, *, size: tuple[float, float], **shared: object
) -> Iterator[tuple[Figure, np.ndarray]]:
    """In the look of the book, a figure of so many inches and its panels by row and column."""
    with style():
        figure = Figure(figsize=size)
        yield figure, figure.subplots(rows, columns, squeeze=False, **shared)


def error_bar(
    axes: Axes,
    estimate: Estimate,
    place: float,
    colour: str,
    *,
    upright: bool = False,
    within: tuple[float, float] = EVERYWHERE,
    lw: float = 1.4,
    **line: object,
) -> None:
    """Draw the interval of an estimate as a line, cut where its quantity ends.

    Args:
        axes: where it is drawn.
        estimate: its ``low`` and ``high`` are the ends.
        place: its height, or how far to the right it is if it is upright.
        colour: of the line.
        upright: whether the quantity is on the vertical axis.
        within: the range of the quantity.
        lw: width of the line, in points.
        line: more properties of the line.
    """
    if pd.isna(estimate["low"]):
        return
    lowest, highest = within
    ends = [max(estimate["low"], lowest), min(estimate["high"], highest)]
    places = [place, place]
    x, y = (places, ends) if upright else (ends, places)
    axes.plot(x, y, color=colour, lw=lw, **line)


def dot(
    axes: Axes,
    estimate: Estimate,
    place: float,
    colour: str,
    *,
    marker: str = "o",
    filled: bool = True,
    upright: bool = False,
    within: tuple[float, float] = EVERYWHERE,
    bar: Mapping[str, object] | None = None,
    ms: float = 5,
    **point: object,
) -> None:
    """Draw an estimate as a point over its :func:`error_bar`, whose properties ``bar`` has."""
    if pd.isna(estimate["value"]):
        return
    error_bar(axes, estimate, place, colour, upright=upright, within=within, **(bar or {}))
    x, y = (place, estimate["value"]) if upright else (estimate["value"], place)
    face = colour if filled else "white"
    axes.plot(x, y, marker, color=colour, markerfacecolor=face, ms=ms, **point)


@dataclass(frozen=True)
class Mark:
    """How one quantity is drawn wherever it appears, and what the legend calls it."""

    label: str
    colour: str
    marker: str = "o"
    shift: float = 0.0  # from the middle of its row, in rows
    filled: bool = True
    ms: float = 5.5


def dots(
    axes: Axes, estimates: Mapping[str, Estimate], marks: Mapping[str, Mark], place: float, **bar: object
) -> None:
    """Draw estimates by name around the middle of a row, each with the mark of its name."""
    for name, mark in marks.items():
        dot(
            axes, estimates[name], place + mark.shift, mark.colour,
            marker=mark.marker, filled=mark.filled, ms=mark.ms, bar=bar,
        )  # fmt: skip


def legend_of(
    figure: Figure, marks: Iterable[Mark], *, ncols: int, handletextpad: float | None = None, **point: object
) -> None:
    """Say above the figure what each mark is; ``point`` has properties of the points there."""
    key_above(figure, legend_handles(marks, **point), ncols=ncols, handletextpad=handletextpad)


def legend_handles(marks: Iterable[Mark], **point: object) -> list[Line2D]:
    """Return a point of each mark with its label, for a legend that has other entries as well."""
    handles = []
    for mark in marks:
        face = mark.colour if mark.filled else "white"
        look = {"color": mark.colour, "marker": mark.marker, "markerfacecolor": face, "ms": mark.ms}
        handles.append(Line2D([], [], ls="", label=mark.label, **look | point))
    return handles


def key_above(figure: Figure, handles: Sequence[Artist], *, ncols: int, **props: object) -> None:
    """Draw a legend of these handles above all panels."""
    figure.legend(
        handles=handles, loc="outside upper center", ncols=ncols, frameon=False, **{"fontsize": 9} | props
    )


def stripes(axes: Axes, rows: int) -> None:
    """Shade every second row of a panel."""
    for place in range(0, rows, 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", lw=0, zorder=0)


def rule(axes: Axes, height: float, colour: str = "#e8e8e8") -> None:
    """Draw a thin line across a panel, behind all else: the middle of a row, or zero."""
    axes.axhline(height, color=colour, lw=0.8, zorder=0)


def line_of_dots(
    axes: Axes,
    places: Iterable[float],
    estimates: Iterable[Estimate],
    colour: str,
    *,
    bar_width: float = 1.2,
    **line: object,
) -> None:
    """Join estimates by a line from left to right, a dot and an upright error bar at each."""
    known = [
        (x, estimate) for x, estimate in zip(places, estimates, strict=True) if pd.notna(estimate["value"])
    ]
    across = [x for x, _ in known]
    values = [estimate["value"] for _, estimate in known]
    axes.plot(across, values, color=colour, **{"marker": "o"} | line)
    for x, estimate in known:
        error_bar(axes, estimate, x, colour, upright=True, lw=bar_width)


def line_with_band(
    axes: Axes, places: pd.Series, rows: pd.DataFrame, colour: str, *, band: float = 0.13, **line: object
) -> None:
    """Draw the values of rows as a line, over a band from ``low`` to ``high`` where they have intervals."""
    axes.plot(places, rows["value"], color=colour, **line)
    if len(rows) and pd.notna(rows["low"].iloc[0]):
        low, high = rows["low"].astype(float), rows["high"].astype(float)
        axes.fill_between(places, low, high, color=colour, alpha=band, lw=0)


def range_of_runs(axes: Axes, by_step: SeriesGroupBy, colour: str, *, alpha: float = 0.12) -> None:
    """Shade at each step from the lowest to the highest value of any run."""
    lowest, highest = by_step.min(), by_step.max()
    axes.fill_between(lowest.index, lowest, highest, color=colour, alpha=alpha, lw=0)


def name_ends(
    axes: Axes,
    ends: Mapping[str, tuple[float, str]],
    x: float,
    *,
    closest: float,
    away: float = 6,
    **text: object,
) -> None:
    """Write names beside the right ends of lines, moved up where they would overlap.

    ``ends`` has the height and the colour by name, ``closest`` is how near two names may be on the axis, and
    ``away`` how many points they are from their lines.
    """
    heights = {name: height for name, (height, _) in ends.items()}
    for name, height in apart(heights, closest).items():
        _, colour = ends[name]
        axes.annotate(
            name, (x, height), (away, 0), textcoords="offset points", va="center", color=colour,
            **{"fontsize": 9.5} | text,
        )  # fmt: skip


def apart(heights: Mapping[str, float], closest: float) -> dict[str, float]:
    """Move labels at the ends of lines up, the lowest first, until none is closer to another.

    >>> apart({"words": 0.5, "positions": 0.25, "context": 0.3125}, 0.125)
    {'positions': 0.25, 'context': 0.375, 'words': 0.5}
    """
    moved: dict[str, float] = {}
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        moved[name] = max([height, *(below + closest for below in moved.values())])
    return moved


def matrix(axes: Axes, weights: Float[np.ndarray, "rows columns"], **look: object) -> AxesImage:
    """Draw weights between 0 and 1 as a heat map, the first row above; black is 1."""
    usual = {"cmap": "Greys", "vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "nearest"}
    return axes.imshow(weights, **usual | look)


def scale_by_uniform(axes: Axes) -> None:
    """Make the vertical axis logarithmic, in multiples of uniform attention."""
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.axhline(1, color=INK, lw=0.9, ls="--", zorder=0)
