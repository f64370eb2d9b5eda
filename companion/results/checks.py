"""What experiments refuse that are not yet derived from :class:`companion.results.config.BaseConfig`.

What every experiment refuses in its settings: names that nothing has, and counts below one."""

from collections.abc import Collection
from typing import TYPE_CHECKING, get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.models.config import Cell, Positions
from companion.results.config import WITH_ATTENTION, changes_of, take_files
from companion.runs.rungs import scales, task_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "WITH_ATTENTION",
    "changes_of",
    "check_counts",
    "check_known",
    "check_names",
    "check_positive",
    "take_files",
]
_KNOWN = {"architecture": WITH_ATTENTION, "cell": get_args(Cell), "positions": get_args(Positions)}


def check_names(config: "DataclassInstance", **known: Collection[str]) -> None:
    check_known(config, **({"scale": scales()} | _KNOWN | known))
    for rung in getattr(config, "task", ()):
        task_of(rung)


def check_known(config: "DataclassInstance", **known: Collection[str]) -> None:
    for field, allowed in known.items():
        given = getattr(config, field, ())
        for name in (given,) if isinstance(given, str) else given:
            if name not in allowed:
                raise UnknownName(field, name, allowed)


def check_positive(config: "DataclassInstance", *names: str) -> None:
    for name in names:
        count = getattr(config, name, None)
        if count is not None and count < 1:
            raise BadInput(f"{name} is {count}; it must be at least 1")


def check_counts(config: "DataclassInstance", *names: str) -> None:
    check_positive(config, "seeds", "width", "steps", "fit_samples", *names)
    if (config.width or 0) % 2 and "AO" in getattr(config, "architecture", ()):
        raise BadInput(f"width {config.width} is odd; the sinusoidal positions of AO need an even one")
