"""From learning curves of networks to what a kind of network reaches, and how two kinds differ."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from attnlib.experiments.aggregate import Point, over_seeds

Kind = TypeVar("Kind")
QUANTITIES = ("token_accuracy", "exact_match", "updates")


def updates_to(threshold: float, steps: list[int], course: list[float]) -> float | None:
    """Updates until a course first reaches a threshold, on straight lines between looks; None if never.

    >>> updates_to(0.5, [0, 10, 20], [0.1, 0.3, 0.7])
    15.0
    """
    for place, value in enumerate(course):
        if value >= threshold:
            if not place:
                return float(steps[0])
            before, here = course[place - 1], steps[place - 1]
            return here + (threshold - before) / (value - before) * (steps[place] - here)
    return None


def quality(measured: dict, name: str, threshold: float) -> float:
    """One of :data:`QUANTITIES`; a network that never reaches the threshold counts with all its updates."""
    if name == "updates":
        found = updates_to(threshold, measured["steps"], measured["token_accuracy"])
        return float(measured["steps"][-1]) if found is None else found
    value = measured[name]
    return value[-1] if isinstance(value, list) else value


def summary(points: list[Point], threshold: float) -> dict:
    """Intervals of :data:`QUANTITIES`, and ``reached``: how many networks reach the threshold."""
    reached = [updates_to(threshold, m["steps"], m["token_accuracy"]) is not None for _, m in points]
    return {name: over_seeds(points, lambda m, n=name: quality(m, n, threshold)) for name in QUANTITIES} | {
        "reached": sum(reached)
    }


def late_rise(measured: dict) -> float:
    """Words right at the last look less those at three quarters of the updates, on straight lines.

    >>> late_rise({"steps": [0, 10, 20], "token_accuracy": [0.0, 0.5, 0.75]})
    0.125
    """
    steps, course = measured["steps"], measured["token_accuracy"]
    return float(course[-1] - np.interp(0.75 * steps[-1], steps, course))


def effect(
    measured: Mapping[Kind, list[Point]], pairs: Iterable[tuple[Kind, Kind]], threshold: float
) -> dict[str, dict]:
    """By how much the first kind of a pair exceeds the second: mean over pairs, intervals over seeds.

    Pairs and seeds of which a network is missing are left out.
    """
    by_seed: dict[object, list[tuple[dict, dict]]] = {}
    for first, second in pairs:
        others = {name["seed"]: found for name, found in measured.get(second, ())}
        for name, found in measured.get(first, ()):
            if name["seed"] in others:
                by_seed.setdefault(name["seed"], []).append((found, others[name["seed"]]))
    most = max(map(len, by_seed.values()), default=0)
    complete = [({"seed": seed}, {"pairs": own}) for seed, own in by_seed.items() if len(own) == most]

    def difference(found: dict, name: str) -> float:
        apart = [quality(a, name, threshold) - quality(b, name, threshold) for a, b in found["pairs"]]
        return sum(apart) / len(apart)

    return {name: over_seeds(complete, lambda m, n=name: difference(m, n)) for name in QUANTITIES}


def curve_rows(points: list[Point]) -> list[dict]:
    """Words right over updates, a row a look."""
    steps = points[0][1]["steps"] if points else []
    return [
        {"step": step} | over_seeds(points, lambda m, i=place: m["token_accuracy"][i])
        for place, step in enumerate(steps)
    ]
