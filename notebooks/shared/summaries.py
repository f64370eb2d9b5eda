"""From tables of single networks to tables of estimates, with their intervals."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput
from companion.results.frames import Table
from companion.runs.columns import INTERVAL, Column, Columns
from notebooks.shared.intervals import (
    Interval,
    bounded,
    hierarchical_bootstrap,
    interval_of,
    last_minus_first,
    over_pairs,
    share_interval,
    spearman_of_points,
)

if TYPE_CHECKING:
    import pandas as pd


def summarise(
    table: Table, by: Sequence[str], quantities: Iterable[str], *, unit: str | Sequence[str] = "seed"
) -> Table:
    """Return the mean of each quantity over the networks of each group, with Student's 95 % interval.

    Networks where a quantity is undefined are left out of its mean. An interval ends where the numbers of its
    column end.

    Args:
        table: with a row for each network.
        by: columns whose values make a group. Without any, all rows are one group, also where there are none.
        quantities: columns with the numbers.
        unit: the column, or columns, that tell the independent networks of a group apart.

    Returns:
        A row for each group and quantity: the group's columns, then ``quantity``, ``value``, ``low``,
        ``high`` and ``n``, the number of networks.

    Raises:
        BadInput: two rows of a group are of the same unit, and so are not independent.
    """

    def mean(group: "pd.DataFrame", quantity: str) -> Interval:
        return bounded(interval_of(group[quantity]), *table.columns[quantity].range)

    return estimated(table, by, quantities, mean, unit=unit)


def shares(
    table: Table, by: Sequence[str], outcomes: Iterable[str], *, unit: str | Sequence[str] = "seed"
) -> Table:
    """Return in how many networks of each group each outcome occurs, as a share with Wilson's interval.

    As :func:`summarise`; `outcomes` are columns of truth values.
    """

    def share_of(group: "pd.DataFrame", outcome: str) -> Interval:
        return share_interval(int(group[outcome].sum()), len(group))

    return estimated(table, by, outcomes, share_of, unit=unit)


PAIR = ("seed", "second_seed")  # columns that name the two networks of a pair


def summarise_pairs(
    table: Table, by: Sequence[str], quantities: Iterable[str], *, pair: Sequence[str] = PAIR
) -> Table:
    """Return the mean of each quantity over the pairs of each group, with the jackknife's interval.

    As :func:`summarise`, of a table with a row for each pair of networks, which the columns `pair` name.
    Pairs share their networks: a network is left out with all its pairs
    (:func:`~notebooks.shared.intervals.over_pairs`), and ``n`` counts networks.
    """

    def mean(group: "pd.DataFrame", quantity: str) -> Interval:
        return bounded(over_pairs(by_pair(group, quantity, pair)), *table.columns[quantity].range)

    return estimated(table, by, quantities, mean, unit=pair)


def by_pair(
    rows: "pd.DataFrame", quantity: str, pair: Sequence[str] = PAIR
) -> dict[tuple[Hashable, Hashable], float]:
    """Return a quantity by the two networks that each row is of."""
    first, second = pair
    return dict(zip(zip(rows[first], rows[second], strict=True), rows[quantity], strict=True))


def estimated(
    table: Table,
    by: Sequence[str],
    quantities: Iterable[str],
    estimator: Callable[["pd.DataFrame", str], Interval],
    *,
    unit: str | Sequence[str],
) -> Table:
    """Return an estimate of each quantity in each group, see :func:`summarise`.

    Args:
        table: with a row for each unit.
        by: columns whose values make a group.
        quantities: columns with the numbers.
        estimator: makes an interval of the rows of a group and the name of a quantity.
        unit: the column, or columns, that tell the rows of a group apart.

    Raises:
        BadInput: two rows of a group are of the same unit.
    """
    import pandas as pd

    unit = [unit] if isinstance(unit, str) else list(unit)
    names = list(quantities)
    rows = []
    for named, group in _parts(table.frame, by):
        if group[unit].duplicated().any():
            columns_of_unit = ", ".join(unit)
            raise BadInput(f"{columns_of_unit} does not tell rows of {named} apart; group by one more column")
        rows += [{**named, "quantity": name, **estimator(group, name)} for name in names]
    columns = {name: table.columns[name] for name in by}
    columns |= {"quantity": _quantity(table, names)} | INTERVAL
    return Table(pd.DataFrame(rows, columns=list(columns)), columns, "an estimate over networks")


def _quantity(table: Table, quantities: Iterable[str]) -> Column:
    """Return the column that names the quantity of an estimate."""
    return Column("what is estimated", categories={name: str(table.columns[name]) for name in quantities})


def wide(estimates: Table, columns: Columns, *, row: str) -> Table:
    """Return what `summarise` estimates with one row for each group of networks.

    Args:
        estimates: with a row for each group and quantity.
        columns: what the quantities are, as the summarised table declares them.
        row: what one row is.

    Returns:
        The columns of a group; of each quantity, such as ``accuracy``, its mean ``accuracy`` and the ends
        ``accuracy_low`` and ``accuracy_high`` of its interval; and ``n``, the number of networks, the largest
        over the quantities where one is undefined for some networks.
    """
    by = [name for name in estimates.columns if name not in ("quantity", *INTERVAL)]
    rows = []
    for names, group in estimates.frame.groupby(by, sort=False):
        numbers = dict(zip(by, names, strict=True))
        for estimate in group.to_dict("records"):
            quantity = estimate["quantity"]
            numbers |= {quantity: estimate["value"]}
            numbers |= {f"{quantity}_{end}": estimate[end] for end in ("low", "high")}
        rows.append(numbers | {"n": group["n"].max()})
    declared = {name: estimates.columns[name] for name in by}
    for name, column in columns.items():
        declared[name] = replace(column, meaning=f"{column.meaning}; mean over networks")
        declared[f"{name}_low"] = replace(column, meaning=f"lower end of the 95 % interval of {name}")
        declared[f"{name}_high"] = replace(column, meaning=f"upper end of the 95 % interval of {name}")
    return Table.of(rows, {**declared, "n": INTERVAL["n"]}, row)


def differences(
    first: Table, second: Table, quantities: Iterable[str], *, on: Sequence[str] = ("seed",)
) -> Table:
    """Return the first networks' numbers minus those of the second ones, which share their seeds.

    Such differences lack what a seed does to both. They have no range: a difference of shares may be below 0.

    Args:
        first: with a row for each network; its other columns are kept.
        second: with at most one row for each partner.
        quantities: columns that are subtracted.
        on: columns by which networks are paired. Networks without a partner are left out.
    """
    names = list(quantities)
    both = first.frame.merge(second.frame[[*on, *names]], on=list(on), suffixes=("", "_second"))
    minuends = both[names].astype(float)  # a column without any number is of objects
    subtrahends = both[[f"{name}_second" for name in names]].astype(float).set_axis(names, axis="columns")
    unbounded = {name: replace(first.columns[name], low=-math.inf, high=math.inf) for name in names}
    changes = minuends - subtrahends
    return first.with_rows(both[list(first.frame)]).assign(
        unbounded, **{name: changes[name] for name in names}
    )


BOOTSTRAP_SEED = 20_211_015  # any fixed number: an interval is then a function of the points


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """What a bootstrap draws anew: groups of rows, then units within each group.

    Attributes:
        groups: the column whose values make a group, such as a family of tasks, whose rows are alike.
        units: columns that tell the units of a group apart, whose rows are drawn together, such as a network
            with several heads. By default every row is a unit.
        draws_groups: whether groups are drawn as well. Groups that are set by design, as the marks of a dial
            are, stay.
        seed: of the draws. Any fixed number makes an interval a function of the rows.
    """

    groups: str
    units: Sequence[str] = ()
    draws_groups: bool = True
    seed: int = BOOTSTRAP_SEED


RESAMPLED = {  # columns of an estimate whose interval is a bootstrap's
    "low": Column("2.5th percentile over resamples; empty where there are fewer than three rows"),
    "high": Column("97.5th percentile over resamples; empty where there are fewer than three rows"),
    "n": Column("units with both numbers, which are drawn anew", low=0),
}
CORRELATION = {"value": Column("Spearman's rank correlation", low=-1.0, high=1.0)} | RESAMPLED
END_DIFFERENCE = {"value": Column("mean at the largest mark minus the mean at the smallest")} | RESAMPLED


def correlations(
    table: Table, along: str, quantities: Iterable[str], *, by: Sequence[str] = (), resampled: Bootstrap
) -> Table:
    """Return Spearman's rank correlation of each quantity with one column, with a bootstrap interval.

    Rows where either number is undefined are left out. Of fewer than three rows, or where either number is
    constant, there is no correlation.

    Args:
        table: with a row for each point.
        along: the column that every quantity is correlated with.
        quantities: columns with the other numbers.
        by: columns whose values make a part of the table, correlated by itself; by default all of it.
        resampled: what the bootstrap draws.

    Returns:
        A row for each part and quantity: the part's columns, then ``along``, the other column's name,
        ``quantity``, ``value``, ``low``, ``high`` and ``n``, the number of units. Where `by` is empty there
        is a row even if the table has none.
    """
    return _estimates(
        table,
        along,
        quantities,
        by=by,
        resampled=resampled,
        statistic=spearman_of_points,
        columns=CORRELATION,
    )


def end_differences(
    table: Table, along: str, quantities: Iterable[str], *, by: Sequence[str] = (), resampled: Bootstrap
) -> Table:
    """Return the mean of each quantity at the largest value of a column minus that at its smallest value.

    Args:
        table: with a row for each point.
        along: the column with the marks, such as those of a dial.
        quantities: columns with the numbers.
        by: columns whose values make a part of the table, estimated by itself; by default all of it.
        resampled: what the bootstrap draws.

    Returns:
        Rows as :func:`correlations` has them.
    """
    return _estimates(
        table,
        along,
        quantities,
        by=by,
        resampled=resampled,
        statistic=last_minus_first,
        columns=END_DIFFERENCE,
    )


Statistic = Callable[[Float[np.ndarray, "points 2"]], float]


def _estimates(
    table: Table,
    along: str,
    quantities: Iterable[str],
    *,
    by: Sequence[str],
    resampled: Bootstrap,
    statistic: Statistic,
    columns: Columns,
) -> Table:
    """Return a statistic of the points of one column and each quantity, with its bootstrap interval."""
    rows = []
    listed = list(quantities)
    for names, part in _parts(table.frame, by):
        for name in listed:
            points = _points_by_group(part[[along, name]], part, resampled)
            estimate = _bootstrapped(statistic, points, resampled)
            rows.append({**names, "along": along, "quantity": name, **estimate})
    declared = {name: table.columns[name] for name in by}
    declared["along"] = Column(
        "number along which it is estimated", categories={along: str(table.columns[along])}
    )
    declared["quantity"] = _quantity(table, listed)
    return Table.of(rows, declared | columns, "an estimate with a bootstrap interval")


def _parts(frame: "pd.DataFrame", by: Sequence[str]) -> Iterator[tuple[dict, "pd.DataFrame"]]:
    """Yield each part of a frame with the values of `by` that name it; without `by`, all of it."""
    if not by:
        yield {}, frame
        return
    for values, part in frame.groupby(list(by), sort=False):
        yield dict(zip(by, values, strict=True)), part


Points = dict[object, Float[np.ndarray, "units rows 2"]]  # by group; NaN where a unit has fewer rows


def _points_by_group(pairs: "pd.DataFrame", rows: "pd.DataFrame", resampled: Bootstrap) -> Points:
    """Return the points where both columns of `pairs` are defined, in the order of their rows."""
    pairs = pairs.astype(float)
    defined = pairs.notna().all(axis=1)
    points = pairs[defined].to_numpy()  # (points, 2)
    rows = rows[defined].reset_index(drop=True)
    if rows.empty:
        return {}
    names = [resampled.groups, *resampled.units] if resampled.units else rows.index
    units = rows.groupby(names, sort=False)
    unit = units.ngroup().to_numpy()  # (points,)
    place = units.cumcount().to_numpy()  # (points,): of a row within its unit
    by_unit = np.full((unit.max() + 1, place.max() + 1, 2), math.nan)  # (units, rows, 2)
    by_unit[unit, place] = points
    group_of_unit = units[resampled.groups].first().to_numpy()  # (units,)
    return {group: by_unit[group_of_unit == group] for group in dict.fromkeys(group_of_unit)}


def _bootstrapped(statistic: Statistic, groups: Points, resampled: Bootstrap) -> Interval:
    """Return the statistic of all points with its interval; without numbers where it is undefined."""

    def of_units(units: Float[np.ndarray, "units rows 2"]) -> float:
        points = units.reshape(-1, 2)
        points = points[~np.isnan(points).any(axis=1)]
        return statistic(points) if len(points) > 1 else math.nan

    n_units = sum(len(units) for units in groups.values())
    n_points = sum(int((~np.isnan(units[..., 0])).sum()) for units in groups.values())
    if n_points < 3:
        return interval_of() | {"n": n_units}
    generator = np.random.default_rng(resampled.seed)
    return hierarchical_bootstrap(groups, generator, statistic=of_units, nested=resampled.draws_groups)


def rows_of(nested, *names: str) -> list[dict]:
    """A row for each branch so deep: keys and places on the way in these columns, and what it holds.

    >>> rows_of({"AO": {"x": {"value": 1.0}, "y": {"value": 2.0}}}, "kind", "number")
    [{'kind': 'AO', 'number': 'x', 'value': 1.0}, {'kind': 'AO', 'number': 'y', 'value': 2.0}]
    >>> rows_of({"AO": [0.5, 1.0]}, "kind", "place", "share")
    [{'kind': 'AO', 'place': 0, 'share': 0.5}, {'kind': 'AO', 'place': 1, 'share': 1.0}]
    """
    if not names:
        return [dict(nested)]
    if not isinstance(nested, Mapping | list):
        return [{names[0]: nested}]
    keyed = nested.items() if isinstance(nested, Mapping) else enumerate(nested)
    return [{names[0]: key} | row for key, branch in keyed for row in rows_of(branch, *names[1:])]


def level_key(level: float | str) -> str:
    """A level of a setting as part of a dotted key: ``0p001`` for 0.001."""
    return (level if isinstance(level, str) else f"{level:g}").replace(".", "p")


def crossing(places: Sequence[float], values: Sequence[float], level: float) -> float | None:
    """Where values first reach a level, on straight lines between places; None if never."""
    at = next((i for i, value in enumerate(values) if value >= level), None)
    if not at:
        return at if at is None else float(places[0])
    part = (level - values[at - 1]) / (values[at] - values[at - 1])
    return places[at - 1] + part * (places[at] - places[at - 1])
