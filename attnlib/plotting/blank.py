"""The picture that stands where a result has nothing to draw."""

from matplotlib.figure import Figure

from attnlib.plotting.style import INK, style


def blank() -> Figure:
    """A sentence in place of axes, so that a page of a run that asked for less has every figure."""
    with style():
        figure = Figure(figsize=(8.6, 0.8))
        figure.text(0.5, 0.5, "This run measured nothing of this.", ha="center", va="center", color=INK)
    return figure
