"""Procedures by name: every module in a folder ``trainings`` of the figures.

There is no list to edit. Such a module has

``VERSION``
    an integer, raised when what it trains changes;
``Settings``
    a frozen dataclass of plain values with a ``seed``; a setting typed ``Path`` is a reader's own file;
``record(settings, folder, *, device, report)``
    which trains one network and returns named tensors;
``checksums(settings)``
    where it reads files: their published sha256, for which nothing is read but a reader's own files;
``task_of(settings)``
    in its place where it trains on a task: the name and the options that differ from the task's defaults;
``require(settings)``
    where files lie elsewhere than data sets do: raises DataUnavailable or CorruptFile for a bad one.
"""

from functools import cache
from importlib import import_module
from types import ModuleType

from attnlib.errors import BadInput, check_known
from companion.paths import TRAININGS, modules_in


@cache
def _modules() -> dict[str, str]:
    modules: dict[str, str] = {}
    for path, module in modules_in(TRAININGS).items():
        if path.stem in modules:
            raise BadInput(f"{modules[path.stem]} and {module} are two trainings of one name; rename a file")
        modules[path.stem] = module
    return modules


def load(name: str) -> ModuleType:
    """Return the module of a procedure, say :mod:`notebooks.shared.trainings.translation`.

    Raises UnknownName: there is none.
    """
    check_known("procedure", name, sorted(_modules()))
    return import_module(_modules()[name])
