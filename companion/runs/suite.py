"""The tasks of the suite by name, and the plan: how a task's models are trained at each scale, and how many.

The plan is data (``training_plan.json``): each of its numbers is in the key of every model made with it, so a
change of the plan shows there, and a new entry leaves the results of the others as they are.
"""

import json
import re
from functools import cache
from pathlib import Path

from attnlib.errors import BadInput, UnknownName, check_known
from companion.data import registry
from companion.runs.spec import ModelSpec

_DIAL = re.compile(r"reordering_(\d{1,3})")
_FEWER_SEEDS = 3  # of cells other than the GRU


@cache
def _plan() -> dict:
    return json.loads(Path(__file__).with_name("training_plan.json").read_text(encoding="utf-8"))


def scales() -> tuple[str, ...]:
    """Scales that the plan knows: ``quick`` and ``paper``."""
    return tuple(_plan())


def _training(scale: str, task_name: str) -> dict:
    """How the models of a task are trained at one scale, on what of its task, and how many ``seeds`` of them.

    Tasks that the plan does not name, such as the reader's own text, share one entry.
    """
    check_known("scale", scale, scales())
    plan, (task, _) = _plan()[scale], task_of(task_name)
    return {"width": plan["width"]} | plan["tasks"].get(task, plan["other"])


def task_of(task_name: str) -> tuple[str, dict[str, object]]:
    """Task and options of a task: ``reordering_25`` is the reordering task at p = 0.25.

    Raises UnknownName where no task has this name, BadInput for a dial beyond 100.
    """
    if dial := _DIAL.fullmatch(task_name):
        if int(dial[1]) > 100:
            raise BadInput(f"{task_name}: the dial goes from reordering_0 to reordering_100, in percent")
        return "reordering", {"p": int(dial[1]) / 100}
    if task_name not in registry.names():
        marks = (f"reordering_{percent}" for percent in (0, 25, 50, 75, 100))
        raise UnknownName("task", task_name, [*registry.names(), *marks])
    return task_name, {}


def task_name_of(spec: ModelSpec) -> str:
    """The task that a model stands on; a reordering task carries its dial."""
    if spec.task == "reordering":
        p = dict(spec.task_options).get("p", registry.options_of("reordering")["p"])
        return f"reordering_{round(100 * float(p))}"
    return spec.task


def seeds_of(scale: str, task_name: str, architecture: str = "AED", cell: str = "gru") -> range:
    """The seeds that the plan has of a kind of model; of cells other than the GRU at most three."""
    planned = _training(scale, task_name)["seeds"]
    return range(planned if cell == "gru" or architecture == "AO" else min(planned, _FEWER_SEEDS))


def spec_of(
    task_name: str, architecture: str, *, scale: str, cell: str = "gru", seed: int = 0, **changes: object
) -> ModelSpec:
    """The model of a task, as planned but for the changes: any field of :class:`ModelSpec`.

    ``task_options`` among the changes (a dict) are added to those of the task and the plan.
    """
    planned, (task, options) = _training(scale, task_name), task_of(task_name)
    options = {**planned.get("task_options", {}), **options, **dict(changes.pop("task_options", {}))}
    planned = {name: planned[name] for name in ("steps", "batch_size", "learning_rate", "width")}
    return ModelSpec(
        task=task,
        architecture=architecture,
        cell="gru" if architecture == "AO" else cell,  # AO has no cell: one model, whatever was asked for
        seed=seed,
        task_options=tuple(sorted(options.items())),
        **(planned | changes),
    )


def point(spec: ModelSpec) -> dict[str, object]:
    """The columns that name a model in a table."""
    cell = "none" if spec.architecture == "AO" else spec.cell
    return {"task": task_name_of(spec), "architecture": spec.architecture, "cell": cell, "seed": spec.seed}
