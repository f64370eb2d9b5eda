"""Two intervals over seeds held against each other, for sentences that say which is larger."""

from __future__ import annotations


def above(first: dict, second: dict) -> bool:
    """Whether the whole of the first interval is above the second; False where either has no interval.

    For two numbers of the same networks this is cautious: their difference may be clear of zero all the same.
    """
    known = first["low"] is not None and second["high"] is not None
    return known and first["low"] > second["high"]


def beyond(interval: dict, threshold: float) -> int:
    """1 where the whole interval is above the threshold, −1 where it is below, 0 where it cannot be told."""
    if interval["low"] is None:
        return 0
    return int(interval["low"] > threshold) - int(interval["high"] < threshold)


def listed(parts: list[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
