"""Courses of networks that learn to copy: a curve a network."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def curves(axes: Axes, courses: pd.DataFrame, name: str, label: str | None = None, **look: object) -> None:
    """A column of a table of courses by update, a line for each seed; the first carries the label."""
    for place, (_, own) in enumerate(courses.groupby("seed", sort=False)):
        axes.plot(own["steps"], own[name], label=None if place else label, **look)


def one_legend(figure: Figure, ncols: int) -> None:
    """Each label of any panel once, above all of them."""
    labelled: dict[str, object] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    figure.legend(
        labelled.values(), labelled.keys(), loc="outside upper center", ncols=ncols, frameon=False, fontsize=9
    )
