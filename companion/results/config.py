"""Settings of experiments: `BaseConfig`, the base of every ``Config``, and the types of its fields.

.. code-block:: python

    class Config(BaseConfig):
        \"""Settings; a network is a task × seed.\"""

        task: tuple[Task, ...] = setting(("scan",), "tasks of the suite, by name")
        kind: Annotated[str, OneOf(KINDS)] = setting("recurrent", "recurrent, transformer")
        seeds: Positive = setting(3, "networks of each kind")

        def check(self) -> None:  # what no field says alone
            if self.seeds < len(self.task):
                raise BadInput(f"seeds is {self.seeds}; give at least one for each task")

Text of the command line is split at commas for a field of several values, and the refusal of a name, of
`OneOf` or a ``Literal``, tells the nearest. A class derived from another ``Config`` calls
``super().check()``, and where it changes the default of a field alone, the description stays. A limit of one
field is a type, never an ``if``: ``Annotated[int, Field(ge=2)]``, with the ``Field`` of this module. On a
bare node, which has no pydantic, nothing is checked: it trains for the profiles as they are written.
"""

import json
import os
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, dataclass_transform, get_args, get_origin, get_type_hints

try:
    from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, ValidationInfo
except ModuleNotFoundError:  # a bare node
    TypeAdapter, AfterValidator, Field = None, (lambda check: check), (lambda **limits: None)

from attnlib.errors import BadInput, UnknownName, check_known
from attnlib.models.config import Architecture
from companion.runs.suite import scales, task_of

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "under"}
WITH_ATTENTION = tuple(name for name in get_args(Architecture) if name != "VED")


def setting(default: Any, description: str) -> Any:
    """Return a field of a ``Config``.

    Args:
        default: the value where neither a profile nor a reader gives another.
        description: what the setting is, for the list of parameters on the command line and for the
            notebook, which has its first sentence.
    """
    return field(default=default, metadata={"description": description})


def descriptions(config: type) -> dict[str, str]:
    """Return the description of each setting of a ``Config``, by name; a class inherits those of its bases.

    Raises BadInput: a setting has none.
    """
    known: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if is_dataclass(base):
            described = [item for item in fields(base) if item.metadata]
            known |= {item.name: item.metadata["description"] for item in described}
    names = [item.name for item in fields(config)]
    if missing := [name for name in names if name not in known]:
        raise BadInput(
            f"{config.__module__}.{config.__name__}: no description of {', '.join(missing)}; "
            "write it as setting(default, description)"
        )
    return {name: known[name] for name in names}


@dataclass_transform(frozen_default=True, field_specifiers=(setting,))
class BaseConfig:
    """Settings of an experiment: a frozen dataclass whose fields pydantic checks and converts.

    Raises UnknownName for a name that is not one of a field's choices, BadInput for any other value that
    cannot be used; in one line.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        for name, (hint, adapter) in _adapters(type(self)).items():
            object.__setattr__(self, name, _converted(name, getattr(self, name), hint, adapter))
            _check_range(name, getattr(self, name))
        self.check()
        _check_filled(self)

    def check(self) -> None:
        """What no field says alone. Raises: BadInput."""


@cache
def _adapters(config: type) -> dict[str, tuple[Any, Any]]:
    """The type of every setting, and what converts a value to it."""
    hints = get_type_hints(config, include_extras=True) if TypeAdapter else {}
    names = [item.name for item in fields(config)] if hints else ()
    return {name: (hints[name], TypeAdapter(hints[name])) for name in names}


def _converted(name: str, value: object, hint: Any, adapter: "TypeAdapter") -> object:
    """Several names are a list, or text with commas: ``scan,one_to_one``; empty text is none of them."""
    several, optional = get_origin(hint) is tuple, NoneType in get_args(hint)
    given = value.strip() if isinstance(value, str) else value
    if optional and isinstance(given, str) and given.lower() == "none":
        return None
    if several and isinstance(given, str):
        given = [part.strip() for part in given.strip("()[]").split(",")] if given else []
    elif several and not isinstance(given, list | tuple):
        given = [given]
    kind = hint  # of one value
    while get_origin(kind) not in (None, Literal):
        kind = get_args(kind)[0]
    expected = f"{WORDS.get(kind, kind)}{', or several with commas' if several else ''}"
    wrong = BadInput(f"parameter {name!r} takes {expected}; got {value!r}")
    if isinstance(given, bool) and kind is not bool:  # it would pass for a number
        raise wrong
    try:
        return adapter.validate_python(given, context=name)
    except ValidationError as error:
        raise _mistake(name, kind, error.errors()[0]) or wrong from error


def _check_filled(config: Any) -> None:
    """Raises BadInput for numbers of which none is given; of names, there may be none."""
    for item in fields(config):
        several = item.default if isinstance(item.default, tuple) else ()
        if getattr(config, item.name) == () and isinstance(next(iter(several), None), int | float):
            raise BadInput(f"parameter {item.name!r} is empty; give one, as in {several[0]}")


def _check_range(name: str, value: object) -> None:
    """Raises BadInput for a number that would never end, never learn, or not fit in memory."""
    several = value if isinstance(value, tuple) else (value,)
    for number in several:
        if not isinstance(number, int | float):
            continue
        most = 1e9 if isinstance(number, int) else 1e6
        if name.endswith(("seeds", "controls")):
            most = 1000
        if abs(number) > most:
            raise BadInput(f"{name} is {number}; it must be at most {most:g}")
        if name == "learning_rate" and number <= 0:
            raise BadInput(f"{name} is {number}; it must be above 0")
        # float32 weights with gradient and two moments of Adam, of a GRU each in encoder and decoder
        least = 16 * 6 * number**2
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if name.endswith("width") and least > have:
            lack = f"would take at least {least / 1e9:,.0f} GB of memory; this machine has {have / 1e9:,.0f}"
            raise BadInput(f"{name} is {number}, and its networks {lack}")


def _mistake(name: str, kind: Any, error: dict) -> BadInput | None:
    """A refusal of pydantic in our words; None for a value of the wrong type."""
    about, given = error.get("ctx", {}), error["input"]
    if "error" in about:
        return about["error"] if isinstance(about["error"], BadInput) else BadInput(str(about["error"]))
    if get_origin(kind) is Literal:
        return UnknownName(name, str(given), map(str, get_args(kind)))
    limits = [f"{words} {about[limit]}" for limit, words in LIMITS.items() if limit in about]
    if limits or error["type"] == "finite_number":
        subject = "each" if error["loc"] else "it"
        return BadInput(f"{name} is {given}; {subject} must be {limits[0] if limits else 'finite'}")
    return None


# Types of fields.


def OneOf(known: Collection) -> AfterValidator:
    """One of several names (or numbers) that are not written out as a ``Literal``."""

    def check(name: Any, info: "ValidationInfo") -> Any:
        if name not in known:
            raise UnknownName(info.context, str(name), map(str, known))
        return name

    return AfterValidator(check)


def looked_up(look_up: Callable[[str], object]) -> AfterValidator:
    """A name that a function accepts."""

    def check(name: str) -> str:
        look_up(name)
        return name

    return AfterValidator(check)


Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Scale = Annotated[str, OneOf(scales())]
Task = Annotated[str, looked_up(task_of)]  # a task of the suite
Attending = Literal[WITH_ATTENTION]


def take_files(config: Any, **profiles: Collection[tuple[str, ...]]) -> None:
    """Makes a reader's files the one task, ``parallel``, or ``aligned`` with ``links``; for ``check``.

    ``profiles`` has, for each field that names tasks, what stands there when none was asked for. Raises
    BadInput for one file without the other, or another task beside them.
    """
    given = {name: getattr(config, name, None) for name in ("source", "target", "links")}
    if (given["source"] is None) != (given["target"] is None) or (given["links"] and not given["source"]):
        raise BadInput("parameters source and target go together: two text files, line by line translations")
    tokenizer = getattr(config, "tokenizer", None)
    if tokenizer and given["source"] is None:
        raise BadInput(f"tokenizer={tokenizer} is of your own text; give source=PATH and target=PATH with it")
    if tokenizer not in (None, "spaces") and given["links"]:
        raise BadInput(f"links count words split at spaces; leave out tokenizer={tokenizer}")
    task_name = "aligned" if given["links"] else "parallel"
    for name, usual in profiles.items():
        named = getattr(config, name)
        if given["source"] is None:
            if reserved := {"parallel", "aligned"} & set(named):
                raise BadInput(f"task {min(reserved)!r} needs two files: source=my.en and target=my.fr")
        elif named not in (*usual, (task_name,), ()):
            raise BadInput(f"parameters source and target are a task of their own; leave out {name}={named}")
        else:
            object.__setattr__(config, name, (task_name,))


def check_width(config: Any) -> None:
    """Raises BadInput: an odd width where there is AO."""
    if (config.width or 0) % 2 and "AO" in config.architecture:
        raise BadInput(f"width {config.width} is odd; the sinusoidal positions of AO need an even one")


def changes_of(config: Any) -> dict[str, object]:
    """What a configuration changes in the plan of every model: width, steps, and the files to train on."""
    changes = {name: given for name in ("width", "steps") if (given := getattr(config, name)) is not None}
    if getattr(config, "source", None) is not None:
        files = {name: getattr(config, name, None) for name in ("source", "target", "links")}
        changes["task_options"] = {name: str(path.resolve()) for name, path in files.items() if path}
        if getattr(config, "tokenizer", None):
            changes["task_options"]["tokenizer"] = config.tokenizer
    return changes


# What the engine does with settings.


def override(config: Any, values: dict[str, object]) -> Any:
    """The configuration with some settings replaced. Raises UnknownName: no such setting."""
    known = [item.name for item in fields(config)]
    for name in values:
        check_known("parameter", name, known)
    return replace(config, **values)


def plain(config: Any) -> dict:
    """The configuration as JSON types, paths as text."""
    return json.loads(json.dumps(asdict(config), default=str))


def path_fields(config: Any) -> tuple[str, ...]:
    """Names of the settings that are file paths, relative ones being relative to the caller's folder."""
    hints = get_type_hints(type(config))
    names = (item.name for item in fields(config))
    return tuple(name for name in names if Path in (hints[name], *get_args(hints[name])))
