"""Settings given by name and as text, turned into an experiment's typed configuration."""

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from attnlib.errors import BadInput, UnknownName


def override(config: Any, values: dict[str, object]) -> Any:
    """The configuration with some settings replaced; text is converted to the field's type.

    A field of several names takes them as a list or separated by commas: ``task=scan,one_to_one``; nothing
    after the sign leaves none.

    Raises:
        UnknownName: no such setting (the message has the nearest).
        BadInput: the value does not have the field's type.
    """
    hints = get_type_hints(type(config))
    changed = {}
    for name, value in values.items():
        if name not in hints:
            raise UnknownName("parameter", name, hints)
        changed[name] = _converted(name, value, hints[name])
    return replace(config, **changed)


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


def _converted(name: str, value: object, hint: Any) -> object:
    if isinstance(hint, UnionType):
        options = [option for option in get_args(hint) if option is not NoneType]
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return _converted(name, value, options[0])
    if get_origin(hint) is tuple:
        items = (
            [part for part in value.split(",") if value.strip()]
            if isinstance(value, str)
            else value
            if isinstance(value, list | tuple)
            else [value]
        )
        return tuple(_converted(name, item, get_args(hint)[0]) for item in items)
    try:
        if hint in (int, float) and not isinstance(value, bool):
            number = hint(value)
            if hint is float or number == float(value):
                return number
        elif hint is str and isinstance(value, str):
            return value.strip()
        elif hint is Path and isinstance(value, str | Path):
            return Path(value)
    except (TypeError, ValueError):
        pass
    raise BadInput(f"parameter {name!r} takes {getattr(hint, '__name__', hint)}; got {value!r}")
