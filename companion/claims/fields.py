"""Fields of hand-written YAML, and errors that say where, what was given and what was expected."""

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Strict,
    ValidationError,
    model_validator,
)

from attnlib.errors import BadInput, UnknownName, check_known
from companion.results import registry
from companion.results.config import looked_up


def _on_one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("expected some text")
    return " ".join(text.split())


def matching(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    """For text that matches as a whole."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text!r}: expected {expected}")
        return text

    return AfterValidator(check)


Text = Annotated[str, AfterValidator(_on_one_line)]
Number = Annotated[float, Strict()]  # 1 and 1.5, but neither "1" nor yes
Name = Annotated[str, BeforeValidator(str)]  # YAML reads the name of Table 2 as a number
Experiment = Annotated[str, looked_up(lambda name: check_known("experiment", name, registry.names()))]
Listed = BeforeValidator(lambda given: given if isinstance(given, list) else [given])  # one, or a list


class Fields(BaseModel):
    """A mapping with these fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, content: object) -> object:
        known = cls.model_fields
        if not isinstance(content, Mapping):
            raise ValueError(f"expected fields ({', '.join(known)}), got {content!r}")
        for name in content:
            check_known("field", str(name), known)
        return content

    @classmethod
    def read(cls, where: str, content: object) -> Self:
        """``content`` as these fields; BadInput has a line for every mistake, with its place."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            lines = (f"{where}: {_mistake(dict(mistake), content)}" for mistake in error.errors())
            raise BadInput("\n".join(lines)) from error


def _mistake(error: dict, content: object) -> str:
    place, about = [], error.get("ctx", {})
    for part in error["loc"]:
        listed = isinstance(content, list) and isinstance(part, int)
        known = part < len(content) if listed else isinstance(content, Mapping) and part in content
        content = content[part] if known else None  # what is not there, or the name of a kind
        place.append(str(content["id"] if isinstance(content, Mapping) and "id" in content else part))
    if error["type"] == "missing":
        return f"missing {'.'.join(place)}"
    if "error" in about:
        message = str(about["error"])
    elif options := re.findall("'([^']*)'", about.get("expected") or about.get("expected_tags") or ""):
        field = [part for part in place if not part.isdigit()][-1]
        kind, given = ("kind", about["tag"]) if "tag" in about else (field, error["input"])
        message = str(UnknownName(kind, str(given), options))
    else:
        what = error["msg"].replace("Input should be", "expected").replace("a valid tuple", "a list")
        message = f"got {error['input']!r}, {what}"
    return ": ".join(filter(None, [".".join(place), message]))
