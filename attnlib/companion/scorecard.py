"""The scorecard page: what each paper says beside what our runs say, as MyST Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

from attnlib.companion.claims import PROFILES, Claim, Paper, load_papers
from attnlib.companion.figures import discover
from attnlib.companion.project import Project, find_root
from attnlib.companion.published import Entry, PublishedTables
from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Order, Verdict
from attnlib.companion.verify import verify

INTRODUCTION = """\
# Scorecard

What the papers say, and what comes out here. Statements are in our words; what decides each was written down
before the runs shown here, and stands with its reason in `claims/`. The badges:

* {reproduced}: the whole interval of our number satisfies the statement;
* {partly}: our number does, and some of its interval does not;
* {not_reproduced}: our number does not. That is a finding, and it stays;
* {not_run}: nothing has been computed to judge it by;
* {cannot_be_run}: it cannot be computed here, with the reason;
* {stale}: the code behind the number has changed since it was computed.

A number is followed by its interval in brackets; n counts the independent runs behind it. A number without
an interval is decided by itself alone. `attnlib verify` prints the same verdicts, and fails when one differs
from what was expected.
"""
SYMBOLS = {"alpha": "α", "beta": "β", "delta": "Δ"}
MARKS = {"uf": "<sup>uf</sup>", "px": "<sup>px</sup>", "frozen": "<sup>fr</sup>"}


def scorecard_markdown(root: Path | None = None) -> str:
    """The page for the checkout at ``root`` (default: the one around the current folder).

    Raises:
        BadInput: a claims file, or ``expected.json``, that cannot be used.
    """
    project = Project(find_root() if root is None else Path(root))
    papers, rows = load_papers(project.root / "claims"), verify(project.root)
    pages = {each.experiment: (each.id, each.title) for each in discover(project).values()}
    badges = {verdict.name.lower(): badge(verdict) for verdict in Verdict}
    parts = [INTRODUCTION.format(**badges, stale=_span("stale", "stale")), _summary(papers, rows)]
    for paper in papers:
        own = [row for row in rows if row.claim.paper == paper.name]
        address = f"[{plain(paper.url)}]({paper.url})\n" if paper.url else ""
        parts.append(f"## {plain(paper.title)}\n\n{address}")
        parts.append(_claims_table(paper.claims, own, pages))
        if paper.tables:
            parts.append("### Every published number\n")
            parts += [published_table(paper.tables, name, own) for name in paper.tables.names]
    return "\n".join(parts)


def plain(text: str) -> str:
    """Text that Markdown shows as it stands: on one line, with every mark that may mean something escaped."""
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>()#+!|$~^&@%])", r"\\\1", text)


def _with_code(text: str) -> str:
    """Like `plain`, but what stands in backticks stays code (smart quotes would turn its -- into a dash)."""
    pieces = re.split(r"(`[^`|]+`)", " ".join(text.split()))
    return "".join(piece if piece.startswith("`") and len(piece) > 2 else _escaped(piece) for piece in pieces)


def badge(verdict: Verdict) -> str:
    """The verdict as the site's style sheet colours it."""
    return _span(verdict.css_class, verdict.value)


def _span(name: str, text: str) -> str:
    return f'<span class="verdict {name}">{text}</span>'


def _summary(papers: Sequence[Paper], rows: Sequence[Row]) -> str:
    lines = ["| | " + " | ".join(badge(verdict) for verdict in reversed(Verdict)) + " |", "|---" * 6 + "|"]
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
            verdicts = [status(entry, rows) for entry in paper.tables.entries]
            counts = " | ".join(str(verdicts.count(verdict)) for verdict in reversed(Verdict))
            lines.append(f"| {plain(paper.title)}: numbers printed in tables | {counts} |")
    stale = sum(row.stale for row in rows)
    note = f"\n{stale} of these verdicts rest on {_span('stale', 'stale')} results.\n" if stale else ""
    return "\n".join(lines) + "\n" + note


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
        count = "" if claim.published.entries == 1 else f"{claim.published.entries} numbers"
        parts.append(f"Published: {count if value is None else plain(f'{value:g}')}{where}")
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
    marks = badge(row.verdict) + (f" {_span('stale', 'stale')}" if row.stale else "")
    if row.changed and not row.unexpected:
        marks += f" (expected: {row.expected})"
    numbers = [plain(str(estimate)) for estimate in row.judgement.evidence.values()]
    if _lettered(row.claim):
        numbers = [f"({letter}) {number}" for letter, number in zip(ascii_lowercase, numbers, strict=False)]
    reason = [_with_code(row.judgement.reason)] if row.judgement.reason else []
    return "<br>".join([marks, *numbers, *reason])


def answer_to(entry: Entry, rows: Sequence[Row]) -> Row | None:
    """The verdict on one printed number alone, at the largest profile judged; None where there is none."""
    for profile in reversed(PROFILES):
        for row in rows:
            published = row.claim.published
            exact = published is not None and published.entries == 1 and published.reference is not None
            if exact and row.profile == profile and row.verdict.judged and published.reference.covers(entry):
                return row
    return None


def status(entry: Entry, rows: Sequence[Row]) -> Verdict:
    """How one printed number fares."""
    if row := answer_to(entry, rows):
        return row.verdict
    return Verdict.CANNOT_BE_RUN if entry.unavailable else Verdict.NOT_RUN


def published_table(tables: PublishedTables, name: str, rows: Sequence[Row]) -> str:
    """A published table, folded, with ours below each number that was judged, and how each row fares."""
    entries = tables.table(name)
    quantities = list(dict.fromkeys(entry.quantity for entry in entries))
    heads = ["", *(symbol(quantity) for quantity in quantities), "here"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        cells = {entry.quantity: entry for entry in entries if entry.dataset == dataset}
        printed = [_both(cells[quantity], rows) if quantity in cells else "" for quantity in quantities]
        here = _status_of_a_row(list(cells.values()), rows)
        lines.append(f"| {' | '.join([plain(dataset), *printed, here])} |")
    starred = any("starred" in entry.note for entry in entries)
    note = (
        "\nStarred (\\*): the agreement is never exceeded, so the best performance is printed.\n"
        if starred
        else ""
    )
    if any((row := answer_to(entry, rows)) and row.claim.number for entry in entries):
        note += "\nBelow it stands ours with its 95 % interval, in the colour of its verdict.\n"
    title = f"Table {name}: {tables.titles.get(name, 'as printed')} ({len(entries)} numbers)"
    summary = re.sub(r"[<>&]", lambda mark: f"&#{ord(mark[0])};", title)
    table = "\n".join(lines)
    return f"<details>\n<summary>{summary}</summary>\n\n{table}\n{note}\n</details>\n"


def _both(entry: Entry, rows: Sequence[Row]) -> str:
    """The printed number, and below it ours in the colour of its verdict."""
    row = answer_to(entry, rows)
    if row is None or not row.claim.number:
        return _printed(entry)
    (estimate,) = row.judgement.evidence.values()
    interval = f" [{estimate.low:.0f}, {estimate.high:.0f}]" if estimate.has_interval else ""
    ours = f"{estimate.value:.1f}{interval}".replace("-", "−")
    return f"{_printed(entry)}<br>{_span(row.verdict.css_class, ours)}"


def _printed(entry: Entry) -> str:
    return plain(entry.value) + ("\\*" if "starred" in entry.note else "")


def _status_of_a_row(entries: Sequence[Entry], rows: Sequence[Row]) -> str:
    told = []
    verdicts = [(status(entry, rows), entry.unavailable, entry.quantity) for entry in entries]
    kinds = list(
        dict.fromkeys(
            (verdict, why if verdict is Verdict.CANNOT_BE_RUN else "") for verdict, why, _ in verdicts
        )
    )
    for verdict, why in kinds:
        about = [
            quantity
            for given, reason, quantity in verdicts
            if given is verdict and (not why or reason == why)
        ]
        scope = f"{', '.join(symbol(quantity) for quantity in about)}: " if len(kinds) > 1 and why else ""
        told.append(f"{scope}{badge(verdict)}" + (f" {plain(why)}" if why else ""))
    return "<br>".join(told)


def symbol(quantity: str) -> str:
    """A quantity of the published tables as the paper prints it: ``A(alpha,beta)`` becomes *A*(α, β)."""
    if quantity in ("A_baseline", "xi_star"):
        return "*A* by chance" if quantity == "A_baseline" else "ξ\\*"
    match = re.fullmatch(r"(A|xi)\((\w+),(\w+)\)", quantity)
    if not match:
        return plain(quantity)
    inside = []
    for name in match.groups()[1:]:
        letter, _, mark = name.partition("_")
        inside.append(SYMBOLS.get(letter, letter) + MARKS.get(mark, ""))
    return f"{'*A*' if match[1] == 'A' else 'ξ'}({', '.join(inside)})"
