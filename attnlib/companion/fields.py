"""Fields of a hand-written YAML mapping, checked by name and type."""

from collections.abc import Collection, Mapping
from typing import Any

from attnlib.errors import BadInput, UnknownName


def read_fields(
    where: str, content: object, known: Collection[str], required: Collection[str]
) -> dict[str, Any]:
    """``content`` as a dict, when it is a mapping of ``known`` names that has every ``required`` one.

    Raises:
        BadInput: it is not; the message starts with ``where`` and offers the nearest name for an unknown one.
    """
    if not isinstance(content, Mapping):
        raise BadInput(f"{where}: expected fields ({', '.join(known)}), got {type(content).__name__}")
    for name in content:
        if name not in known:
            raise BadInput(f"{where}: {UnknownName('field', str(name), known)}")
    missing = [name for name in required if content.get(name) is None]
    if missing:
        raise BadInput(f"{where}: missing {', '.join(missing)}; required are {', '.join(required)}")
    return dict(content)


def read_number(fields: Mapping[str, Any], name: str, kind: str) -> float:
    """The number called ``name``; a boolean is none.

    Raises:
        BadInput: it is missing or something else.
    """
    number = fields.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadInput(f"{kind} needs a number as {name!r}, got {number!r}")
    return float(number)
