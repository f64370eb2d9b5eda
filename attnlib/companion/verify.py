"""Verdicts of every claim at every profile, held against the expected ones of ``claims/expected.json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.companion.claims import PROFILES, Claim, load_claims
from attnlib.companion.estimates import MissingKey, look_up
from attnlib.companion.expected import accept_verdicts, read_expected
from attnlib.companion.missing import missing_in_words
from attnlib.companion.project import Project, find_root
from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Judgement, Verdict, judge_values
from attnlib.errors import AttnlibError

if TYPE_CHECKING:
    from attnlib.experiments.result import Result

COLOURS = {
    Verdict.REPRODUCED: "green",
    Verdict.PARTLY: "yellow",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.NOT_RUN: "dim",
    Verdict.CANNOT_BE_RUN: "dim",
    Verdict.BY_CONSTRUCTION: "dim",
}


def verify(root: Path | None = None, *, experiment: str | None = None) -> list[Row]:
    """A row for every claim and profile, in the order of ``claims/*.yaml``; of one experiment where asked.

    Reads ``build/results/quick/<experiment>.json`` and ``results/paper/<experiment>.json``; a row says so
    when its result is not there or cannot be read.

    Raises:
        BadInput: a claims file or ``expected.json`` that cannot be used.
    """
    project = Project(find_root() if root is None else Path(root))
    claims = load_claims(project.root / "claims")
    if experiment is not None:
        claims = tuple(claim for claim in claims if claim.experiment == experiment)
    expected = read_expected(project.root)
    experiments = dict.fromkeys(claim.experiment for claim in claims if claim.experiment)
    found = {(name, profile): _load(project, name, profile) for name in experiments for profile in PROFILES}
    rows = [
        _row(claim, profile, found.get((claim.experiment, profile)))
        for claim in claims
        for profile in PROFILES
    ]
    return [replace(row, expected=expected.get((row.claim.id, row.profile))) for row in rows]


def _row(claim: Claim, profile: str, found: tuple[Result, bool] | str | None) -> Row:
    """Judge one claim; ``found`` is a result and whether it is stale, or why there is none."""
    if claim.judge is None:
        verdict = Verdict.CANNOT_BE_RUN if claim.impossible else Verdict.NOT_RUN
        return Row(claim, profile, Judgement(verdict, {}, claim.reason))
    if profile not in claim.profiles:
        reason = f"judged at the {' and '.join(claim.profiles)} profile only"
        return Row(claim, profile, Judgement(Verdict.NOT_RUN, {}, reason))
    if found is None:
        way_out = f"`{_command(claim.experiment, profile)}` makes it"
        return Row(claim, profile, Judgement(Verdict.NOT_RUN, {}, f"no {profile} result yet; {way_out}"))
    if isinstance(found, str):
        return Row(claim, profile, Judgement(Verdict.NOT_RUN, {}, found, miswired=True))
    result, stale = found
    judgement = judge_values(claim.judge, result.values, claim.keys)
    if result.missing and (judgement.miswired or judgement.undefined):
        reason = f"models not trained yet ({missing_in_words(result.missing)})"
        judgement = Judgement(Verdict.NOT_RUN, {}, reason)
    try:
        starred = judgement.verdict.judged and _starred(claim, result.values)
    except MissingKey as error:
        return Row(claim, profile, Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True), stale)
    return Row(claim, profile, judgement, stale, starred=starred)


def _command(experiment: str, profile: str) -> str:
    return f"attnlib run {experiment} --profile {profile}"


def _starred(claim: Claim, values: Mapping) -> bool:
    """Whether ours is ξ* in most runs; no for a number that is none."""
    return bool(claim.starred) and look_up(values, claim.starred).value > 0.5


def _load(project: Project, experiment: str, profile: str) -> tuple[Result, bool] | str | None:
    path = project.results(profile) / f"{experiment}.json"
    if not path.is_file():
        return None
    from attnlib.experiments.result import Result

    try:
        result = Result.load(path)
    except AttnlibError as error:
        return str(error).replace(f"{project.root}/", "")
    return result, result.stale


def summaries(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """By (experiment, profile), the verdicts in a few words, such as ``4 reproduced, 1 partly (stale)``."""
    gathered: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.claim.experiment:
            gathered.setdefault((row.claim.experiment, row.profile), []).append(row)
    words = {}
    for place, group in gathered.items():
        verdicts = [row.verdict for row in group]
        counts = [
            f"{verdicts.count(verdict)} {verdict}" for verdict in reversed(Verdict) if verdict in verdicts
        ]
        words[place] = ", ".join(counts) + (" (stale)" if any(row.stale for row in group) else "")
    return words


def verify_command(json: bool = False, accept: bool = False, root: Path | None = None) -> int:
    """Print every verdict; 1 when one is not as expected, or was never accepted, or lacks its key.

    A verdict from a stale result is named and counts as it stands: remaking it may take hours.

    Args:
        json: print one JSON object instead of a table.
        accept: first write today's verdicts as the expected ones (`accept_verdicts`).
        root: the checkout; by default the one around the current folder.
    """
    root = find_root() if root is None else Path(root)
    rows = verify(root)
    renewed = accept_verdicts(root, rows) if accept else []
    if accept:
        rows = verify(root)
    changed, problems = [row for row in rows if row.changed], [row for row in rows if row.problem]
    if json:
        counts = {"changed": len(changed), "problems": len(problems), "accepted": len(renewed)}
        print(dumps(counts | {"rows": [row.as_json() for row in rows]}, indent=1, ensure_ascii=False))
    else:
        render_table(rows)
        judged = sum(row.verdict.judged for row in rows)
        print(f"{judged} verdicts judged: {judged - len(changed)} as expected, {len(changed)} changed")
        if stale := sorted({(row.claim.experiment, row.profile) for row in rows if row.stale}):
            print("stale, its code has changed since:", ", ".join(f"{name} at {at}" for name, at in stale))
        if accept:
            print(f"expected verdicts written to claims/expected.json, {len(renewed)} of them new")
    return 1 if changed or problems else 0


def render_table(rows: Iterable[Row]) -> None:
    """The verdicts as a table on the terminal, a claim a line, and below it whatever needs a decision."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    by_claim: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.verdict.judged or not row.claim.number:  # hundreds of numbers
            by_claim.setdefault(row.claim.id, {})[row.profile] = row
    table = Table(Column("claim", overflow="fold", ratio=1), *PROFILES)  # an id cut short may be any of three
    for claim, cells in by_claim.items():
        shown = [
            Text(_in_words(row), COLOURS[row.verdict]) if (row := cells.get(profile)) else Text("")
            for profile in PROFILES
        ]
        table.add_row(Text(claim), *shown)
    console.print(table)
    for line in _notes([row for cells in by_claim.values() for row in cells.values()]):
        console.print(Text(line), soft_wrap=True)


def _notes(rows: list[Row]) -> Iterator[str]:
    changed = [row for row in rows if row.changed]
    for row in changed:
        numbers = "; ".join(f"{label} {estimate}" for label, estimate in row.judgement.evidence.items())
        if row.unexpected:
            told = f"{row.verdict} ({numbers}): no expected verdict; accept it with `attnlib verify --accept`"
        else:
            told = f"{row.expected} → {row.verdict} ({numbers})"
        if row.stale:  # then accepting keeps what was expected
            told += f"; stale: run it again first, `{_command(row.claim.experiment, row.profile)}`"
        yield f"changed: {row.claim.id} at {row.profile}: {told}"
    for row in rows:
        if row.problem:
            yield f"problem: {row.claim.id} at {row.profile}: {row.problem}"
    if any(not (row.unexpected or row.stale) for row in changed):
        yield "where the new verdict is right, `attnlib verify --accept` makes it the expected one"


def _in_words(row: Row) -> str:
    before = "new" if row.unexpected else f"was {row.expected}"
    marks = [mark for mark, holds in (("stale", row.stale), (before, row.changed)) if holds]
    return row.verdict.value.removesuffix(" at this profile") + (f" ({', '.join(marks)})" if marks else "")
