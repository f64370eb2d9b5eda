"""A checker of signatures for jaxtyping's import hook, and a plugin of pytest that tells what it has checked.

``pytest -p tests.attnlib.signature_checker``, with its ``checked`` as the last of jaxtyping's packages, has
beartype check the arrays in every call of the package. Other types are pyright's concern. This module imports
nothing of the package before its tests do: the first import has to be the hook's.
"""

import json
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray
from typing_extensions import is_protocol

WITH_SHAPES: set[str] = set()  # functions whose signatures have shapes: module, colon, name in the module
CALLED: set[str] = set()  # those of them that were called


def checked(function: Callable) -> Callable:
    """Return a function whose arrays are checked in every call, and which is noted when it is called."""
    shapes = {name: hint for name, hint in function.__annotations__.items() if has_shape(hint)}
    if not shapes:
        return function
    function.__annotations__ = dict.fromkeys(function.__annotations__, Any) | shapes
    checks = beartype(function)
    name = f"{function.__module__}:{function.__qualname__}"
    WITH_SHAPES.add(name)

    @wraps(function)
    def noted(*arguments, **named):
        CALLED.add(name)
        return checks(*arguments, **named)

    return noted


def has_shape(hint: object) -> bool:
    """Return True if a type is an array of some shape, or has one in it."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(map(has_shape, get_args(hint)))


def is_public(name: str) -> bool:
    """Return True if neither a function, as it is noted, nor its class has a name of one underscore."""
    parts = name.partition(":")[2].split(".")
    return not any(part.startswith("_") and not part.startswith("__") for part in parts)


def is_of_a_protocol(name: str) -> bool:
    """Return True if a function, as it is noted, is a method of a protocol, which nobody calls."""
    module, _, path = name.partition(":")
    owner = getattr(import_module(module), path.partition(".")[0], None)
    return isinstance(owner, type) and is_protocol(owner)


def pytest_addoption(parser):
    parser.addoption("--names-of-signatures", type=Path, help="file for the names of functions with shapes")


def pytest_sessionfinish(session):
    """Write the names of all public functions with shapes, and of those that no test has called."""
    package = import_module("attnlib")
    for module in walk_packages(package.__path__, "attnlib."):
        if module.name.rpartition(".")[2] != "__main__":
            import_module(module.name)
    public = {name for name in WITH_SHAPES if is_public(name) and not is_of_a_protocol(name)}
    names = {"with shapes": sorted(public), "not called": sorted(public - CALLED)}
    session.config.getoption("names_of_signatures").write_text(json.dumps(names), encoding="utf-8")
