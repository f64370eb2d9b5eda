"""Experiments by name: every ``notebooks/<part>/<name>/experiment.py``, found by its folder.

There is no list to edit. An experiment has ``Config`` (see `companion.results.config`), ``PROFILES`` (one for
``quick`` and ``paper``, which the book shows, and for ``tiny``, at which tests run everything in seconds),
``measurements(config)``, ``compute(config, store)``, which returns tables, and ``values(config, tables)``,
the numbers that claims and sentences address; ``models(config)``, which networks are asked, comes of itself.
"""

import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from attnlib.errors import AttnlibError, BadInput, check_known
from companion.paths import PROFILES, ROOT, module_of


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(_modules()))


@cache
def _modules() -> dict[str, tuple[Path, str]]:
    """The file and the module of each experiment, by name."""
    paths = sorted(ROOT.glob("notebooks/*/*/experiment.py"))
    return {path.parent.name: (path, module_of(path)) for path in paths}


def path_of(name: str) -> Path:
    """The file of an experiment; UnknownName where there is none."""
    check_known("experiment", name, sorted(_modules()))
    return _modules()[name][0]


def book_profiles(experiment: ModuleType) -> dict[str, Any]:
    """Return the settings that an experiment has at the profiles of the book."""
    return {name: experiment.PROFILES[name] for name in PROFILES if name in experiment.PROFILES}


def load(name: str) -> ModuleType:
    """The module of an experiment; UnknownName where there is none."""
    check_known("experiment", name, sorted(_modules()))
    experiment = import_module(_modules()[name][1])
    if not hasattr(experiment, "models"):

        def models(config: Any) -> list[Any]:
            return _specs_of(experiment, config)

        experiment.models = models
    return experiment


def _specs_of(experiment: ModuleType, config: Any) -> list[Any]:
    """The networks that an experiment measures.

    Raises BadInput: its ``measurements`` fails; the message names the line.
    """
    from companion.results.measurements import specs_of

    try:
        return specs_of(experiment.measurements(config))
    except (AttnlibError, MemoryError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        path = Path(frame.filename)
        file = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        name = experiment.__name__.split(".")[-2]
        raise BadInput(
            f"{name} does not say which networks it measures: measurements(config) of its experiment.py "
            f"failed with {type(error).__name__}: {error}, at {file}:{frame.lineno}, `{frame.line}`"
        ) from error
