"""``attnlib compare``: which heads differ between two reports."""

from pathlib import Path

from rich.console import Console

from attnlib.errors import first_names
from attnlib.files import write_text_atomic
from attnlib.report.comparison import READING, compare
from attnlib.report.files import csv_of, read_report

MOST_ALONE = 6  # heads of one analysis alone that are named


def compare_command(first: Path, second: Path, out: Path | None) -> None:
    """Print which heads of two reports differ, the largest differences first.

    Args:
        first: folder of a report.
        second: folder of a report on another model.
        out: where to write a table of all differences, if anywhere.

    Raises:
        BadInput: a folder holds no report, or the two cannot be compared.

    Example:
        >>> compare_command(Path("no-such-folder"), Path("report"), None)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: no-such-folder holds no analysis.safetensors: ...
    """
    comparison = compare(read_report(first), read_report(second))
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(repr(comparison), READING, *comparison.notes, sep="\n")
    if comparison.alone:
        names = first_names(comparison.alone, most=MOST_ALONE)
        console.print(f"in one of them alone: {names}")
    for line in comparison.largest:
        console.print(line)
    if out is not None:
        write_text_atomic(out, csv_of(comparison.rows))
