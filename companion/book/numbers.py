"""A number of a result in words: the way to write it follows its key, in prose and tables alike.

``spearman.temporal_share`` is ``0.81 [0.57, 0.90]``. Behind bars stand ways to write it differently:

=============  ====================  ===========================================================
``|.3f``       0.812 [0.571, 0.903]  any number of decimals; ``+.2f`` with its sign
``|%``         81 % [57, 90]         ``|.1%`` with a decimal
``|value``     0.81                  the point alone; ``|low``, ``|high`` the ends of its interval
``|±``         0.81 ± 0.17           half the width of the interval
``|n``         20                    the number of independent runs behind it
``|count``     16 of 20              a share of these runs
``|negated``   −0.81 [−0.90, −0.57]  for sentences that say "falls by"
``|points``    81.2 [57.1, 90.2]     of a share, in percentage points, with one decimal
``|factor``    3.4 [1.8, 6.2]        2 to the power of it, for what is counted in doublings
``|words``     five                  whole numbers up to twelve
``|largest``   0.97                  of several; ``|smallest``
=============  ====================  ===========================================================

Several may follow one another: ``gain.long_last|.3f|value``. ``config.seeds`` is a setting of the result.
``tables.curves[step == 2000 and part == 'first'].value`` is what a table has in those rows, chosen as in
:meth:`pandas.DataFrame.query`: an interval or number of one row, several of more. Without a column it is the
number of such rows.
"""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from attnlib.errors import BadInput
from companion.claims.estimates import CannotBeRun, MissingKey, NotRun, content_at
from companion.results.result import Result

NOTHING = "–"
PARTS = ("value", "low", "high", "n")
WAYS = (*PARTS, "±", "count", "negated", "points", "factor", "words", "largest", "smallest")
ROWS = re.compile(r"tables\.(?P<table>\w+)\[(?P<chosen>[^\]]*)\](?:\.(?P<column>\w+))?")
SPEC = re.compile(r"(?P<sign>\+?)(?P<places>\.\d+)?(?P<kind>[f%])")
SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


def value_at(result: Result, key: str) -> object:
    """What a result has at a key of its values, at ``config.x`` or in rows of a table.

    Raises MissingKey, CannotBeRun, NotRun: see :func:`companion.claims.estimates.content_at`.
    """
    if rows := ROWS.fullmatch(key):
        return _in_rows(result, key, **rows.groupdict())
    name = f"result {result.experiment} ({result.profile})"
    return content_at({**result.values, "config": result.config}, key, name)


def _in_rows(result: Result, key: str, table: str, chosen: str, column: str | None) -> object:
    if table not in result.tables:
        there = ", ".join(result.tables)
        raise MissingKey(f"result {result.experiment} has no table {table!r}; it has: {there}")
    frame = pd.DataFrame(result.tables[table])
    try:
        rows = frame.query(chosen) if chosen.strip() else frame
        if column is None:
            return len(rows)
        cells = rows[column].tolist()
    except (KeyError, NameError, SyntaxError, TypeError, ValueError) as error:
        columns = ", ".join(frame.columns)
        raise MissingKey(f"{key!r} of {result.experiment}: {error}; the columns are: {columns}") from error
    if not cells:
        raise MissingKey(f"{key!r} of {result.experiment}: no such row")
    if len(cells) > 1 or column != "value" or "low" not in rows:
        return cells if len(cells) > 1 else cells[0]
    return rows.reindex(columns=PARTS).astype(object).iloc[0].where(pd.notna, None).to_dict()


def written(content: object, ways: Sequence[str] = ()) -> str:
    """A number, an interval ``{"value", "low", "high", "n"}``, text or a list as text; None as a dash.

    >>> written({"value": -0.016, "low": -0.02, "high": -0.013, "n": 5}, [".3f"])
    '−0.016 [−0.020, −0.013]'
    >>> written({"value": 2.9, "low": 2.6, "high": None, "n": 3, "at_least": True})
    '≥ 2.60'
    >>> written(2000), written({"value": 0.8, "low": None, "high": None, "n": 20}, ["count"])
    ('2,000', '16 of 20')
    >>> written({"value": -2.0, "low": -3.0, "high": -1.0, "n": 5}, ["negated", "factor", ".0f"])
    '4 [2, 8]'
    >>> written({"value": 0.152, "low": 0.065, "high": 0.241, "n": 3}, ["points", ".0f"])
    '15 [6, 24]'

    Raises BadInput: an unknown way to write it, or one that does not fit.
    """
    spec = None
    for way in ways:
        if match := SPEC.fullmatch(way):
            spec = match
        elif way not in WAYS:
            raise BadInput(f"no way |{way} to write a number; known: |.2f |% |{' |'.join(WAYS)}")
    if "largest" in ways or "smallest" in ways:
        content = (max if "largest" in ways else min)(content)
    interval = dict(content) if isinstance(content, Mapping) else {"value": content}
    if "negated" in ways:
        turned = {"value": interval["value"], "low": interval.get("high"), "high": interval.get("low")}
        interval |= {part: -at for part, at in turned.items() if at is not None}
    if "points" in ways:
        spec = spec or SPEC.fullmatch(".1f")
        interval |= {
            part: 100 * interval[part] for part in ("value", "low", "high") if interval.get(part) is not None
        }
    if "factor" in ways:
        doublings = {part: interval.get(part) for part in ("value", "low", "high")}
        interval |= {part: 2**at for part, at in doublings.items() if at is not None}
    for part in filter(ways.__contains__, PARTS):
        interval = {"value": interval.get(part)}
    value = interval["value"]
    if value is None:
        return NOTHING
    if "words" in ways:
        if value not in range(len(SMALL)):
            raise BadInput(f"|words writes whole numbers up to {len(SMALL) - 1}; got {value!r}")
        return SMALL[int(value)]
    if "count" in ways:
        return f"{round(value * interval['n'])} of {interval['n']}"
    point = _figure(value, spec)
    if interval.get("at_least"):
        return f"≥ {_figure(interval['low'], spec)}"
    if interval.get("low") is None or interval.get("high") is None:
        return point
    if "±" in ways:
        return f"{point} ± {_figure((interval['high'] - interval['low']) / 2, spec).removeprefix('+')}"
    low, high = (_figure(interval[end], spec).removesuffix("\N{NO-BREAK SPACE}%") for end in ("low", "high"))
    return f"{point} [{low}, {high}]"


def _figure(value: object, spec: re.Match | None) -> str:
    """One number, with a true minus sign and none of zero."""
    if isinstance(value, list | tuple):
        return ", ".join(_figure(item, spec) for item in value)
    if isinstance(value, str | bool):
        return str(value)
    if spec is None:
        text = f"{value:,}" if isinstance(value, int) else f"{value:z.2f}"
    else:
        places = spec["places"] or (".0" if spec["kind"] == "%" else ".2")
        text = f"{float(value):{spec['sign']}z{places}{spec['kind']}}"
    return text.replace("-", "−").replace("%", "\N{NO-BREAK SPACE}%")


def table(result: Result, rows: Mapping[object, str], columns: Mapping[object, str]) -> pd.DataFrame:
    """A small table of a result: the cell is the number at ``<row's key>.<column's key>``.

    Args:
        rows: heading → key of what was measured. One of which the result has nothing is left out.
        columns: heading (or several, in a tuple) → key below that of the row, with its own way to write it
            (``forward.mean|.1f``), or else as ``|±``.

    Raises MissingKey: a column that no row has.
    """
    wrong: list[MissingKey] = []

    def cell(start: str, text: str) -> str | None:
        key, *ways = text.split("|")
        try:
            return written(value_at(result, ".".join(filter(None, (start, key)))), ways or ["±"])
        except MissingKey as error:
            wrong.append(error)
        except (CannotBeRun, NotRun):
            pass
        return None

    cells = [[cell(start, text) for text in columns.values()] for start in rows.values()]
    index, heads = pd.Index(list(rows)), pd.Index(list(columns))
    frame = pd.DataFrame(cells, index, heads, dtype=object).dropna(how="all")
    if wrong and len(frame) and frame.isna().all().any():
        raise wrong[0]
    return frame.fillna(NOTHING)
