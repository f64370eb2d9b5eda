"""Fields of hand-written YAML, and errors that say where, what was given and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Strict,
    ValidationError,
    model_validator,
)

from attnlib.errors import BadInput, UnknownName

Some = TypeVar("Some", bound="Fields")


def _on_one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("expected some text")
    return " ".join(text.split())


Text = Annotated[str, AfterValidator(_on_one_line)]
Number = Annotated[float, Strict()]  # 1 and 1.5, but neither "1" nor yes
Name = Annotated[str, BeforeValidator(str)]  # YAML reads the name of Table 2 as a number


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
            if name not in known:
                raise UnknownName("field", str(name), known)
        return content


def read_fields(fields: type[Some], where: str, content: object) -> Some:
    """``content`` as ``fields``.

    Raises:
        BadInput: it is not; a line for every mistake, which starts with ``where``.
    """
    try:
        return fields.model_validate(content)
    except ValidationError as error:
        raise BadInput("\n".join(f"{where}: {mistake}" for mistake in _mistakes(error))) from error


def _mistakes(error: ValidationError) -> Iterator[str]:
    missing = []
    for each in error.errors():
        place, about = ".".join(map(str, each["loc"])), each.get("ctx", {})
        before = f"{place}: " if place else ""
        if each["type"] == "missing":
            missing.append(place)
        elif "error" in about:
            yield f"{before}{about['error']}"
        elif each["type"] in ("literal_error", "union_tag_invalid"):
            expected = re.findall("'([^']*)'", about.get("expected") or about["expected_tags"])
            kind = place if "expected" in about else f"{about['discriminator']} of {place}".replace("'", "")
            yield str(UnknownName(kind, str(about.get("tag", each["input"])), expected))
        else:
            expected = each["msg"].replace("Input should be", "expected")
            yield f"{before}got {each['input']!r}, {expected}"
    if missing:
        yield f"missing {', '.join(missing)}"
