"""Packages that only some functions need, imported where they are used."""

from importlib import import_module
from types import ModuleType

from attnlib.errors import BadInput

RANGES = {"IPython": ">=8,<10", "matplotlib": ">=3.9,<4", "pandas": ">=2.2,<4"}


def library(name: str) -> ModuleType:
    """Import a package or a module of it.

    Raises:
        BadInput: the package is not installed; the message says how to install it.

    >>> library("pandas").DataFrame({"part": ["temporal"]}).shape
    (1, 1)
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        wanted = f"pip install '{package}{RANGES[package]}'"
        raise BadInput(f"{package} is not installed, which this needs: {wanted}") from error
