"""Experiments by name: every ``notebooks/<part>/<name>/experiment.py``, found by its folder.

There is no list to edit. An experiment has ``Config`` (see `companion.results.config`), ``PROFILES`` (one for
``quick`` and ``paper``), ``measurements(config)`` and ``compute(config, store)``; ``models(config)``, which
networks are asked, comes of itself.
"""

from functools import cache
from importlib import import_module
from types import ModuleType

from attnlib.errors import check_known
from companion.runs.registry import modules_with

RESULTS = {"quick": "build/results/quick", "paper": "results/paper"}  # of a profile, in a checkout


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(_modules()))


@cache
def _modules() -> dict[str, str]:
    found = modules_with("def compute(config", "notebooks/*/*/experiment.py")
    return {path.parent.name: module for path, module in found.items()}


def load(name: str) -> ModuleType:
    """The module of an experiment; UnknownName where there is none."""
    check_known("experiment", name, sorted(_modules()))
    found = import_module(_modules()[name])
    if not hasattr(found, "models"):
        from companion.results.measurements import specs_of

        found.models = lambda config: specs_of(found.measurements(config))
    return found
