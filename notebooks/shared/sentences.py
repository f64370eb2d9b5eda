"""Kinds of network sorted by what their intervals say, and named in a sentence."""

import math

from attnlib.plots.style import task_name
from companion.book.intervals import side
from companion.book.tables import interval_range
from companion.results.statistics import mean_interval

Kind = tuple[str, str, dict]  # task, kind of network, interval


def over_models(values: list[float | None]) -> dict[str, float | int | None]:
    """Mean and Student's 95 % interval in the form of a result; None where too few models are defined."""
    defined = [value for value in values if value is not None]
    if not defined:
        return {"value": None, "low": None, "high": None, "n": 0}
    found = mean_interval(defined).as_dict()
    return {key: None if math.isnan(number) else number for key, number in found.items()}


def on_side(kinds: list[Kind], which: str, threshold: float = 0.0) -> list[Kind]:
    """Those of the kinds whose interval is on that side; kinds without a number are left out."""
    return [kind for kind in kinds if kind[2]["value"] is not None and side(kind[2], threshold) == which]


def named(kinds: list[Kind]) -> str:
    """``one-to-one (AED, AO), SCAN (AO)``."""
    by_task: dict[str, list[str]] = {}
    for task, kind, _ in kinds:
        by_task.setdefault(task_name(task), []).append(kind)
    return ", ".join(f"{task} ({', '.join(found)})" for task, found in by_task.items())


def named_with_values(kinds: list[Kind]) -> str:
    """``one-to-one, AO: −0.40 [−0.45, −0.35]; SCAN, AO: …``."""
    return "; ".join(f"{task_name(task)}, {kind}: {interval_range(found)}" for task, kind, found in kinds)
