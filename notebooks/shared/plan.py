"""What an experiment measures of which networks: said once, asked as a list and answered by group."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from companion.results.config import BaseConfig
from companion.results.frames import Table, frame, joined
from companion.results.measurements import Measurement, answers, columns_of, measurements_of
from companion.runs.columns import NETWORK, Columns
from companion.runs.identity import Spec
from companion.runs.procedure import RunSpec
from companion.runs.store import Store

Group = Hashable  # what the networks of a group have in common: a task, a link, a width …
Plan = dict[Group, tuple[Measurement, ...]]
Point = tuple[dict[str, object], dict]  # the columns that name a model, and its measurements
Points = dict[Group, list[Point]]


def settings_of(config: BaseConfig, *names: str) -> dict[str, object]:
    return {name: getattr(config, name) for name in names}


def each_seed(seeds: int, spec: Callable[..., RunSpec], *arguments: object, **settings: object):
    """The networks of a group, which differ in their seeds alone: ``spec`` makes one."""
    return tuple(spec(*arguments, seed=seed, **settings) for seed in range(seeds))


def plan_of(groups: Mapping[Group, Iterable[RunSpec]], measure: Callable, **settings: object) -> Plan:
    """The same question to every network of every group."""
    return {group: measurements_of(specs, measure, **settings) for group, specs in groups.items()}


def every(*plans: Plan) -> tuple[Measurement, ...]:
    """All that is asked, each once, in order."""
    return tuple(
        dict.fromkeys(measurement for plan in plans for group in plan.values() for measurement in group)
    )


def asked(plans: Callable[..., Iterable[Plan]]) -> Callable[[BaseConfig], tuple[Measurement, ...]]:
    """The ``measurements`` of an experiment, from what makes its plans of a configuration."""
    return lambda config: every(*plans(config))


def answered(plan: Plan, store: Store) -> Points:
    """What is measured, by group; groups of which nothing is are left out."""
    points = {group: answers(measurements, store) for group, measurements in plan.items()}
    return {group: of_group for group, of_group in points.items() if of_group}


def plan_frame(plan: Plan, store: Store, by: Columns, *, columns: Columns, **how: Any) -> Table:
    """Return what a plan asks as a table, see :func:`companion.results.frames.frame`.

    Args:
        plan: what is asked, by group.
        store: has the answers, or makes them.
        by: columns that name a group, in the order of its names.
        columns: of the records.
        how: further arguments of `frame`.
    """
    names = {**by, "seed": NETWORK["seed"]}

    def of_group(group: tuple, asked: Iterable[Measurement]) -> Table:
        named = dict(zip(by, group, strict=True))

        def names_of(spec: Spec) -> dict[str, object]:
            return named | {"seed": columns_of(spec)["seed"]}

        return frame(asked, store, names=names, columns=columns, columns_of=names_of, **how)

    nothing = frame((), store, names=names, columns=columns, **how)
    return joined([nothing, *itertools.starmap(of_group, plan.items())])


def picked(nested: Mapping, *levels: Iterable[str]) -> dict:
    """These names of each level, in this order.

    >>> picked({"b": {"x": 1, "y": 2}, "a": {"x": 3}, "c": {}}, ("a", "b"), ("x",))
    {'a': {'x': 3}, 'b': {'x': 1}}
    """
    return {name: picked(nested[name], *levels[1:]) if levels[1:] else nested[name] for name in levels[0]}
