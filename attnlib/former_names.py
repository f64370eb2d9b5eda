"""Let former names of modules, arguments and attributes work for one more release; each use of one warns."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable)


def former_object(module: str, replacements: Mapping[str, str], name: str) -> Any:
    """Return what replaces a former name of a module, for the ``__getattr__`` of that module.

    Args:
        module: name of the module of the former name.
        replacements: by the former name, the present one with its module, such as
            "attnlib.analysis.stream.CorpusGaps".
        name: of the attribute.

    Returns:
        the function, class or constant under its present name.

    Raises:
        AttributeError: the name is not a former one.
    """
    if name not in replacements:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    present_module, _, present_name = replacements[name].rpartition(".")
    warn(f"{module}.{name} is deprecated: it is {replacements[name]}", calls=3)
    return getattr(import_module(present_module), present_name)


def former_arguments(**present: str) -> Callable[[Function], Function]:
    """Return a decorator of a class or a function that lets arguments be given by their former names.

    Args:
        present: the present name of each argument, by the former one.
    """

    def decorated(function: Function) -> Function:
        if isinstance(function, type):
            cls: Any = function
            cls.__init__ = _with_former_names(cls.__init__, cls.__name__, present)
            return cls
        return _with_former_names(function, function.__name__, present)

    return decorated


def _with_former_names(function: Function, shown: str, present: Mapping[str, str]) -> Function:
    """Return a function that renames arguments; warnings name the function as shown."""

    @wraps(function)
    def renamed(*positional: Any, **named: Any) -> Any:
        for former in present.keys() & named.keys():
            warn(f"{shown}({former}=…) is deprecated: it is {present[former]}")
            named[present[former]] = named.pop(former)
        return function(*positional, **named)

    return cast(Function, renamed)


def former_attribute(former: str, present: str) -> Any:
    """Return a property that reads an attribute by its former name.

    Args:
        former: name of the class and the attribute, such as "Shard.shards", for the warning.
        present: the present name of the attribute, or names with dots between, such as "hold_out.every".
    """

    def read(self: Any) -> Any:
        warn(f"{former} is deprecated: it is {present}")
        value = self
        for name in present.split("."):
            value = getattr(value, name)
        return value

    return property(read, doc=f"The former name of ``{present}``.")


def warn(message: str, *, calls: int = 2) -> None:
    """Warn of a former name, at the line that uses it.

    Args:
        message: what is deprecated, and what it is now.
        calls: number of calls between that line and the warning.
    """
    warnings.warn(message, DeprecationWarning, stacklevel=calls + 1)
