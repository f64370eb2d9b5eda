"""Data sets by name: each module of this package that defines ``DATASET`` adds one, there is no list."""

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from attnlib.datasets.base import Dataset
from attnlib.errors import UnknownName


def names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_datasets()))


def get(name: str) -> Dataset:
    """The data set ``name``.

    Raises:
        UnknownName: there is none of this name.
    """
    if name not in _datasets():
        raise UnknownName("data set", name, names())
    return _datasets()[name]


@cache
def _datasets() -> dict[str, Dataset]:
    found = {}
    for entry in iter_modules([str(Path(__file__).parent)]):
        module = import_module(f"attnlib.datasets.{entry.name}")
        if isinstance(dataset := getattr(module, "DATASET", None), Dataset):
            found[dataset.name] = dataset
    return found
