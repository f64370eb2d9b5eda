"""The numbers a paper prints in its tables, read from a CSV (columns table, dataset, quantity, value, note).

Values stay the text that was printed, for a table also holds entries such as ``(23 src, 24 trg)``.
"""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self

from pydantic import model_validator

from attnlib.errors import BadInput, UnknownName, check_known
from companion.claims.fields import Fields, Listed, Name, Text

COLUMNS = ("table", "dataset", "quantity", "value", "note")
Names = Annotated[tuple[Name, ...], Listed]


class Reference(Fields):
    """A table, or one dataset or quantity of it, or the one entry where both meet."""

    table: Name
    dataset: Name | None = None
    quantity: Name | None = None

    def __str__(self) -> str:
        return ", ".join([f"Table {self.table}", *filter(None, (self.dataset, self.quantity))])


class Rule(Fields):
    """What holds of the numbers named, by a name, a list of names, or left out for all."""

    table: Names | None = None
    dataset: Names | None = None
    quantity: Names | None = None
    reason: Text

    @model_validator(mode="after")
    def _about_something(self) -> Self:
        if self.table is self.dataset is self.quantity is None:
            raise ValueError("a rule names at least one of table, dataset, quantity")
        return self

    def matches(self, row: Mapping[str, str]) -> bool:
        named = {column: getattr(self, column) for column in COLUMNS[:3]}
        return all(names is None or row[column] in names for column, names in named.items())


@dataclass(frozen=True)
class Entry:
    """One printed number, and the reasons that rules give for it, each empty where none does."""

    table: str
    dataset: str
    quantity: str
    value: str
    note: str
    unavailable: str = ""  # why it cannot be run
    by_construction: str = ""  # why no run can move it
    not_run: str = ""  # what it would take

    @property
    def judged_by_runs(self) -> bool:
        return not (self.unavailable or self.by_construction)


@dataclass(frozen=True)
class Published:
    """What the paper prints for a claim: one number, or the entries of its tables that a reference covers."""

    value: float | None = None
    reference: Reference | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class PublishedTables:
    """Every printed number in the order of the file, and a title for each table."""

    entries: tuple[Entry, ...]
    titles: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.table == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.table for entry in self.entries))

    def published(self, reference: Reference) -> Published:
        """What a reference covers, with its number where it is one.

        Raises UnknownName, BadInput: it is not printed (with the nearest name), or nothing is printed there.
        """
        if not self.entries:
            raise BadInput(f"{reference} is of a table, but the file of claims names no `csv`")
        check_known("table", reference.table, self.names)
        covered = entries = self.table(reference.table)
        for kind in ("dataset", "quantity"):
            if (name := getattr(reference, kind)) is not None:
                known = dict.fromkeys(getattr(entry, kind) for entry in entries)
                check_known(f"{kind} in table {reference.table}", name, known)
                covered = tuple(entry for entry in covered if getattr(entry, kind) == name)
        if not covered:
            raise BadInput(f"{reference} is an empty corner of the table; choose another dataset or quantity")
        value = None
        with suppress(ValueError):
            value = float(covered[0].value) if len(covered) == 1 else None
        return Published(value, reference, covered)


def read_tables(
    path: Path, titles: Mapping[str, str] | None = None, rules: Mapping[str, Sequence[Rule]] | None = None
) -> PublishedTables:
    """Read the CSV, and mark what the rules name; they are lists by attribute of :class:`Entry`.

    Of a list the first rule that matches counts. Raises BadInput for a file that cannot be used, that has
    another checksum than the ``SHA256SUMS`` beside it says, or a rule that matches nothing; UnknownName for a
    title of a table that is not there.
    """
    sums = path.with_name("SHA256SUMS")
    try:
        found = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        if sums.exists() and found not in sums.read_text(encoding="utf-8").splitlines():
            raise BadInput(
                f"published tables {path.name} are not those that {sums} was written for: restore them, or, "
                "after a correction, write it anew: sha256sum *.csv > SHA256SUMS"
            )
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"published tables {path.name} cannot be read: {error}") from error
    if tuple(reader.fieldnames or ()) != COLUMNS or any(None in row or None in row.values() for row in rows):
        expected = f"expected the columns {', '.join(COLUMNS)} in every row"
        raise BadInput(f"published tables {path.name}: {expected}")
    seen: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        place = tuple(row[column] for column in COLUMNS[:3])
        if seen.setdefault(place, line) != line:
            raise BadInput(f"{path.name}, line {line}: {', '.join(place)} is already on line {seen[place]}")
    for kind, of_kind in (rules or {}).items():
        for rule in of_kind:
            if not (matched := [row for row in rows if rule.matches(row)]):
                what = f"no number matches the rule with the reason {rule.reason!r}"
                raise BadInput(f"{path.name}: {what}; correct its names")
            for row in matched:
                row.setdefault(kind, rule.reason)
    tables = PublishedTables(tuple(Entry(**row) for row in rows), titles or {})
    if extra := [name for name in tables.titles if name not in tables.names]:
        raise UnknownName("table", extra[0], tables.names)
    return tables
