"""Kinds of model in the order of the ladder; a result's own keys are sorted by name."""

from attnlib.experiments.result import Result


def tasks_of(result: Result) -> list[str]:
    """The tasks of a result, from the fixed diagonal to attention that depends on the sample.

    Tasks without a measured model are left out; ``Result.missing`` names them.
    """
    there = result.values.get("by_task", result.values)
    return [task for task in result.config["task"] if task in there]


def kinds_of(result: Result, values: dict | None = None) -> list[tuple[str, str, dict]]:
    """``(task, architecture, values)`` in the order of the ladder.

    Args:
        values: ``{task: {architecture: …}}``; all values of the result by default.
    """
    values = result.values if values is None else values
    return [(task, kind, found) for task in tasks_of(result) for kind, found in values[task].items()]
