"""Is attention learned after words are known? Which way it goes, and what is known by then."""

import math
from collections.abc import Callable

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.copying_courses import steps_to_learn

FACTOR = 2  # weight of so many times uniform attention's, or a share of 1 in so many, is no longer uniform
HALF = 0.5  # attention accuracy: the largest weight at the word to be said for half of the words
WAYS = ("drawn", "away")


def knowledge_first(learned: list[Point], uniform: list[Point], length: int) -> dict:
    """When attention leaves uniform attention, which way, and what is known of single words by then.

    Attention has left when the mean weight on the word to be said is at least ``FACTOR`` / length (*drawn*)
    or at most 1 / (``FACTOR`` · length) (driven *away*), at the first look where it is either. What is known
    of words without attention is β at the right position over its mean elsewhere, of networks that are held
    at uniform attention, after the same number of updates; 1 where nothing is known.

    Args:
        learned: whole courses of networks that learn to attend; uniform: of those that never attend.
        length: words of a sentence.

    Returns:
        ``stays``, networks that never leave; for both ways ``n``; ``left``, updates until it leaves;
        ``own``, the network's own probe ratio then, and ``known``, that of networks that never attend (an
        interval over these); ``half``, updates until the largest weight stands at the word to be said for
        half of the words, ``n_half`` networks of which that can be said, and ``known_at_half``;
        ``steps_to_learn`` of those that learn, with ``soonest`` and ``latest``. Intervals over networks.
    """
    ways: dict[str, list[Point]] = {gone: [] for gone in WAYS}
    for point in learned:
        gone = way(point[1], length)
        if gone is not None:
            ways[gone].append(point)
    stays = len(learned) - sum(map(len, ways.values()))
    return {"stays": stays} | {gone: _group(points, uniform, length) for gone, points in ways.items()}


def probe_ratio(course: dict, look: int) -> float:
    """β at the right position over its mean elsewhere."""
    return course["probe_right"][look] / course["probe_elsewhere"][look]


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


def _half(course: dict) -> int | None:
    return _first(course["attention_accuracy"], lambda accuracy: accuracy >= HALF)


def _group(points: list[Point], uniform: list[Point], length: int) -> dict:
    def leaves(course: dict) -> int | None:
        return _leaves(course, length)

    times = [time for _, course in points if (time := steps_to_learn(course)) is not None]
    return {
        "n": len(points),
        "left": _updates(points, leaves),
        "own": over_seeds(points, lambda course: probe_ratio(course, leaves(course))),
        "known": _known(points, uniform, leaves),
        "half": _updates(points, _half),
        "n_half": sum(_half(course) is not None for _, course in points),
        "known_at_half": _known(points, uniform, _half),
        "steps_to_learn": over_seeds(points, steps_to_learn),
        "soonest": min(times, default=None),
        "latest": max(times, default=None),
    }


def _updates(points: list[Point], look: Callable[[dict], int | None]) -> dict:
    def at(course: dict) -> int | None:
        place = look(course)
        return None if place is None else course["steps"][place]

    return over_seeds(points, at)


def _known(points: list[Point], uniform: list[Point], look: Callable[[dict], int | None]) -> dict:
    """What networks that never attend know when the others are there; those later than they were followed
    are left out."""
    updates = [course["steps"][place] for _, course in points if (place := look(course)) is not None]

    def mean(course: dict) -> float | None:
        ratios = [
            probe_ratio(course, course["steps"].index(step)) for step in updates if step in course["steps"]
        ]
        return math.fsum(ratios) / len(ratios) if ratios else None

    return over_seeds(uniform, mean)


def _first(series: list[float], holds: Callable[[float], bool]) -> int | None:
    return next((place for place, value in enumerate(series) if holds(value)), None)
