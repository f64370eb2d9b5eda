"""When a quantity that is looked at now and then has made half of its way."""

import math
from collections.abc import Sequence
from itertools import pairwise

from attnlib.errors import BadInput


def takeover_step(steps: Sequence[int], values: Sequence[float], *, least: float) -> float | None:
    """The step at which a quantity first reaches the middle between its first and its last value.

    Between two looks it is taken to change in a straight line over log2(1 + step), the axis on which looks
    are about evenly spaced.

    >>> takeover_step([0, 1, 3, 7], [0.0, 0.0, 0.0, 1.0], least=0.05)  # halfway from log2(4) to log2(8)
    4.656854249492381
    >>> takeover_step([0, 1], [0.0, 0.01], least=0.05) is None
    True

    Args:
        steps: ascending, from 0 on; values: of the quantity at each.
        least: the smallest rise from first to last that counts as taking over; one that rises less, or falls,
            has no such step.

    Returns:
        a positive number, None where the quantity does not rise enough.

    Raises:
        BadInput: fewer than two looks, lists of different lengths, or steps that do not ascend.
    """
    if len(steps) != len(values) or len(steps) < 2 or any(b <= a for a, b in pairwise(steps)):
        raise BadInput(f"{len(steps)} steps and {len(values)} values; expected as many, 2 or more, ascending")
    first, last = values[0], values[-1]
    if not last - first >= least:  # NaN among them
        return None
    middle = (first + last) / 2
    place = next(i for i, value in enumerate(values) if value >= middle)
    low, high = (math.log2(1 + steps[i]) for i in (place - 1, place))
    part = (middle - values[place - 1]) / (values[place] - values[place - 1])
    return 2 ** (low + part * (high - low)) - 1
