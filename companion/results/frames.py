"""Tables: one row for each network, or each estimate, in columns that say what they are.

`frame` asks networks for their measurements and gives them back as one `Table`. What a figure computes are
tables; dotted keys, which claims and sentences address, are a view of them: see `keyed`.

pandas is imported where it is used: a bare node reads from the experiments what they measure, and has none.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from attnlib.errors import BadInput
from companion.results.measurements import answers
from companion.runs.columns import INTERVAL, NETWORK, Column, Columns
from companion.runs.identity import Spec
from companion.runs.measure import Measurement
from companion.runs.store import Store

if TYPE_CHECKING:
    import pandas as pd


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

    def with_rows(self, frame: "pd.DataFrame") -> Self:
        """Return the same table with other rows, or with fewer columns."""
        return replace(self, frame=frame)

    def assign(self, columns: Columns, **values: object) -> Self:
        """Return the table with further columns; `values` are those of :meth:`pandas.DataFrame.assign`."""
        return replace(self, frame=self.frame.assign(**values), columns={**self.columns, **columns})

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
            told = {"description": column.meaning, "constraints": constraints}
            told |= {"unit": column.unit, "source": column.source, "categories": _labels(column)}
            fields.append(
                {"name": field["name"], "type": field["type"]} | {k: v for k, v in told.items() if v}
            )
        return {"row": self.row, "schema": {"fields": fields}}


def _labels(column: Column) -> list[dict[str, str]]:
    return [{"value": name, "label": meaning} for name, meaning in column.categories.items()]


def frame(
    measurements: Iterable[Measurement],
    store: Store,
    *,
    names: Columns = NETWORK,
    columns_of: Callable[[Spec], dict[str, object]] | None = None,
) -> Table:
    """Ask networks for their measurements, and return a row for each network.

    Args:
        measurements: what is asked. Where a network is asked several things, they share its row; a network
            that lacks an answer is left out.
        store: has the answers, or makes them.
        names: columns of the run that name a network, of those that its spec has.
        columns_of: further columns that name a network, by its spec; declared in `names`.

    Returns:
        The columns of `names`, then those that the measures declare. A column ``a.b`` is what a record has
        under ``b`` of ``a``.
    """
    import pandas as pd

    listed = list(measurements)
    columns = dict(names)
    rows: dict[Spec, dict] = {}
    missing = set()
    for measurement in listed:
        columns |= measurement.measure.columns
        answered = answers([measurement], store)
        if not answered:
            missing.add(measurement.spec)
        for named, record in answered:
            rows.setdefault(measurement.spec, dict(named)).update(record)
    if columns_of:
        for spec, row in rows.items():
            row |= columns_of(spec)
    complete = [row for spec, row in rows.items() if spec not in missing]
    wide = pd.json_normalize(complete).reindex(columns=list(columns))
    return Table(wide, columns, "a trained network")


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


def keyed(table: Table, by: Sequence[str], leaves: Sequence[str] = ()) -> dict[tuple[str, ...], object]:
    """Return what a table has, by the names in some of its columns: values of a result, before nesting.

    Args:
        table: with one row for each combination of names.
        by: columns whose values are the names, in order. A dot in a value begins a further name.
        leaves: columns whose names come last, each with its number. By default a row is one interval, and
            its last name that of the quantity.

    Returns:
        A number, or an interval ``{"value", "low", "high", "n"}``, by its names.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"task": ["scan"], "quantity": ["memory.first"], "value": [0.5]})
        >>> columns = dict.fromkeys(frame.columns, NETWORK["task"])
        >>> keyed(Table(frame, columns, "an estimate"), ["task", "quantity"], ["value"])
        {('scan', 'memory', 'first', 'value'): 0.5}
    """
    found = {}
    for row in table.records():
        names = tuple(".".join(str(row[name]) for name in by).split("."))
        if not leaves:
            found[names] = {name: row[name] for name in INTERVAL}
        for leaf in leaves:
            found[*names, *leaf.split(".")] = row[leaf]
    return found
