"""The expected verdicts, ``claims/expected.json``, which only ``attnlib verify --accept`` writes.

The file holds ``{claim id: {profile: verdict}}`` for verdicts that rest on numbers. *Not run* and *cannot be
run* are neither recorded nor ever counted as a change, so that a machine without the data has the same file.
A verdict that rests on numbers and has no entry does count: whoever adds a claim accepts its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import JSONDecodeError, loads
from pathlib import Path

from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Verdict
from attnlib.errors import BadInput
from attnlib.files import write_json_atomic


def expected_path(root: Path) -> Path:
    return root / "claims" / "expected.json"


def read_expected(root: Path) -> dict[tuple[str, str], Verdict]:
    """The expected verdicts by (claim id, profile); none when the file is not there yet.

    Raises:
        BadInput: the file is not what ``attnlib verify --accept`` writes.
    """
    path = expected_path(root)
    if not path.is_file():
        return {}
    try:
        content = loads(path.read_text(encoding="utf-8"))
        return {
            (claim, profile): Verdict(verdict)
            for claim, verdicts in content.items()
            for profile, verdict in verdicts.items()
        }
    except (JSONDecodeError, UnicodeDecodeError, AttributeError, ValueError) as error:
        raise BadInput(
            f"claims/{path.name} is not as `attnlib verify --accept` writes it: {error}"
        ) from error


def accept_verdicts(root: Path, rows: Iterable[Row]) -> list[Row]:
    """Write the verdicts of ``rows`` as the expected ones; gives back the rows whose expectation is new.

    A claim judged from a stale result, or not judged here at all, keeps what was expected of it; at a profile
    where it is no longer judged nothing is.
    """
    expected: dict[str, dict[str, str]] = {}
    renewed = []
    for row in rows:
        verdict = row.verdict if row.verdict.judged and not row.stale else row.expected
        if verdict is not None and verdict.judged and row.profile in row.claim.profiles:
            expected.setdefault(row.claim.id, {})[row.profile] = verdict.value
        if verdict is not row.expected:
            renewed.append(row)
    write_json_atomic(expected_path(root), expected)
    return renewed
