"""How many networks stand behind a page's numbers, task by task."""

from collections.abc import Iterator
from typing import get_args

from attnlib.experiments.result import Result
from attnlib.models.config import Architecture
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name


def networks_note(result: Result) -> str:
    """``Networks a task and architecture: 10 (one-to-one, SCAN), 5 (reversal).``

    Kinds of network with other numbers are named apart. Empty where the numbers do not stand under
    ``<task>.<kind>`` for an architecture of ours, or where the settings give one number for all.
    """
    if result.config.get("seeds") or "task" not in result.config:
        return ""
    groups: list[tuple[list[str], dict[str, int]]] = []  # kinds, and their networks of each task
    for kind, counts in _counts(result).items():
        for kinds, common in groups:
            if all(common.get(task, n) == n for task, n in counts.items()):
                kinds.append(kind)
                common |= counts
                break
        else:
            groups.append(([kind], dict(counts)))
    if not groups:
        return ""
    if len(groups) == 1:
        return f"Networks a task and architecture: {_listed(groups[0][1])}."
    parts = [f"{', '.join(kinds)}: {_listed(common)}" for kinds, common in groups]
    return f"Networks a task and kind. {'; '.join(parts)}."


def _counts(result: Result) -> dict[str, dict[str, int]]:
    """Kind → task → the most networks that any of its numbers rests on."""
    found: dict[str, dict[str, int]] = {}
    for task, kind, values in kinds_of(result, result.values.get("by_task", result.values)):
        n = max(_networks(values), default=0)
        if kind.partition("-")[0] in get_args(Architecture) and n:
            found.setdefault(kind, {})[task_name(task)] = n
    return found


def _networks(values: object) -> Iterator[int]:
    if not isinstance(values, dict):
        return
    if {"value", "n"} <= set(values):
        yield values["n"]
    else:
        for inner in values.values():
            yield from _networks(inner)


def _listed(counts: dict[str, int]) -> str:
    if len(set(counts.values())) == 1:
        tasks = f"each of {len(counts)} tasks" if len(counts) > 1 else next(iter(counts))
        return f"{next(iter(counts.values()))} ({tasks})"
    return ", ".join(
        f"{n} ({', '.join(_shortened([task for task in counts if counts[task] == n]))})"
        for n in sorted(set(counts.values()), reverse=True)
    )


def _shortened(tasks: list[str]) -> list[str]:
    """Marks of the dial in one entry: ``reordering 0, 50 %``."""
    marks = [task.split()[1] for task in tasks if task.startswith("reordering ")]
    others = [task for task in tasks if not task.startswith("reordering ")]
    return [*others, *([f"reordering {', '.join(marks)} %"] if marks else [])]
