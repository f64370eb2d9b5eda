"""Recompute the results of the paper profile from the archive: ``python -m companion.results.recompute``.

Nothing is trained, and no network is needed: a result is what ``compute`` makes of archived answers. A
result whose numbers come out as they are committed keeps its date, commit and machine, also where it has
further tables; any other is written anew, and said. The catalogue and the checksums follow.
"""

import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attnlib.errors import CorruptFile
from companion.paths import ARCHIVE, PAPER
from companion.results import catalogue
from companion.results.committed import committed, write_checksums
from companion.results.request import Request
from companion.results.result import Result
from companion.results.run import run
from companion.runs.archive import Archive
from companion.runs.command import errors_in_a_line, parser_of

# May change, numbers being equal.
TRAINING = ("networks", "training_seconds", "trained_on", "trained_between", "trained_with")
RECOMPUTED = ("models", "measured", *TRAINING)
COMPUTED = "computed"  # the digest of the numbers as they were computed: a result altered later has another


def recomputed(name: str, archive: Archive) -> Result:
    """The result of an experiment at the paper profile, from the archive alone."""
    with tempfile.TemporaryDirectory() as folder:
        models, request = Path(folder) / "models", Request(name, "paper")
        return run(request, out=folder, models=models, archive=archive, trains=False)


def has_numbers_of(result: Result, before: Result) -> bool:
    """Return True if all numbers of an earlier result are in this one, at the same places.

    A column that a row lacks has no number there, like one that is empty.
    """
    if (result.config, result.values) != (before.config, before.values):
        return False
    return all(
        name in result.tables and _filled(result.tables[name]) == _filled(records)
        for name, records in before.tables.items()
    )


def _filled(records: list[dict]) -> list[dict]:
    """Return records without what is empty in them."""
    return [{name: value for name, value in record.items() if value is not None} for record in records]


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Recompute, compare, write; exit code 1 if a number has changed."""
    parser = parser_of("companion.results.recompute", __doc__)
    parser.add_argument("name", metavar="EXPERIMENT", nargs="*", help="default: all that are committed")
    options = parser.parse_args(arguments)
    changed = 0
    for name in options.name or committed():
        before, today = None, recomputed(name, Archive(ARCHIVE))
        with suppress(CorruptFile):  # it is written anew
            before = Result.load(PAPER / f"{name}.json")
        if before:
            today = replace(today, data=before.data)
        same = before is not None and has_numbers_of(today, before)
        if same:
            origin = before.provenance | {part: today.provenance[part] for part in (*RECOMPUTED, COMPUTED)}
            today = replace(today, missing=before.missing, provenance=origin)
        today.save(PAPER)
        changed += not same
        print(f"{name}: {'the same' if same else 'changed'}")
    catalogue.write()
    write_checksums()
    return min(changed, 1)


if __name__ == "__main__":
    sys.exit(main())
