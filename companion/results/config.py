"""Settings given by name and as text, turned into an experiment's typed configuration."""

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from attnlib.errors import BadInput, UnknownName

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}


def override(config: Any, values: dict[str, object]) -> Any:
    """The configuration with some settings replaced; text is converted to the field's type.

    Raises:
        UnknownName: no such setting (the message has the nearest).
        BadInput: the value does not have the field's type.
    """
    hints, known = get_type_hints(type(config)), [field.name for field in fields(config)]
    for name in values:
        if name not in known:
            raise UnknownName("parameter", name, known)
    return replace(config, **{name: converted(name, value, hints[name]) for name, value in values.items()})


def converted(name: str, value: object, hint: Any) -> object:
    """A value of the command line or of a notebook as what a type hint says.

    Several names are a list or separated by commas: ``task=scan,one_to_one``; nothing after the sign leaves
    none of them.

    Raises:
        BadInput: it does not fit; says what was given and what was expected.
    """
    one_of = [each for each in get_args(hint) if each is not NoneType]
    several = get_origin(hint) is tuple
    given = value.strip() if isinstance(value, str) else value
    if isinstance(given, str) and given.lower() == "none" and NoneType in get_args(hint):
        given = None
    if several and isinstance(given, str):
        given = [part.strip() for part in given.strip("()[]").split(",")] if given else []
    elif several and not isinstance(given, list | tuple):
        given = [given]
    try:
        if isinstance(given, bool) and hint is not bool:  # it would pass for a number
            raise ValueError
        return TypeAdapter(hint).validate_python(given)
    except ValueError as error:  # as pydantic's are
        expected = WORDS.get(one_of[0] if one_of else hint, hint)
        expected = f"{expected}, or several with commas" if several else expected
        raise BadInput(f"parameter {name!r} takes {expected}; got {value!r}") from error


def plain(config: Any) -> dict:
    """The configuration as JSON types, paths as text."""
    return json.loads(json.dumps(asdict(config), default=str))


def config_hash(config: Any) -> str:
    """Twelve hex digits that tell configurations apart."""
    return hashlib.sha256(json.dumps(plain(config), sort_keys=True).encode()).hexdigest()[:12]


def path_fields(config: Any) -> tuple[str, ...]:
    """Names of the settings that are file paths, relative ones being relative to the caller's folder."""
    hints = get_type_hints(type(config))
    return tuple(
        field.name for field in fields(config) if Path in (hints[field.name], *get_args(hints[field.name]))
    )
