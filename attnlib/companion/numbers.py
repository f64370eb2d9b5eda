"""Claims made by rule: one for every number of published tables that an experiment reproduces.

A rule of the field ``numbers`` of a claims file says where an experiment keeps what a table prints:

.. code-block:: yaml

    - tables: [2, 5]
      experiment: agreement
      key: "{dataset}.validation.accuracy.{quantity}"
      datasets: {SST: sst}                          # as printed → as in the key
      quantities: {"A(alpha,beta)": alpha_beta.agreement}
      judge: {kind: tolerance, absolute: 5}
      profiles: [paper]
      # and where they apply
      unrelated: {table: 5, quantity: A_baseline}   # or a number, or {ours: majority}
      readings: {labels as the text says: {SST: sst_as_text}}
      starred: {"xi(alpha,beta)": alpha_beta.agreement_starred}

``unrelated`` is what a number would be if it were about nothing, chance or 0: printed in a table for the
same data set, or given, or what our own result has under the rule's key, with this for its quantity. A
tolerance is then at most half of the way there, so that nothing does not pass for what is printed.
``readings`` name further sets of ours that a printed name may mean; each makes a claim of its own beside
the first. ``starred`` leads to the share of runs in which ours is ξ*, printed with an asterisk.

Numbers that cannot be had, or that no run can move (``unavailable``, ``by_construction``), and those of data
sets or quantities that are not listed make no claim. The others are judged like other claims, and shown in
the tables of the scorecard instead of its list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from attnlib.companion.fields import read_fields, read_number
from attnlib.companion.published import Entry, Published, PublishedTables, Reference
from attnlib.companion.verdicts import Judge, Order, Tolerance, read_judge
from attnlib.errors import BadInput, UnknownName

REQUIRED = ("tables", "experiment", "key", "datasets", "quantities", "judge", "profiles")
FIELDS = (*REQUIRED, "unrelated", "readings", "starred")


@dataclass(frozen=True)
class RuledNumber:
    """A printed number, the key of ours and how it is judged.

    Attributes:
        starred: key of the share of runs in which ours is ξ*; empty where there is none.
        reading: which of the sets that the printed name may mean ours is of; empty for the first.
    """

    entry: Entry
    published: Published
    key: str
    judge: Judge
    starred: str = ""
    reading: str = ""


@dataclass(frozen=True)
class NumberRule:
    """Which numbers, and where ours are; the fields are those of the file."""

    tables: tuple[str, ...]
    experiment: str
    key: str
    datasets: Mapping[str, str]
    quantities: Mapping[str, str]
    judge: Mapping
    profiles: tuple[str, ...]
    unrelated: float | Mapping[str, str] | None = None
    readings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    starred: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, content: object, tables: PublishedTables, experiments: Collection[str]) -> NumberRule:
        """The rule that a mapping of the file describes.

        Raises:
            BadInput: a field is missing, or the key has no place for data set or quantity, or the judge
                compares two numbers, or what is unrelated is neither a number nor a quantity of either kind.
            UnknownName: an unknown field, experiment, table, data set or quantity.
        """
        fields = read_fields("rule of numbers", content, FIELDS, required=REQUIRED)
        rule = cls(
            tuple(map(str, fields["tables"])),
            fields["experiment"],
            fields["key"],
            *(_texts(fields[name]) for name in ("datasets", "quantities")),
            fields["judge"],
            tuple(fields["profiles"]),
            _unrelated(fields),
            {str(reading): _texts(sets) for reading, sets in (fields.get("readings") or {}).items()},
            _texts(fields.get("starred") or {}),
        )
        if rule.experiment not in experiments:
            raise UnknownName("experiment", rule.experiment, experiments)
        if not {"{dataset}", "{quantity}"} <= set(re.findall(r"{\w+}", rule.key)):
            raise BadInput(f"key {rule.key!r} of a rule: expected {{dataset}} and {{quantity}} in it")
        rule._check_names(tables)
        if isinstance(read_judge(rule.judge, 0.0), Order):
            raise BadInput("a rule of numbers judges each number by itself; it cannot be an order")
        return rule

    def _check_names(self, tables: PublishedTables) -> None:
        """Every table and quantity is printed there, and every data set in some table of the paper."""
        for number in self.tables:
            if not tables.table(number):
                raise UnknownName("table", number, tables.names)
        quantities = [entry.quantity for entry in tables.entries if entry.table in self.tables]
        datasets = [entry.dataset for entry in tables.entries]
        for kind, named, printed in (
            *(("dataset", sets, datasets) for sets in (self.datasets, *self.readings.values())),
            ("quantity", self.quantities, quantities),
            ("quantity", self.starred, quantities),
        ):
            for name in named:
                if name not in printed:
                    where = f"of tables {', '.join(self.tables)}"
                    raise UnknownName(f"{kind} {where}", name, dict.fromkeys(printed))

    def numbers(self, tables: PublishedTables) -> Iterator[RuledNumber]:
        """The numbers that it covers, and each again for every other reading of its data set."""
        for entry in (entry for number in self.tables for entry in tables.table(number)):
            if (
                not entry.judged_by_runs
                or entry.dataset not in self.datasets
                or entry.quantity not in self.quantities
            ):
                continue
            published = tables.published(Reference(entry.table, entry.dataset, entry.quantity))
            for reading, sets in {"": self.datasets, **self.readings}.items():
                if entry.dataset in sets:
                    ours, star = (
                        self.key.format(dataset=sets[entry.dataset], quantity=path) if path else ""
                        for path in (self.quantities[entry.quantity], self.starred.get(entry.quantity))
                    )
                    judge = self._judge_of(published.value, entry.dataset, sets[entry.dataset], tables)
                    yield RuledNumber(entry, published, ours, judge, star, reading)

    def _judge_of(self, value: float, printed: str, ours: str, tables: PublishedTables) -> Judge:
        """The judge of a number printed as ``value``; half of the way to what is unrelated at most.

        Args:
            printed, ours: the data set, as in the table and as in the key.
        """
        judge = read_judge(self.judge, value)
        if self.unrelated is None:
            return judge
        if not isinstance(judge, Tolerance):
            raise BadInput("`unrelated` bounds a tolerance; this rule judges by something else")
        if not isinstance(self.unrelated, Mapping):
            return judge.short_of(self.unrelated)
        if "ours" in self.unrelated:
            key = self.key.format(dataset=ours, quantity=self.unrelated["ours"])
            return replace(judge, unrelated=key)
        return judge.short_of(tables.published(Reference(dataset=printed, **self.unrelated)).value)


def _texts(names: Mapping) -> dict[str, str]:
    return {str(name): str(ours) for name, ours in names.items()}


def _unrelated(fields: Mapping) -> float | dict[str, str] | None:
    given = fields.get("unrelated")
    if isinstance(given, Mapping):
        asked = ("ours",) if "ours" in given else ("table", "quantity")
        return _texts(read_fields("unrelated", given, asked, required=asked))
    return None if given is None else read_number(fields, "unrelated", "rule of numbers")


def name_of(entry: Entry, reading: str = "") -> str:
    """The id of the claim about a number, say ``number-2-sst-a-alpha-beta``; its reading at the end."""
    words = re.findall(r"[a-z0-9]+", f"{entry.table} {entry.dataset} {entry.quantity} {reading}".lower())
    return "-".join(["number", *words])
