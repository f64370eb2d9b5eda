"""Courses over training, and where they get to a level."""

from collections.abc import Sequence


def along(measured: dict, *names: str) -> dict[str, dict[int, float | None]]:
    """Courses over training of one network, each by update."""
    return {name: dict(zip(measured["steps"], measured[name], strict=True)) for name in names}


def crossing(places: Sequence[float], values: Sequence[float], level: float) -> float | None:
    """Where values first reach a level, on straight lines between places; None if never.

    >>> crossing([0, 10, 20], [0.0, 0.5, 0.75], 0.25)
    5.0
    """
    at = next((i for i, value in enumerate(values) if value >= level), None)
    if not at:
        return at if at is None else float(places[0])
    part = (level - values[at - 1]) / (values[at] - values[at - 1])
    return places[at - 1] + part * (places[at] - places[at - 1])
