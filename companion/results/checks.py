"""What every experiment refuses in its settings: names that nothing has, and counts below one."""

from collections.abc import Collection
from typing import TYPE_CHECKING, get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.models.config import Architecture, Cell, Positions
from companion.runs.rungs import scales, task_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WITH_ATTENTION = tuple(name for name in get_args(Architecture) if name != "VED")
_KNOWN = {"architecture": WITH_ATTENTION, "cell": get_args(Cell), "positions": get_args(Positions)}


def check_names(config: "DataclassInstance", **known: Collection[str]) -> None:
    """``scale``, ``task``, ``architecture``, ``cell`` and ``positions``, where a configuration has them.

    Args:
        known: what a field may hold, for further fields or in place of what is usual.

    Raises:
        UnknownName: a name that is not among them; says the nearest.
    """
    for field, allowed in ({"scale": scales()} | _KNOWN | known).items():
        given = getattr(config, field, ())
        for name in (given,) if isinstance(given, str) else given:
            if name not in allowed:
                raise UnknownName(field, name, allowed)
    for rung in getattr(config, "task", ()):
        task_of(rung)


def take_files(config: "DataclassInstance", **profiles: Collection[tuple[str, ...]]) -> None:
    """Makes a reader's files the one task; to be called before names are checked.

    ``source`` and ``target`` are the task ``parallel``; with ``links``, where a configuration has it, they
    are ``aligned``.

    Args:
        profiles: for each field that names tasks, what stands there when none was asked for.

    Raises:
        BadInput: one file without the other, or another task beside them.
    """
    given = {name: getattr(config, name, None) for name in ("source", "target", "links")}
    if (given["source"] is None) != (given["target"] is None) or (given["links"] and not given["source"]):
        raise BadInput("parameters source and target go together: two text files, line by line translations")
    rung = "aligned" if given["links"] else "parallel"
    for field, usual in profiles.items():
        named = getattr(config, field)
        if given["source"] is None:
            if own := {"parallel", "aligned"} & set(named):
                raise BadInput(f"task {min(own)!r} needs two files: source=my.en and target=my.fr")
        elif named not in (*usual, (rung,), ()):
            raise BadInput(f"parameters source and target are a task of their own; leave out {field}={named}")
        else:
            object.__setattr__(config, field, (rung,))


def changes_of(config: "DataclassInstance") -> dict[str, object]:
    """What a configuration changes in the plan of every model: width, steps, and the files to train on."""
    changes = {name: given for name in ("width", "steps") if (given := getattr(config, name)) is not None}
    if getattr(config, "source", None) is not None:
        files = {name: getattr(config, name, None) for name in ("source", "target", "links")}
        changes["task_options"] = {name: str(path.resolve()) for name, path in files.items() if path}
    return changes


def check_counts(config: "DataclassInstance", *names: str) -> None:
    """``seeds``, ``width``, ``steps``, ``fit_samples`` and these others; None stands for the plan's number.

    Raises:
        BadInput: a count below 1, or an odd width where there is AO.
    """
    for name in ("seeds", "width", "steps", "fit_samples", *names):
        count = getattr(config, name, None)
        if count is not None and count < 1:
            raise BadInput(f"{name} is {count}; it must be at least 1")
    if (config.width or 0) % 2 and "AO" in getattr(config, "architecture", ()):
        raise BadInput(f"width {config.width} is odd; the sinusoidal positions of AO need an even one")
