"""Experiments by name: every module of this package that has ``PROFILES`` and ``compute``.

There is no list to edit. An experiment has ``PLACE`` (where in the paper), ``QUESTION``, ``Config`` (a frozen
dataclass), ``PROFILES`` (a Config for ``quick`` and ``paper``), ``models(config)`` and ``compute(config,
store)``.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from attnlib.errors import UnknownName


@cache
def names() -> tuple[str, ...]:
    """All experiment names, sorted; found from the source text, so that nothing heavy is imported."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    found = (path for path in sources if "\ndef compute(config" in path.read_text(encoding="utf-8"))
    return tuple(path.stem for path in found)


def load(name: str) -> ModuleType:
    """The module of an experiment.

    Raises:
        UnknownName: no experiment has this name.
    """
    if name not in names():
        raise UnknownName("experiment", name, names())
    return import_module(f"attnlib.experiments.{name}")


def profile_config(name: str, profile: str) -> object:
    """The configuration of an experiment at a profile.

    Raises:
        UnknownName: no such experiment or profile.
    """
    profiles = load(name).PROFILES
    if profile not in profiles:
        raise UnknownName("profile", profile, profiles)
    return profiles[profile]
