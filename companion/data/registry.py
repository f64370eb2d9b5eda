"""Tasks by name: the tables ``TASKS`` of `companion.data.parallel` and of modules in folders ``tasks``.

There is no list to edit. ``TASKS`` is a dict from names to functions with keyword options that all have
defaults; each returns a :class:`~companion.data.task.Task`.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, get_type_hints

from attnlib.errors import BadInput, check_known
from companion.paths import TASKS, modules_in

if TYPE_CHECKING:  # planning the book needs the names of tasks, and not torch
    from companion.data.task import Task

    "companion.data.parallel"  # imported late: cells that only draw import this module, and do without it


def names() -> tuple[str, ...]:
    return tuple(sorted(_builders()))


def load(name: str, **options) -> "Task":
    """Build the task ``name``.

    Raises:
        UnknownName: no task has this name, or the task no such option.
        BadInput: the value of an option has the wrong type or cannot be used.
        DataUnavailable: the task reads files that are not available here.
    """
    build = builder(name)
    hints = get_type_hints(build)
    known = list(options_of(name))
    for option, value in options.items():
        check_known(f"option of task {name}", option, known)
        if not _fits(value, hints[option]):
            wanted = getattr(hints[option], "__name__", str(hints[option]))
            raise BadInput(f"option {option!r} of task {name!r} takes {wanted}; got {value!r}")
    return build(**options)


def options_of(name: str) -> dict[str, object]:
    parameters = inspect.signature(builder(name)).parameters
    return {option: parameter.default for option, parameter in parameters.items()}


def builder(name: str) -> Callable[..., "Task"]:
    """The function that builds a task; UnknownName where there is none."""
    builders = _builders()
    check_known("task", name, sorted(builders))
    return builders[name]


def checksums(name: str, options: Mapping[str, object]) -> dict[str, str | None]:
    """The files that a task reads, with their published sha256; nothing is read but a reader's own files.

    Empty for a synthetic task. None stands for a checksum that nobody knows beforehand.

    Raises UnknownName: there is no such task; DataUnavailable: an own file is not there.
    """
    reads = getattr(builder(name), "reads", None)
    return reads(**options) if reads else {}


@cache
def _builders() -> dict[str, Callable[..., "Task"]]:
    from companion.data import parallel  # not above: cells that only draw do without it

    builders: dict[str, Callable[..., Task]] = dict(parallel.TASKS)
    for module in modules_in(TASKS).values():
        builders |= import_module(module).TASKS
    return builders


def _fits(value: object, hint: object) -> bool:
    if isinstance(value, bool):
        # A bool is an int in Python, but n_train=True is a mistake.
        return hint is bool
    return isinstance(value, hint) or (hint is float and isinstance(value, int))
