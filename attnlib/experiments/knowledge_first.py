"""Which comes first, words or attention? When either finds the right place in networks that copy."""

import math
from collections.abc import Callable

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import steps_to_learn

FACTOR = 2  # weight of so many times uniform attention's, or a share of 1 in so many, is no longer uniform
HALF = 0.5  # of the words: from there on words are known, or attention is there
WAYS = ("drawn", "away")


def knowledge_first(learned: list[Point], uniform: list[Point], length: int) -> dict:
    """Which way attention goes, and whether words are known when it gets to the right place.

    Attention leaves uniform attention at the first look where the mean weight on the word to be said is at
    least ``FACTOR`` / length (*drawn*) or at most 1 / (``FACTOR`` · length) (driven *away*). Words are known,
    and attention is there, from the first look at which the largest β, or the largest weight, of a target
    word stands at the word to be said for half of the words: the same is asked of both.

    Args:
        learned: whole courses of networks that learn to attend; uniform: of those that never attend.
        length: words of a sentence.

    Returns:
        ``stays``, networks that never leave; for both ways ``n``; ``left``, updates until it leaves;
        ``known`` and ``there``, updates until words are known and until attention is there; ``lead``, the
        second less the first, of networks that have both, and ``first``, in how many of these words came
        first; ``held``, the share of words for which the largest β of networks that never attend stands at
        the right place after as many updates as ``there`` (an interval over these networks), and ``n_held``,
        times behind it; ``steps_to_learn`` of those that learn, with ``soonest`` and ``latest``. Intervals
        over networks.
    """
    ways: dict[str, list[Point]] = {gone: [] for gone in WAYS}
    for point in learned:
        gone = way(point[1], length)
        if gone is not None:
            ways[gone].append(point)
    stays = len(learned) - sum(map(len, ways.values()))
    return {"stays": stays} | {gone: _group(points, uniform, length) for gone, points in ways.items()}


def way(course: dict, length: int) -> str | None:
    """``drawn`` to the word to be said or driven ``away`` from it; None where attention stays uniform."""
    look = _leaves(course, length)
    if look is None:
        return None
    return "drawn" if course["attention_right"][look] > 1 / length else "away"


def _leaves(course: dict, length: int) -> int | None:
    """The first look at which attention is no longer uniform."""
    high, low = FACTOR / length, 1 / (FACTOR * length)
    return _first(course["attention_right"], lambda weight: weight >= high or weight <= low)


def _known(course: dict) -> int | None:
    return _first(course["probe_agreement"], lambda share: share >= HALF)


def _there(course: dict) -> int | None:
    return _first(course["attention_accuracy"], lambda share: share >= HALF)


def _lead(course: dict) -> int | None:
    known, there = _known(course), _there(course)
    return None if known is None or there is None else course["steps"][there] - course["steps"][known]


def _group(points: list[Point], uniform: list[Point], length: int) -> dict:
    times = [time for _, course in points if (time := steps_to_learn(course)) is not None]
    arrivals = [course["steps"][place] for _, course in points if (place := _there(course)) is not None]
    seen = [step for step in arrivals if all(step in course["steps"] for _, course in uniform)]
    return {
        "n": len(points),
        "left": _updates(points, lambda course: _leaves(course, length)),
        "known": _updates(points, _known),
        "there": _updates(points, _there),
        "lead": over_seeds(points, _lead),
        "first": sum((_lead(course) or 0) > 0 for _, course in points),
        "held": over_seeds(uniform if seen else [], lambda course: _mean_share(course, seen)),
        "n_held": len(seen) if uniform else 0,
        "steps_to_learn": over_seeds(points, steps_to_learn),
        "soonest": min(times, default=None),
        "latest": max(times, default=None),
    }


def _updates(points: list[Point], look: Callable[[dict], int | None]) -> dict:
    def at(course: dict) -> int | None:
        place = look(course)
        return None if place is None else course["steps"][place]

    return over_seeds(points, at)


def _mean_share(course: dict, updates: list[int]) -> float:
    """Of words with the largest β at the right place, over the looks after these updates."""
    shares = [course["probe_agreement"][course["steps"].index(step)] for step in updates]
    return math.fsum(shares) / len(shares)


def _first(series: list[float], holds: Callable[[float], bool]) -> int | None:
    return next((place for place, value in enumerate(series) if holds(value)), None)
