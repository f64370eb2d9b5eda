"""The scorecard page: what each paper says beside what our runs say, as MyST Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

from attnlib.companion.claims import PROFILES, Claim, Paper, load_papers
from attnlib.companion.figures import discover
from attnlib.companion.markup import badge, plain, span, with_code
from attnlib.companion.printed import published_table, status
from attnlib.companion.project import Project, find_root
from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Order, Verdict
from attnlib.companion.verify import verify

INTRODUCTION = """\
# Scorecard

What the papers say, and what comes out here. Statements are in our words; what decides each stands with its
reason in `claims/`. Some of it was written down before any run shown here, some after a look at results: the
head of each file there and the [reproduction notes](/reproduction_notes) say which. The badges:

* {reproduced}: the whole interval of our number satisfies the statement;
* {partly}: our number does, and some of its interval does not;
* {not_reproduced}: our number does not. That is a finding, and it stays; “undecided” beside it says that
  some of the interval does, so that the runs are too few to tell;
* {not_run}: nothing has been computed to judge it by;
* {cannot_be_run}: it cannot be computed here, with the reason;
* {by_construction}: no run can move it, so that it tells nothing; the reason stands below its table;
* {stale}: the code behind the number has changed since it was computed.

A number is followed by its interval in brackets; n counts the independent runs behind it. A number without
an interval is decided by itself alone. `attnlib verify` prints the same verdicts, and fails when one differs
from what was expected.
"""


def scorecard_markdown(root: Path | None = None) -> str:
    """The page for the checkout at ``root`` (default: the one around the current folder).

    Raises:
        BadInput: a claims file, or ``expected.json``, that cannot be used.
    """
    project = Project(find_root() if root is None else Path(root))
    papers, rows = load_papers(project.root / "claims"), verify(project.root)
    pages = {each.experiment: (each.id, each.title) for each in discover(project).values()}
    badges = {verdict.name.lower(): badge(verdict) for verdict in Verdict}
    parts = [INTRODUCTION.format(**badges, stale=span("stale", "stale")), _summary(papers, rows)]
    for paper in papers:
        own = [row for row in rows if row.claim.paper == paper.name]
        address = f"[{plain(paper.url)}]({paper.url})\n" if paper.url else ""
        parts.append(f"## {plain(paper.title)}\n\n{address}")
        parts.append(_claims_table(paper.claims, own, pages))
        if paper.tables:
            parts.append("### Every published number\n")
            parts += [published_table(paper.tables, name, own) for name in paper.tables.names]
    return "\n".join(parts)


def _summary(papers: Sequence[Paper], rows: Sequence[Row]) -> str:
    heads = ["", *(badge(verdict) for verdict in reversed(Verdict))]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for paper in papers:
        for profile in PROFILES:
            verdicts = [
                row.verdict
                for row in rows
                if row.claim.paper == paper.name and row.profile == profile and not row.claim.number
            ]
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in reversed(Verdict))
            lines.append(f"| {plain(paper.title)}: claims, {profile} profile | {counts} |")
        if paper.tables:
            lines += _printed(paper, rows)
    stale = sum(row.stale for row in rows)
    note = f"\n{stale} of these verdicts rest on {span('stale', 'stale')} results.\n" if stale else ""
    return "\n".join(lines) + "\n" + note


def _printed(paper: Paper, rows: Sequence[Row]) -> list[str]:
    """A line a table, below the paper's: some print counts of data, others what networks do."""
    lines = []
    for name in paper.tables.names:
        verdicts = [status(entry, rows) for entry in paper.tables.table(name)]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in reversed(Verdict))
        lines.append(f"| numbers of Table {name}, {plain(paper.tables.titles[name])} | {counts} |")
    return lines


def _claims_table(claims: Sequence[Claim], rows: Sequence[Row], pages: dict[str, tuple[str, str]]) -> str:
    by_place = {(row.claim.id, row.profile): row for row in rows}
    lines = [
        f"| what is said | how it is judged | {' | '.join(PROFILES)} |",
        "|---" * (2 + len(PROFILES)) + "|",
    ]
    for claim in (each for each in claims if not each.number):
        cells = [_said(claim), _judged(claim, pages)]
        cells += [_verdict_cell(by_place[claim.id, profile]) for profile in PROFILES]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _said(claim: Claim) -> str:
    parts = [f'<span id="claim-{claim.id}"></span>{plain(claim.says)}', f"*{plain(claim.place)}*"]
    if claim.published is not None:
        reference, value = claim.published.reference, claim.published.value
        where = f" ({plain(str(reference))})" if reference else ""
        text = claim.published.text or f"{value:g}" if claim.published.entries == 1 else ""
        parts.append(f"Published: {plain(text) or f'{claim.published.entries} numbers'}{where}")
    return "<br>".join(parts)


def _judged(claim: Claim, pages: dict[str, tuple[str, str]]) -> str:
    if claim.judge is None:
        return "—"
    keys = [f"`{key}`" for key in claim.keys]
    if _lettered(claim):
        keys = [f"({letter}) {key}" for letter, key in zip(ascii_lowercase, keys, strict=False)]
    if isinstance(claim.judge, Order):
        statement = [keys[0], f"above {keys[1]}"]
    else:
        statement = [*keys, ("each " if len(keys) > 1 else "") + plain(claim.judge.describe())]
    place, title = pages.get(claim.experiment, (None, claim.experiment))
    figure = f"[{plain(title)}](/{place})" if place else f"`{claim.experiment}`"
    return "<br>".join([*statement, figure])


def _lettered(claim: Claim) -> bool:
    """Whether the numbers are told apart by letters: several keys, each with a number of its own."""
    return len(claim.keys) > 1 and not isinstance(claim.judge, Order)


def _verdict_cell(row: Row) -> str:
    marks = badge(row.verdict) + (f" {span('stale', 'stale')}" if row.stale else "")
    if row.changed and not row.unexpected:
        marks += f" (expected: {row.expected})"
    numbers = [plain(str(estimate)) for estimate in row.judgement.evidence.values()]
    if _lettered(row.claim):
        numbers = [f"({letter}) {number}" for letter, number in zip(ascii_lowercase, numbers, strict=False)]
    reason = [with_code(row.judgement.reason)] if row.judgement.reason else []
    return "<br>".join([marks, *numbers, *reason])
