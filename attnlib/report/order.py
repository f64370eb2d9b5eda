"""Refuse batches whose order changes when they are read again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from attnlib.analysis.stream import Stream
from attnlib.errors import BadInput


def require_one_order(stream: Stream) -> None:
    """Read the first batch twice, and refuse a stream in which it differs the second time.

    The passes of an analysis hold the last of each ``every`` batches out of the fit. In another order these
    are not the batches that the second pass judges.

    Args:
        stream: passes of a model; a list of batches is not read.

    Raises:
        BadInput: the batches are shuffled, or changed at random, whenever they are read.

    Example:
        >>> from attnlib import zoo
        >>> require_one_order(zoo.load("reordering").stream())
    """
    if isinstance(stream.batches, Sequence):
        return
    if not _is_same(stream.first(), stream.first()):
        raise BadInput(
            "the batches differ when they are read again, so that components would be fitted on what is "
            "judged: let the DataLoader keep one order (shuffle=False), or give a list of its batches, "
            "list(loader)"
        )


def _is_same(first: Any, second: Any) -> bool:  # noqa: PLR0911, a return for each kind of value
    """Return False for two batches of different numbers or words; what cannot be compared is the same."""
    if type(first) is not type(second):
        return False
    if isinstance(first, Tensor | np.ndarray):
        return first.shape == second.shape and bool((first == second).all())
    if isinstance(first, str | bytes | int | float):
        return first == second
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(_is_same(first[key], second[key]) for key in first)
    if isinstance(first, Sequence):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_is_same(*pair) for pair in pairs)
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        return all(_is_same(getattr(first, name), getattr(second, name)) for name in names)
    return True
