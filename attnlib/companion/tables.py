"""Small tables for the pages of the book."""

from typing import TYPE_CHECKING

from attnlib.experiments.result import Result
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name

if TYPE_CHECKING:
    import pandas as pd


def interval_table(
    result: Result, columns: dict[str, str], plain: dict[str, str] | None = None, values: dict | None = None
) -> "pd.DataFrame":
    """A row for each task and architecture; intervals as ``value ± half width``, rounded to two digits.

    Args:
        columns: key in the result → heading, for intervals; a dotted key goes deeper.
        plain: the same for single numbers.
        values: ``{task: {architecture: …}}``; the result's own by default.
    """
    import pandas as pd

    rows = {}
    for task, kind, found in kinds_of(result, values):
        row = {heading: interval_text(_at(found, key)) for key, heading in columns.items()}
        row |= {heading: f"{_at(found, key):.2f}" for key, heading in (plain or {}).items()}
        rows[f"{task_name(task)}, {kind}"] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def interval_text(interval: dict) -> str:
    """``0.81 ± 0.03``, the half width of the 95 % interval; a dash where there is no number."""
    if interval["value"] is None:
        return "–"
    text = f"{interval['value']:.2f}"
    if interval["low"] is not None:
        text += f" ± {(interval['high'] - interval['low']) / 2:.2f}"
    return text.replace("-", "−")


def _at(found: dict, key: str) -> dict | float:
    for part in key.split("."):
        found = found[part]
    return found
