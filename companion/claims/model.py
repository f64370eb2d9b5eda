"""Claims: what a paper says, in our words, and how a number of ours answers it.

Read from ``claims/*.yaml``; how they are written is in ``claims/README.md``. The numbers that a paper prints
in its tables are read from a CSV, and stay the text that was printed, for a table also holds entries such as
``(23 src, 24 trg)``.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import yaml
from pydantic import AfterValidator, Field, model_validator

from attnlib.errors import BadInput, UnknownName, check_known
from companion.claims.estimates import KEY
from companion.claims.fields import Experiment, Fields, Listed, Name, Number, Text, matching
from companion.claims.verdicts import (
    Judgement,
    Others,
    Presupposition,
    Region,
    Verdict,
    judge_values,
    not_there,
)
from companion.paths import PROFILES

SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, where it was built
WORD = re.compile(r"[a-z0-9]+")
ID = re.compile(rf"{WORD.pattern}(-{WORD.pattern})*")
JUDGED = ("experiment", "keys", "judge", "profiles")
LONGEST_NAME = 40  # letters, on the narrowest screen two lines
COLUMNS = ("table", "dataset", "quantity", "value", "note")  # of printed numbers


Names = Annotated[tuple[Name, ...], Listed]
Key = Annotated[str, matching(KEY, "names joined by dots, such as one_to_one.AO.typicality")]
Profiles = Annotated[
    tuple[Literal[PROFILES], ...],
    AfterValidator(lambda given: tuple(name for name in PROFILES if name in given)),
]
About = Literal["mathematics", "data", "networks"]
# By the paper; by us from a sentence of it; of the paper by others, such as a summary of it; by us.
Origin = Literal["said", "inferred", "reported", "predicted"]
ABOUT = get_args(About)
ORIGINS = get_args(Origin)


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
        if self.table is None and self.dataset is None and self.quantity is None:
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
        return self._by_table.get(name, ())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_table)

    @cached_property
    def _by_table(self) -> dict[str, tuple[Entry, ...]]:
        tables: dict[str, list[Entry]] = {}
        for entry in self.entries:
            tables.setdefault(entry.table, []).append(entry)
        return {name: tuple(entries) for name, entries in tables.items()}

    @cached_property
    def _names_in(self) -> dict[tuple[str, str], dict[str, None]]:
        """Names of data sets and of quantities, by table and kind: hundreds of claims look them up."""
        names: dict[tuple[str, str], dict[str, None]] = {}
        for entry in self.entries:
            for kind in ("dataset", "quantity"):
                names.setdefault((entry.table, kind), {})[getattr(entry, kind)] = None
        return names

    def published(self, reference: Reference) -> Published:
        """What a reference covers, with its number where it is one.

        Raises UnknownName, BadInput: it is not printed (with the nearest name), or nothing is printed there.
        """
        if not self.entries:
            raise BadInput(f"{reference} is of a table, but the file of claims names no `csv`")
        check_known("table", reference.table, self.names)
        covered = self.table(reference.table)
        for kind in ("dataset", "quantity"):
            if (name := getattr(reference, kind)) is not None:
                known = self._names_in[reference.table, kind]
                check_known(f"{kind} in table {reference.table}", name, known)
                covered = tuple(entry for entry in covered if getattr(entry, kind) == name)
        if not covered:
            raise BadInput(f"{reference} is an empty corner of the table; choose another dataset or quantity")
        value = None
        with suppress(ValueError):
            value = float(covered[0].value) if len(covered) == 1 else None
        return Published(value, reference, covered)


class Effect(Fields):
    """The smallest effect that means what a claim says, why, and whether results had been seen by then."""

    value: Number
    because: Text
    seen_before: bool = False


class InCells(Fields):
    """What the number of a claim is, for the cell of a table: a short name, a unit, or both.

    Attributes:
        name: one, or one for each of two keys, where the number alone would be read wrongly.
        unit: ``share`` for what is between 0 and 1 and written in per cent, ``share points`` for a
            difference of two such, any other word, or nothing; by default that of the result's column.
    """

    name: Annotated[tuple[Text, ...], Listed] = ()
    unit: str | None = None

    @model_validator(mode="after")
    def _short(self) -> Self:
        if not self.name and self.unit is None:
            raise ValueError("give a name, a unit or both")
        for words in (*self.name, self.unit or ""):
            if len(words) > LONGEST_NAME:
                raise ValueError(f"{words!r} is too long for a cell: at most {LONGEST_NAME} characters")
        return self


class ClaimFields(Fields):
    """A claim as it is written (see above)."""

    id: Annotated[str, matching(ID, "small letters and digits, with single hyphens between")]
    kind: Literal["statement", "falsifier", "reading"] = "statement"
    place: Text
    says: Text
    inferred_from: Text = ""
    reported_by: Text = ""
    published: Number | Reference | None = None
    experiment: Experiment | None = None
    keys: tuple[Key, ...] = ()
    judge: Region | None = None
    profiles: Profiles = ()
    about: About = "networks"
    smallest_effect: Annotated[tuple[Effect | str, ...], Listed] = ()
    presupposes: Annotated[tuple[Presupposition | str, ...], Listed] = ()
    by_construction: Text = ""
    enough: Literal["all", "any"] = "all"  # of its parts; any: it says that something can be so
    not_run: Text = ""
    cannot_be_run: Text = ""
    shown: InCells | None = None

    @model_validator(mode="after")
    def _judged_or_not(self) -> Self:
        reasons = [name for name in ("not_run", "cannot_be_run") if getattr(self, name)]
        given = [name for name in JUDGED if getattr(self, name)]
        if reasons and (given or len(reasons) > 1):
            raise ValueError(f"{reasons[0]!r} excludes {', '.join(given + reasons[1:])}; keep what is true")
        if not reasons and len(given) < len(JUDGED):
            missing = ", ".join(name for name in JUDGED if name not in given)
            raise ValueError(f"missing {missing}; a claim that is not judged says `not_run: why` instead")
        if self.judge and self.judge.contrast and len(self.keys) != 2:
            raise ValueError(f"{len(self.keys)} keys for a contrast; it takes two, the larger one first")
        if self._needs_effect and not (self.smallest_effect or self.by_construction):
            raise ValueError("missing smallest_effect: which difference from 0 is the smallest that counts?")
        if self.smallest_effect and not self.judge.is_one_sided:
            raise ValueError("no smallest effect without a threshold: a tolerance or a band has two")
        if self.reported_by and (self.inferred_from or self.kind != "statement"):
            raise ValueError("reported_by excludes inferred_from, and is for statements; keep what is true")
        if len(self.smallest_effect) not in (0, 1, len(self.keys)):
            raise ValueError(f"{len(self.smallest_effect)} smallest effects for {len(self.keys)} keys")
        if self.shown and len(self.shown.name) not in (0, 1, self._numbers):
            raise ValueError(f"{len(self.shown.name)} names for a cell with {self._numbers} numbers")
        return self

    @property
    def _numbers(self) -> int:
        """Return how many numbers it is judged by."""
        return 1 if self.judge is None or self.judge.contrast else len(self.keys)

    @property
    def _needs_effect(self) -> bool:
        """Of networks no number is 0 exactly, so that being past it alone says little."""
        if self.judge is None:
            return False
        past_zero = self.judge.is_strictly_past_zero and self.judge.is_one_sided
        return bool(self.judge.contrast) or (past_zero and self.about == "networks")

    def claims(self, paper: str, tables: PublishedTables, file: "PaperFields") -> "Iterator[Claim]":
        """The claim, with what is published of it, and with what its file has by name."""
        given = self.published
        published = tables.published(given) if isinstance(given, Reference) else Published(given)
        ready = {
            "paper": paper,
            "published": None if given is None else published,
            "judge": self.judge and self.judge.about(published.value),
            "origin": self._origin(file),
            "inferred_from": file.sentences.get(self.inferred_from, self.inferred_from),
            "reported_by": file.sentences.get(self.reported_by, self.reported_by),
            "smallest_effect": _by_name("smallest effect", self.smallest_effect, file.smallest_effects),
            "presupposes": _by_name("presupposition", self.presupposes, file.presuppositions),
        }
        yield Claim.model_construct(**self.__dict__ | ready)

    def _origin(self, file: "PaperFields") -> Origin:
        """Return who makes this claim."""
        if self.kind == "falsifier" or file.predicted:
            return "predicted"
        if self.reported_by:
            return "reported"
        if self.inferred_from or self.kind == "reading":
            return "inferred"
        return "said"


def _by_name(kind: str, given: tuple, known: Mapping[str, Fields | tuple[Fields, ...]]) -> tuple:
    """What is given, with what the file has, one or several, in the place of its names."""
    for item in given:
        if isinstance(item, str) and item not in known:
            raise UnknownName(kind, item, known)
    named = (known[item] if isinstance(item, str) else item for item in given)
    return tuple(chain.from_iterable(item if isinstance(item, tuple) else (item,) for item in named))


class Claim(ClaimFields):
    """One statement of a paper. ``judge`` is ``None`` when it is not run (its judgement says why)."""

    paper: str
    origin: Origin = "said"
    published: Published | None = None
    number: bool = False  # it is about one number of a published table, made by a rule
    reading: str = ""  # which of the sets that the printed name may mean ours is of; empty for the first
    starred: str = ""  # key of the share of runs in which ours is ξ*; empty where there is none

    def judged_by(
        self, values: Mapping, not_trained: Sequence[str] = (), others: Others = not_there
    ) -> Judgement:
        """The judgement by a result's values; what could not come out otherwise says so, once it has.

        ``others``: see :func:`companion.claims.verdicts.judge_values`.
        """
        if self.judge is None:
            verdict = Verdict.CANNOT_BE_RUN if self.cannot_be_run else Verdict.NOT_RUN
            return Judgement(verdict, {}, self.not_run or self.cannot_be_run)
        effects = [effect.value for effect in self.smallest_effect]
        judgement = judge_values(
            self.judge, values, self.keys, not_trained,
            effects=effects * len(self.keys) if len(effects) == 1 else effects,
            presupposes=self.presupposes, others=others, one_is_enough=self.enough == "any",
        )  # fmt: skip
        if not (self.by_construction and judgement.verdict.decided):
            return judgement
        holds = "holds" if judgement.verdict is Verdict.REPRODUCED else "fails"
        reason = f"{holds} whatever is trained: {self.by_construction}"
        return replace(judgement, verdict=Verdict.BY_CONSTRUCTION, reason=reason, parts={}, p=None)

    @property
    def judged_as(self) -> str:
        """What its numbers have to be, with its smallest effects."""
        effects = self.smallest_effect or (Effect.model_construct(value=0.0),)
        regions = [self.judge.beyond(effect.value) if effect.value else self.judge for effect in effects]
        return ", ".join(dict.fromkeys(region.describe() for region in regions))


class Central(Fields):
    """What a source claims above all, in short, and what the numbers behind the verdict on it are.

    In ``number``, ``{0}``, ``{1}``, … are the numbers in the order of the claim's keys, ``{negated[0]}``, …
    the same with the other sign, ``{factors[0]}``, … the factor that a number of doublings is, whatever its
    sign, and ``{needed}`` is what they have to be.
    """

    short: Text
    number: Text


@dataclass(frozen=True)
class Paper:
    """A paper with its claims and, where it prints tables, their numbers."""

    name: str
    title: str
    url: str
    claims: tuple[Claim, ...]
    tables: PublishedTables
    accuracy: Mapping[str, tuple[str, ...]]  # by experiment, keys of how well its networks do
    central: Mapping[str, Central] = field(default_factory=dict)  # by claim, what it claims above all


class Ours(Fields):  # a quantity of our own result
    ours: Name


class PublishedQuantity(Fields):  # a quantity of a table, for the same data set
    table: Name
    quantity: Name


class NumberRule(Fields):
    """A claim for every number of published tables that an experiment reproduces, see ``claims/README.md``.

    Numbers that cannot be had, that no run can move, or that are not listed make no claim.
    """

    tables: tuple[Name, ...]
    experiment: Experiment
    key: str
    datasets: dict[Name, Name]
    quantities: dict[Name, Name]
    judge: Region
    profiles: Profiles
    about: About = "networks"
    presupposes: Annotated[tuple[Presupposition | str, ...], Listed] = ()
    unrelated: Number | Ours | PublishedQuantity | None = None
    readings: dict[Name, dict[Name, Name]] = Field(default_factory=dict)
    starred: dict[Name, Name] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_number_each(self) -> Self:
        if not {"{dataset}", "{quantity}"} <= set(re.findall(r"{\w+}", self.key)):
            raise ValueError(f"key {self.key!r}: expected {{dataset}} and {{quantity}} in it")
        if self.judge.contrast:
            raise ValueError("a rule of numbers judges each number by itself; it cannot be a contrast")
        if self.unrelated is not None and not self.judge.is_tolerance:
            raise ValueError("`unrelated` bounds a tolerance; this rule judges by something else")
        return self

    def claims(self, paper: str, tables: PublishedTables, file: "PaperFields") -> Iterator[Claim]:
        """The claims about the numbers that it covers, one more for every other reading of a data set."""
        self._check_names(tables)
        presupposed = _by_name("presupposition", self.presupposes, file.presuppositions)
        for entry in (entry for name in self.tables for entry in tables.table(name)):
            if entry.judged_by_runs and entry.quantity in self.quantities:
                for reading, sets in {"": self.datasets, **self.readings}.items():
                    if entry.dataset in sets:
                        claim = self._claim(paper, entry, reading, sets[entry.dataset], tables)
                        yield claim.model_copy(update={"presupposes": presupposed})

    def _check_names(self, tables: PublishedTables) -> None:
        """Refuse a table or quantity that is not printed there, a data set that no table of the paper has."""
        quantities = dict.fromkeys(entry.quantity for entry in tables.entries if entry.table in self.tables)
        datasets = dict.fromkeys(entry.dataset for entry in tables.entries)
        for kind, known, given in (
            ("table", tables.names, self.tables),
            ("dataset", datasets, chain(self.datasets, *self.readings.values())),
            (f"quantity of tables {', '.join(self.tables)}", quantities, (*self.quantities, *self.starred)),
        ):
            for name in given:
                check_known(kind, name, known)

    def _claim(self, paper: str, entry: Entry, reading: str, ours: str, tables: PublishedTables) -> Claim:
        """The claim about one printed number; ``ours`` is its data set as in the key."""

        def key(path: str) -> str:
            return self.key.format(dataset=ours, quantity=path) if path else ""

        def number(table: str, quantity: str) -> Published:
            return tables.published(Reference(table=table, dataset=entry.dataset, quantity=quantity))

        published = number(entry.table, entry.quantity)
        judge = self.judge.about(published.value)
        match self.unrelated:
            case Ours(ours=quantity):
                judge = judge.model_copy(update={"unrelated": key(quantity)})
            case PublishedQuantity(table=table, quantity=quantity):
                judge = judge.short_of(number(table, quantity).value)
            case float(nothing):
                judge = judge.short_of(nothing)
        read = f" ({reading})" if reading else ""
        about = f"number {entry.table} {entry.dataset} {entry.quantity} {reading}"
        return Claim(
            id="-".join(WORD.findall(about.lower())), paper=paper,
            place=f"Table {entry.table}", published=published,
            says=f"{entry.dataset}{read}, {entry.quantity}: {entry.value}", number=True, reading=reading,
            experiment=self.experiment, keys=(key(self.quantities[entry.quantity]),), judge=judge,
            profiles=self.profiles, about=self.about, starred=key(self.starred.get(entry.quantity, "")),
        )  # fmt: skip


class PaperFields(Fields):
    """A file of claims."""

    paper: Text
    title: Text
    url: str = ""
    predicted: bool = False  # its statements are predictions of ours
    sentences: dict[Name, Text] = Field(default_factory=dict)  # what statements are inferred from, by name
    claims: list[ClaimFields]
    central: dict[Name, Central] = Field(default_factory=dict)  # by claim: what the scorecard begins with
    smallest_effects: dict[Name, Effect] = Field(default_factory=dict)
    presuppositions: dict[Name, Annotated[tuple[Presupposition, ...], Listed]] = Field(default_factory=dict)
    accuracy: dict[Experiment, Annotated[tuple[str, ...], Listed]] = Field(default_factory=dict)
    csv: str | None = None
    tables: dict[Name, Name] = Field(default_factory=dict)
    unavailable: tuple[Rule, ...] = ()
    by_construction: tuple[Rule, ...] = ()
    not_run: tuple[Rule, ...] = ()
    numbers: list[NumberRule] = Field(default_factory=list)


Row = dict[str, str]


def read_tables(
    path: Path, titles: Mapping[str, str] | None = None, rules: Mapping[str, Sequence[Rule]] | None = None
) -> PublishedTables:
    """Read the CSV, and mark what the rules name; they are lists by attribute of :class:`Entry`.

    Of a list the first rule that matches counts. Raises BadInput for a file that cannot be used, that has
    another checksum than the ``SHA256SUMS`` beside it says, or a rule that matches nothing; UnknownName for a
    title of a table that is not there.
    """
    rows = _read_rows(path)
    _check_places(path, rows)
    for kind, of_kind in (rules or {}).items():
        for rule in of_kind:
            _mark(path, rows, kind, rule)
    tables = PublishedTables(tuple(Entry(**row) for row in rows), titles or {})
    for name in tables.titles:
        check_known("table", name, tables.names)
    return tables


def _read_rows(path: Path) -> list[Row]:
    try:
        _check_checksum(path)
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"published tables {path.name} cannot be read: {error}") from error
    complete = all(None not in row and None not in row.values() for row in rows)
    if not complete or tuple(reader.fieldnames or ()) != COLUMNS:
        expected = f"expected the columns {', '.join(COLUMNS)} in every row"
        raise BadInput(f"published tables {path.name}: {expected}")
    return rows


def _check_checksum(path: Path) -> None:
    sums = path.with_name("SHA256SUMS")
    line = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
    if sums.exists() and line not in sums.read_text(encoding="utf-8").splitlines():
        raise BadInput(
            f"published tables {path.name} are not those that {sums} was written for: restore them, or, "
            "after a correction, write it anew: sha256sum *.csv > SHA256SUMS"
        )


def _check_places(path: Path, rows: Iterable[Row]) -> None:
    """Raise BadInput where two rows are about the same number."""
    lines: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        place = tuple(row[column] for column in COLUMNS[:3])
        first = lines.setdefault(place, line)
        if first != line:
            raise BadInput(f"{path.name}, line {line}: {', '.join(place)} is already on line {first}")


def _mark(path: Path, rows: Iterable[Row], kind: str, rule: Rule) -> None:
    """Give the rows that a rule matches its reason, unless they have one of this kind."""
    matched = [row for row in rows if rule.matches(row)]
    if not matched:
        what = f"no number matches the rule with the reason {rule.reason!r}"
        raise BadInput(f"{path.name}: {what}; correct its names")
    for row in matched:
        row.setdefault(kind, rule.reason)


def load_papers(folder: Path) -> tuple[Paper, ...]:
    """Every ``*.yaml`` of a folder, by name.

    Raises BadInput with file, claim, field, what was given and what was expected.
    """
    if not (files := sorted(folder.glob("*.yaml"))):
        way_out = "expected files such as aitken2021.yaml; run from the repository"
        raise BadInput(f"no claims in {folder}: {way_out}")
    papers = tuple(map(_read_paper, files))
    seen: dict[str, tuple[Claim, str]] = {}
    for paper, path in zip(papers, files, strict=True):
        for claim in paper.claims:
            first, where = seen.setdefault(claim.id, (claim, path.name))
            if first is not claim:
                both = f"{where} and {path.name}"
                raise BadInput(f"claim id {claim.id!r} is used twice ({both}); rename one of them")
    return papers


def load_claims(folder: Path) -> tuple[Claim, ...]:
    """The claims of every paper, in order (errors as :func:`load_papers`)."""
    return tuple(claim for paper in load_papers(folder) for claim in paper.claims)


def _read_paper(path: Path) -> Paper:
    try:
        text = path.read_text(encoding="utf-8")
        content = SafeLoader(text).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path.name} cannot be read as YAML in UTF-8: {error}") from error
    file = PaperFields.read(path.name, content)
    where, tables = path.name, PublishedTables(())
    try:
        if file.csv is not None:
            rules = {kind: getattr(file, kind) for kind in ("unavailable", "by_construction", "not_run")}
            tables = read_tables(path.parent / file.csv, file.tables, rules)
        claims: list[Claim] = []
        for fields in (*file.claims, *file.numbers):
            where = f"{path.name}: {fields.id if isinstance(fields, ClaimFields) else 'numbers'}"
            claims += fields.claims(file.paper, tables, file)
        where = f"{path.name}: central"
        known = {claim.id for claim in claims}
        for name in file.central:
            check_known("claim", name, known)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error
    if text.splitlines()[-1] != "...":
        raise BadInput(f"{path.name}: its last line is not `...`, the end of a whole file: was it cut off?")
    return Paper(file.paper, file.title, file.url, tuple(claims), tables, file.accuracy, file.central)
