"""Recipes by name: every module of this package, or beside a figure that alone needs it, that has ``record``.

There is no list to edit. A recipe has ``Settings`` (a frozen dataclass of plain values with a ``seed``),
``record(settings, folder, *, device, report)``, which trains one network and returns named tensors, and
``checksums(settings)``, the data files it reads with their sha256. One that reads a task by name also has
``builders(settings)``, the functions that make the task.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from attnlib.errors import BadInput, UnknownName
from companion.runs.fingerprint import ROOT


@cache
def names() -> tuple[str, ...]:
    """All recipe names, sorted; found from the source text, so that nothing heavy is imported."""
    return tuple(sorted(_modules()))


@cache
def _modules() -> dict[str, str]:
    """Name → module, of this package and beside figures."""
    sources = [*Path(__file__).parent.glob("*.py"), *ROOT.glob("notebooks/*/*/*.py")]
    found = (path for path in sources if "\ndef record(" in path.read_text(encoding="utf-8"))
    return {path.stem: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found}


def module_of(name: str) -> str:
    """The module of a recipe, say ``companion.runs.permutation_copying``.

    Raises:
        UnknownName: no recipe has this name.
    """
    if name not in names():
        raise UnknownName("recipe", name, names())
    return _modules()[name]


def load(name: str) -> ModuleType:
    """The module itself, imported; errors as :func:`module_of`."""
    return import_module(module_of(name))


def roots(name: str, settings: object) -> tuple[Callable, ...]:
    """The code behind a run of a recipe: what fingerprints of it and of its measurements begin from."""
    recipe = load(name)
    found = [
        getattr(recipe, part, None) for part in ("record", "Settings", "new_network", "recorded_network")
    ]
    builders = getattr(recipe, "builders", lambda settings: ())
    return (*(part for part in found if part is not None), *builders(settings))


def settings_of(name: str, given: dict[str, object]) -> object:
    """The ``Settings`` of a recipe with some of its defaults replaced.

    Raises:
        UnknownName: no such recipe or setting. BadInput: a value that the recipe cannot use, or one missing.
    """
    settings = load(name).Settings
    known = [field.name for field in fields(settings)]
    for setting in given:
        if setting not in known:
            raise UnknownName(f"setting of recipe {name}", setting, known)
    try:
        return settings(**given)
    except TypeError as error:
        raise BadInput(f"recipe {name} cannot be set up: {error}; it has {', '.join(known)}") from error
