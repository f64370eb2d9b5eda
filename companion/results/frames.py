"""Tables: one row for each network, or each estimate, in columns that say what they are.

`frame` asks networks for their measurements and gives them back as one `Table`. What a figure computes are
tables; dotted keys, which claims and sentences address, are a view of them: see `keyed`.

pandas is imported where it is used: a bare node reads from the experiments what they measure, and has none.
"""

import math
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from attnlib.errors import BadInput
from companion.results.measurements import answers, columns_of
from companion.runs.columns import INTERVAL, NETWORK, Column, Columns
from companion.runs.identity import Spec
from companion.runs.measure import Measurement

if TYPE_CHECKING:
    import pandas as pd

    from companion.runs.store import Store


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame whose columns are declared.

    Attributes:
        frame: the rows.
        columns: what each of its columns is, by name. Further columns are allowed, and are not of this table.
        row: what one row is, such as ``a trained network``.

    Raises:
        BadInput: a column of the frame is not declared.
    """

    frame: "pd.DataFrame"
    columns: Columns
    row: str

    def __post_init__(self) -> None:
        undeclared = [name for name in self.frame.columns if name not in self.columns]
        if undeclared:
            raise BadInput(
                f"columns {', '.join(undeclared)} are not declared; say what they are, as a Column"
            )

    @classmethod
    def of(cls, records: Iterable[Mapping[str, object]], columns: Columns, row: str) -> Self:
        """Return records as a table with these columns; what a record has besides is left out."""
        import pandas as pd

        return cls(pd.DataFrame(list(records)).reindex(columns=list(columns)), columns, row)

    def with_rows(self, frame: "pd.DataFrame") -> Self:
        """Return the same table with other rows, or with fewer columns."""
        return replace(self, frame=frame)

    def select(self, *names: str) -> Self:
        """Return the table with these columns only."""
        return self.with_rows(self.frame[list(names)])

    def rename(self, **names: str) -> Self:
        """Return the table with other names of columns, by their present ones.

        What is declared under a new name already is declared no more.
        """
        columns = {
            names.get(name, name): column
            for name, column in self.columns.items()
            if name in names or name not in names.values()
        }
        return replace(self, frame=self.frame.rename(columns=names), columns=columns)

    def assign(self, columns: Columns, **values: object) -> Self:
        """Return the table with further columns; `values` are those of :meth:`pandas.DataFrame.assign`."""
        return replace(self, frame=self.frame.assign(**values), columns={**self.columns, **columns})

    def whole_numbers(self, *names: str) -> Self:
        """Return the table with these columns as whole numbers, also where some are missing."""
        return self.with_rows(self.frame.astype(dict.fromkeys(names, "Int64")))

    def query(self, condition: str, **names: object) -> Self:
        """Return the rows that satisfy a condition of :meth:`pandas.DataFrame.query`.

        Args:
            condition: an expression over columns; ``@name`` is one of `names`.
            names: values that the condition refers to.
        """
        return self.with_rows(self.frame.query(condition, local_dict=names))

    def records(self) -> list[dict[str, object]]:
        """Return the rows as dictionaries of plain values, None where a value is missing."""
        frame = self.frame.astype(object)
        return frame.where(frame.notna(), None).to_dict("records")

    def schema(self) -> dict[str, object]:
        """Return what the table is as a resource of a Data Package, without its path.

        https://specs.frictionlessdata.io/table-schema
        """
        from pandas.io.json import build_table_schema

        fields = []
        for field in build_table_schema(self.frame, index=False, version=False)["fields"]:
            column = self.columns[field["name"]]
            ends = {"minimum": column.low, "maximum": column.high}
            constraints = {name: end for name, end in ends.items() if math.isfinite(end)}
            properties = {"description": column.meaning, "constraints": constraints}
            properties |= {"unit": column.unit, "source": column.source, "categories": _labels(column)}
            fields.append(
                {"name": field["name"], "type": field["type"]} | {k: v for k, v in properties.items() if v}
            )
        return {"row": self.row, "schema": {"fields": fields}}


def _labels(column: Column) -> list[dict[str, str]]:
    return [{"value": name, "label": meaning} for name, meaning in column.categories.items()]


def joined(tables: Sequence[Table]) -> Table:
    """Return the rows of several tables of the same columns in one, with the categories of all."""
    import pandas as pd

    first = tables[0]
    columns = {}
    for name, column in first.columns.items():
        declared = [table.columns[name] for table in reversed(tables) if name in table.columns]
        categories = ChainMap(*(column.categories for column in declared))
        columns[name] = replace(column, categories=dict(categories))
    filled = [table.frame for table in tables if len(table.frame)]  # an empty one has no types to keep
    frame = pd.concat(filled, ignore_index=True) if filled else first.frame
    return replace(first, frame=frame, columns=columns)


Record = Mapping[str, object]  # a name, and a number, text or nested records


def frame(
    measurements: Iterable[Measurement],
    store: "Store",
    *,
    records: Callable[..., Record | Iterable[Record]] | None = None,
    columns: Columns | None = None,
    names: Columns = NETWORK,
    columns_of: Callable[[Spec], Record] = columns_of,
    row: str = "a trained network",
) -> Table:
    """Ask networks for their measurements, and return them as rows.

    Args:
        measurements: what is asked. A network that lacks an answer is left out.
        store: has the answers, or makes them.
        records: makes the records of one network, one or several, of its measurements in the order in which
            they are asked. By default they are one record together.
        columns: of these records; by default those that the measures declare.
        names: columns that name a network.
        columns_of: the values of `names`, by the spec of a network.
        row: what one row is.

    Returns:
        The columns of `names`, then those of the records. A column ``a.b`` is what a record has under ``b``
        of ``a``; what a record has besides its columns is left out.
    """
    import pandas as pd

    listed = list(measurements)
    if columns is None:
        columns = dict(ChainMap(*(measurement.measure.columns for measurement in listed)))
    rows = []
    for spec, answered in _answers_by_spec(listed, store).items():
        made = records(*answered) if records else dict(ChainMap(*reversed(answered)))
        for record in [made] if isinstance(made, Mapping) else made:
            rows.append({**columns_of(spec), **record})
    declared = {**names, **columns}
    return Table(pd.json_normalize(rows).reindex(columns=list(declared)), declared, row)


def _answers_by_spec(measurements: Sequence[Measurement], store: "Store") -> dict[Spec, list[dict]]:
    """Return what is measured of each network, without networks that lack an answer."""
    answers_of: dict[Spec, list[dict]] = {}
    for measurement in measurements:
        for _, answered in answers([measurement], store):
            answers_of.setdefault(measurement.spec, []).append(answered)
    asked = Counter(measurement.spec for measurement in measurements)
    return {spec: answered for spec, answered in answers_of.items() if len(answered) == asked[spec]}


def nested(flat: Mapping[tuple, object]) -> dict:
    """Return dictionaries in dictionaries, from what is below several names.

    >>> nested({("scan", "AO"): 1, ("scan", "AED"): 2})
    {'scan': {'AO': 1, 'AED': 2}}
    """
    values: dict = {}
    for (*names, last), value in flat.items():
        here = values
        for name in names:
            here = here.setdefault(name, {})
        here[last] = value
    return values


def keyed(table: Table, key: str, numbers: Iterable[str] = ()) -> dict[str, object]:
    """Return what a table has, by the dotted keys that claims and sentences address.

    Args:
        table: with one row for each key.
        key: of a row, with its columns in braces, such as ``{task}.{kind}.{quantity}``.
        numbers: columns whose numbers are wanted; ``{column}`` in the key is the name of each. By default a
            row is one interval, ``{"value", "low", "high", "n"}``.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"task": ["scan"], "cells": [3]})
        >>> table = Table(frame, dict.fromkeys(frame, NETWORK["task"]), "a task")
        >>> keyed(table, "by_task.{task}.{column}", ["cells"])
        {'by_task.scan.cells': 3}
    """
    values: dict[str, object] = {}
    for row in table.records():
        if not numbers:
            values[key.format(**row)] = {name: row[name] for name in INTERVAL}
        for column in numbers:
            values[key.format(**row, column=column)] = row[column]
    return values


def view(*parts: Mapping[str, object]) -> dict:
    """Return what `keyed` made of several tables, as the nested values of a result.

    >>> view({"scan.AO.loss": 1.5}, {"scan.AO.cells": 3, "sentences": 200})
    {'scan': {'AO': {'loss': 1.5, 'cells': 3}}, 'sentences': 200}
    """
    merged: dict[str, object] = {}
    for part in parts:
        merged |= part
    return nested({tuple(key.split(".")): number for key, number in merged.items()})
