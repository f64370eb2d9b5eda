"""From one number a model to one interval a kind of model."""

import math
from collections.abc import Callable, Iterable

from companion.results.statistics import mean_interval

Point = tuple[dict[str, object], dict]  # the columns that name a model, and its measurements


def over_seeds(points: Iterable[Point], measured: Callable[[dict], float | None]) -> dict[str, float | int]:
    """Mean over models with Student's 95 % interval; models where the number is undefined are left out."""
    values = [measured(measurement) for _, measurement in points]
    values = [value for value in values if value is not None and not math.isnan(value)]
    if not values:
        return {"value": None, "low": None, "high": None, "n": 0}
    return mean_interval(values).as_dict()


def each_over_seeds(points: Iterable[Point], measured: Callable[[dict], dict] = dict) -> dict:
    """:func:`over_seeds` of every number of a nested dictionary, in its shape.

    >>> each_over_seeds([({}, {"x": {"y": 1.0}}), ({}, {"x": {"y": 1.0}})])
    {'x': {'y': {'value': 1.0, 'low': 1.0, 'high': 1.0, 'n': 2}}}
    """

    def merged(found: list) -> dict:
        if isinstance(found[0], dict):
            return {name: merged([own[name] for own in found]) for name in found[0]}
        return over_seeds([({}, own) for own in found], lambda own: own)

    return merged([measured(measurement) for _, measurement in points])


def by_kind(points: Iterable[Point], summary: Callable[[list[Point]], dict]) -> dict[str, dict[str, dict]]:
    """``summary`` of the points of each task and architecture, as ``{task: {architecture: …}}``.

    Several cells are several architectures here: ``AED`` is the GRU, others are named ``AED-lstm``.
    """
    groups: dict[str, dict[str, list[Point]]] = {}
    for name, measurement in points:
        groups.setdefault(str(name["task"]), {}).setdefault(kind(name), []).append((name, measurement))
    return {task: {label: summary(group) for label, group in kinds.items()} for task, kinds in groups.items()}


def kind(name: dict[str, object]) -> str:
    """Architecture and cell in one label: ``AO``, ``AED`` (with a GRU), ``AED-lstm``."""
    usual = name["cell"] in ("gru", "none")
    return str(name["architecture"]) if usual else f"{name['architecture']}-{name['cell']}"


# Differences between two kinds of network, seed by seed: what a seed does to both cancels.


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
