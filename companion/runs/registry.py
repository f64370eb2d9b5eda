"""Procedures by name: every module among the figures that has ``record``.

There is no list to edit. A procedure has ``Settings`` (a frozen dataclass of plain values with a ``seed``),
``record(settings, folder, *, device, report)``, which trains one network and returns named tensors, and
``checksums(settings)`` where it reads files: their sha256. One that reads a task by name also has
``builders(settings)``, the functions that make the task.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from attnlib.errors import check_known
from companion.runs.fingerprint import ROOT


def modules_with(line: str, where: str = "notebooks/**/*.py") -> dict[Path, str]:
    """The modules that have a line with this beginning, by path: nothing heavy is imported to find them."""
    found = (path for path in ROOT.glob(where) if f"\n{line}" in path.read_text(encoding="utf-8"))
    return {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found}


@cache
def _modules() -> dict[str, str]:
    return {path.stem: module for path, module in modules_with("def record(").items()}


def load(name: str) -> ModuleType:
    """The module of a procedure, say :mod:`notebooks.shared.translation`; UnknownName where there is none."""
    check_known("procedure", name, sorted(_modules()))
    return import_module(_modules()[name])
