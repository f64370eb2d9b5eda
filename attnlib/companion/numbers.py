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

Numbers that cannot be had (``unavailable``) and those of data sets or quantities that are not listed make no
claim. They are judged like other claims, and shown in the tables of the scorecard instead of its list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from attnlib.companion.fields import read_fields
from attnlib.companion.published import Entry, Published, PublishedTables, Reference
from attnlib.companion.verdicts import Judge, Order, read_judge
from attnlib.errors import BadInput, UnknownName

FIELDS = ("tables", "experiment", "key", "datasets", "quantities", "judge", "profiles")


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

    @classmethod
    def read(cls, content: object, tables: PublishedTables, experiments: Collection[str]) -> NumberRule:
        """The rule that a mapping of the file describes.

        Raises:
            BadInput: a field is missing, or the key has no place for data set or quantity, or the judge
                compares two numbers.
            UnknownName: an unknown field, experiment, table, data set or quantity.
        """
        fields = read_fields("rule of numbers", content, FIELDS, required=FIELDS)
        numbers = tuple(map(str, fields["tables"]))
        rule = cls(
            numbers,
            fields["experiment"],
            fields["key"],
            *({str(k): str(v) for k, v in fields[name].items()} for name in ("datasets", "quantities")),
            fields["judge"],
            tuple(fields["profiles"]),
        )
        if rule.experiment not in experiments:
            raise UnknownName("experiment", rule.experiment, experiments)
        if not {"{dataset}", "{quantity}"} <= set(re.findall(r"{\w+}", rule.key)):
            raise BadInput(f"key {rule.key!r} of a rule: expected {{dataset}} and {{quantity}} in it")
        for number in numbers:
            printed = tables.table(number)
            if not printed:
                raise UnknownName("table", number, tables.names)
        everything = [entry for number in numbers for entry in tables.table(number)]
        for kind, named in (("dataset", rule.datasets), ("quantity", rule.quantities)):
            known = dict.fromkeys(getattr(entry, kind) for entry in everything)
            for name in named:
                if name not in known:
                    raise UnknownName(f"{kind} of tables {', '.join(numbers)}", name, known)
        if isinstance(rule.judge_of(0.0), Order):
            raise BadInput("a rule of numbers judges each number by itself; it cannot be an order")
        return rule

    def judge_of(self, value: float) -> Judge:
        """The judge of a number that is printed as ``value``."""
        return read_judge(self.judge, value)

    def entries(self, tables: PublishedTables) -> Iterator[tuple[Entry, Published, str]]:
        """The numbers that it covers, with the key of ours."""
        for number in self.tables:
            for entry in tables.table(number):
                if entry.unavailable or entry.dataset not in self.datasets:
                    continue
                if entry.quantity in self.quantities:
                    reference = Reference(entry.table, entry.dataset, entry.quantity)
                    key = self.key.format(
                        dataset=self.datasets[entry.dataset], quantity=self.quantities[entry.quantity]
                    )
                    yield entry, tables.published(reference), key


def name_of(entry: Entry) -> str:
    """The id of the claim about a number, say ``number-2-sst-a-alpha-beta``."""
    words = re.findall(r"[a-z0-9]+", f"{entry.table} {entry.dataset} {entry.quantity}".lower())
    return "-".join(["number", *words])
