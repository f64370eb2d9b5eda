"""Names of the columns of a head's row that are made of the name of a group of terms, a part or a subset."""

from typing import Literal

ShareEnd = Literal["share", "low", "high"]


def share_column(name: str, end: ShareEnd = "share", *, split: bool = False) -> str:
    """Return the column of a head's row that has the share of a group of terms, or an end of its interval.

    Args:
        name: one of :data:`~attnlib.decomposition.term_names.TERM_GROUPS`.
        end: "share", or "low" and "high" for the ends of its interval.
        split: for the split share instead, of a part of states: ``name`` is one of `STATE_PARTS`.

    Example:
        >>> share_column("position bias"), share_column("temporal", "low", split=True)
        ('position_bias_share', 'temporal_split_low')
    """
    column = name.replace(" ", "_")
    if split:
        column += "_split"
    return f"{column}_{end}"


def rebuilt_column(subset: str) -> str:
    """Return the column of a head's row that says how well one of ``REBUILT`` rebuilds attention.

    Example:
        >>> rebuilt_column("temporal only"), rebuilt_column("no residual")
        ('temporal_rebuilds', 'no_residual_rebuilds')
    """
    name = subset.removesuffix(" only").replace(" ", "_")
    return f"{name}_rebuilds"
