"""The numbers a paper prints in its tables, read from a CSV (columns table, dataset, quantity, value, note).

Values stay the text that was printed, for a table also holds entries such as ``(23 src, 24 trg)``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import BadInput, UnknownName

COLUMNS = ("table", "dataset", "quantity", "value", "note")
RULES = ("unavailable", "by_construction", "not_run")


@dataclass(frozen=True)
class Reference:
    """A table, or one dataset or quantity of it, or the one entry where both meet."""

    table: str
    dataset: str | None = None
    quantity: str | None = None

    def covers(self, entry: Entry) -> bool:
        wanted = ((self.table, entry.table), (self.dataset, entry.dataset), (self.quantity, entry.quantity))
        return all(name is None or name == given for name, given in wanted)

    def __str__(self) -> str:
        return ", ".join([f"Table {self.table}", *filter(None, (self.dataset, self.quantity))])


@dataclass(frozen=True)
class Published:
    """What the paper prints for a claim: one number, or the part of its tables that a reference covers."""

    value: float | None = None
    reference: Reference | None = None
    entries: int = 1
    text: str = ""  # of one entry, as printed


@dataclass(frozen=True)
class Entry:
    """One printed number, and what a rule of :data:`RULES` says of it, each empty where none does.

    Attributes:
        unavailable: why it cannot be run.
        by_construction: why no run can move it.
        not_run: what it would take, of one that may not have been run.
    """

    table: str
    dataset: str
    quantity: str
    value: str
    note: str
    unavailable: str = ""
    by_construction: str = ""
    not_run: str = ""

    @property
    def judged_by_runs(self) -> bool:
        return not (self.unavailable or self.by_construction)


@dataclass(frozen=True)
class PublishedTables:
    """Every printed number in the order of the file, and a title for each table."""

    entries: tuple[Entry, ...]
    titles: Mapping[str, str]

    def table(self, name: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.table == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.table for entry in self.entries))

    def published(self, reference: Reference) -> Published:
        """What ``reference`` covers; its value when that is one number.

        Raises:
            UnknownName: the table, dataset or quantity is not printed (with the nearest name).
        """
        if reference.table not in self.names:
            raise UnknownName("table", reference.table, self.names)
        rows = self.table(reference.table)
        for kind in ("dataset", "quantity"):
            name, known = getattr(reference, kind), dict.fromkeys(getattr(entry, kind) for entry in rows)
            if name is not None and name not in known:
                raise UnknownName(f"{kind} in table {reference.table}", name, known)
        covered = [entry for entry in rows if reference.covers(entry)]
        if not covered:
            raise BadInput(f"{reference} is an empty corner of the table; choose another dataset or quantity")
        if len(covered) > 1:
            return Published(reference=reference, entries=len(covered))
        return Published(_as_number(covered[0].value), reference, text=covered[0].value)


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_tables(
    path: Path, titles: Mapping[object, str], rules: Mapping[str, Sequence[Mapping]]
) -> PublishedTables:
    """Read the CSV, and mark what the rules name.

    ``rules`` has for each of :data:`RULES` a list of ``{table, dataset, quantity, reason}``; each of the
    first three is a name, a list of names, or left out for all. The first that matches counts.

    Raises:
        BadInput: the file is missing, has other columns, prints one entry twice, or a rule matches nothing.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"published tables {path.name} cannot be read: {error}") from error
    if tuple(reader.fieldnames or ()) != COLUMNS or any(None in row or None in row.values() for row in rows):
        raise BadInput(
            f"published tables {path.name}: expected the columns {', '.join(COLUMNS)} in every row"
        )
    read = {kind: [_Rule.read(rule) for rule in of_kind] for kind, of_kind in rules.items()}
    seen: dict[tuple[str, str, str], int] = {}
    entries = []
    for line, row in enumerate(rows, start=2):
        place = (row["table"], row["dataset"], row["quantity"])
        if place in seen:
            raise BadInput(f"{path.name}, line {line}: {', '.join(place)} is already on line {seen[place]}")
        seen[place] = line
        told = {
            kind: next((rule.reason for rule in of_kind if rule.matches(row)), "")
            for kind, of_kind in read.items()
        }
        entries.append(Entry(**row, **told))
    every = [rule for of_kind in read.values() for rule in of_kind]
    idle = [rule.reason for rule in every if not any(rule.matches(row) for row in rows)]
    if idle:
        raise BadInput(
            f"{path.name}: no number matches the rule with the reason {idle[0]!r}; correct its names"
        )
    tables = {entry.table for entry in entries}
    named = {str(name): str(title) for name, title in titles.items()}
    if extra := [name for name in named if name not in tables]:
        raise UnknownName("table", extra[0], sorted(tables))
    return PublishedTables(tuple(entries), named)


@dataclass(frozen=True)
class _Rule:
    names: Mapping[str, frozenset[str]]
    reason: str

    @classmethod
    def read(cls, content: object) -> _Rule:
        known = ("table", "dataset", "quantity", "reason")
        if not isinstance(content, Mapping) or not content.get("reason") or len(content) < 2:
            raise BadInput(
                f"rule {content!r}: expected a reason and at least one of table, dataset, quantity"
            )
        for name in content:
            if name not in known:
                raise UnknownName("field of a rule", str(name), known)
        names = {
            column: frozenset(map(str, wanted if isinstance(wanted, list) else [wanted]))
            for column, wanted in content.items()
            if column != "reason"
        }
        return cls(names, " ".join(str(content["reason"]).split()))

    def matches(self, row: Mapping[str, str]) -> bool:
        return all(row[column] in wanted for column, wanted in self.names.items())
