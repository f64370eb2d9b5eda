"""Differences between two kinds of network, seed by seed: what a seed does to both cancels."""

from collections.abc import Callable, Iterable

from attnlib.experiments.aggregate import Point, over_seeds


def matched(first: Iterable[Point], second: Iterable[Point]) -> list[tuple[dict, tuple[dict, dict]]]:
    """Measurements of both kinds that share a seed; others are left out.

    >>> matched([({"seed": 0}, {"x": 1}), ({"seed": 1}, {"x": 2})], [({"seed": 1}, {"x": 5})])
    [({'seed': 1}, ({'x': 2}, {'x': 5}))]
    """
    other = {name["seed"]: measured for name, measured in second}
    return [(name, (own, other[name["seed"]])) for name, own in first if name["seed"] in other]


def paired(first: Iterable[Point], second: Iterable[Point], of: Callable[[dict], float | None]) -> dict:
    """Interval over seeds of the first kind's number less the second's, as :func:`over_seeds` gives it."""

    def difference(pair: tuple[dict, dict]) -> float | None:
        one, two = map(of, pair)
        return None if one is None or two is None else one - two

    return over_seeds(matched(first, second), difference)
