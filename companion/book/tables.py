"""Small tables for the pages of the book."""

from typing import TYPE_CHECKING

from attnlib.plots.style import task_name
from companion.book.intervals import listed
from companion.results.result import Result, kinds_of

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


def headline_sentences(result: Result) -> str:
    """The correlations of :mod:`notebooks.attend.temporal_share.experiment` in words, numbers and all."""
    names = {"temporal_share": "temporal share", "input_share": "input share"}
    found = result.values["spearman"]
    parts = [f"{interval_range(found[key])} with {name}" for key, name in names.items()]
    alone = {"temporal_only": "temporal components alone", "input_only": "input components alone"}
    built = [f"{interval_range(found[key])} for {name}" for key, name in alone.items()]
    return (
        f"Over {found['temporal_share']['n']} networks on {result.values['tasks']} tasks, typicality has a "
        f"rank correlation of {listed(parts)} (95 % intervals; tasks and then their points resampled). "
        f"With the attention that can be built in place of the shares: {listed(built)}."
    )


def dial_sentences(result: Result) -> str:
    """What the dial does in each architecture, from ``dial`` of the same experiment; empty without a dial."""
    names = {
        "typicality": "typicality",
        "temporal_share": "the temporal share",
        "input_share": "the input share",
    }
    sentences = []
    for kind, found in result.values["dial"].items():
        if found:
            parts = [f"{interval_range(found[key])} with {name}" for key, name in names.items()]
            sentences.append(
                f"In {kind} the share of reordered sentences has a rank correlation of {listed(parts)}."
            )
    return " ".join(sentences)


def interval_range(interval: dict, digits: int = 2) -> str:
    """``0.77 [−0.01, 0.95]``; a dash where there is no number, and no brackets where there is no interval."""
    if interval["value"] is None:
        return "–"
    numbers = [
        f"{interval[end]:z.{digits}f}" for end in ("value", "low", "high") if interval[end] is not None
    ]
    value, *ends = (number.replace("-", "−") for number in numbers)
    return f"{value} [{', '.join(ends)}]" if ends else value


def interval_text(interval: dict, digits: int = 2) -> str:
    """``0.81 ± 0.03``, the half width of the 95 % interval; a dash where there is no number.

    Args:
        digits: after the decimal point, 0 for numbers of updates.
    """
    if interval["value"] is None:
        return "–"
    text = f"{interval['value']:z.{digits}f}"
    if interval["low"] is not None:
        text += f" ± {(interval['high'] - interval['low']) / 2:.{digits}f}"
    return text.replace("-", "−")


def count_of(share: dict) -> int:
    """How many a share of some networks is.

    >>> count_of({"value": 0.8, "n": 20})
    16
    """
    return round(share["value"] * share["n"])


def counted(share: dict) -> str:
    """A share of some networks as their number: ``16 of 20``."""
    return f"{count_of(share)} of {share['n']}"


def share_text(share: dict) -> str:
    """``16 of 20 (95 % interval 0.58 to 0.92)``."""
    return f"{counted(share)} (95 % interval {share['low']:.2f} to {share['high']:.2f})"


def _at(found: dict, key: str) -> dict | float:
    for part in key.split("."):
        found = found[part]
    return found
