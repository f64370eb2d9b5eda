"""Labels beside points that do not cover each other."""

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

Label = tuple[float, float, str, str]  # where, what it says, its colour
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))  # right or left of the point, above or below it
# In a panel of some two inches: a letter's width, a line's height, and its middle above or below the point.
LETTER, LINE, AWAY, GAP = 0.037, 0.09, 0.06, 0.03
HALO = withStroke(linewidth=1.2, foreground="white")  # over lines and points


def write_labels(axes: Axes, labels: list[Label], size: float = 8) -> None:
    """Text beside points, the first first; one that would cover another on every side is left out.

    The limits of the axes must be the final ones.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    taken: list[tuple[float, float, float]] = []  # from, to, middle of the line
    for x, y, text, colour in labels:
        across, up = (x - left) / (right - left), (y - low) / (high - low)
        for along, above in SIDES:
            begin = across + GAP if along > 0 else across - GAP - LETTER * len(text)
            box = (begin, begin + LETTER * len(text), up + AWAY * above)
            if (begin < 0 and along < 0) or any(_cover(box, other) for other in taken):
                continue
            taken.append(box)
            axes.annotate(
                text,
                (x, y),
                (4 * along, 3 * above),
                textcoords="offset points",
                fontsize=size,
                color=colour,
                ha="left" if along > 0 else "right",
                va="baseline" if above > 0 else "top",
                path_effects=[HALO],
                zorder=4,
            )
            break


def _cover(box: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    apart = box[1] + GAP / 2 < other[0] or other[1] + GAP / 2 < box[0]
    return not apart and abs(box[2] - other[2]) < LINE
