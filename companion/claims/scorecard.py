"""The scorecard page: what each paper says beside what our runs say, as MyST Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from companion.book.markup import badge, plain, span, with_code
from companion.book.project import PROFILES, Project, discover, find_root
from companion.claims.model import Claim, Paper, load_papers
from companion.claims.tables import answers, markdown_table, published_table, status
from companion.claims.verdicts import Order, Verdict
from companion.claims.verify import ClaimVerdict, verify

TEMPLATE = Path(__file__).with_name("scorecard.md.jinja")


def scorecard_markdown(root: Path | None = None) -> str:
    """The page for a checkout; BadInput where a claims file or ``expected.json`` cannot be used."""
    from jinja2 import Environment, StrictUndefined

    project = Project(find_root() if root is None else Path(root))
    papers, rows = load_papers(project.root / "claims"), verify(project.root)
    pages = {each.experiment: f"[{plain(each.title)}](/{each.id})" for each in discover(project).values()}
    by_place = {(row.claim.id, row.profile): row for row in rows}

    def claims_table(paper: Paper, kind: str) -> str:
        """Its claims of a kind but for the numbers, which stand in published tables."""
        lines = [
            [
                _said(claim),
                _judged(claim, pages),
                *(_verdict(by_place[claim.id, profile]) for profile in PROFILES),
            ]
            for claim in paper.claims
            if claim.kind == kind and not claim.number
        ]
        return markdown_table(["what is said", "how it is judged", *PROFILES], lines)

    page = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return page.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        papers=papers,
        summary=markdown_table(["", *map(badge, reversed(Verdict))], _summary(papers, rows)),
        stale=sum(row.stale for row in rows),
        claims_table=claims_table,
        published_table=published_table,
        rows_of=lambda paper: [row for row in rows if row.claim.paper == paper.name],
        badge=badge,
        span=span,
        plain=plain,
        Verdict=Verdict,
    )


def _summary(papers: Sequence[Paper], rows: Sequence[ClaimVerdict]) -> Iterator[list[object]]:
    """Counts of verdicts, a line for each paper and profile, and below one for each table."""
    found = answers(rows)
    for paper in papers:
        for profile in PROFILES:
            own = (row for row in rows if row.claim.paper == paper.name and row.profile == profile)
            verdicts = [row.verdict for row in own if row.claim.kind == "statement" and not row.claim.number]
            yield [f"{plain(paper.title)}: claims, {profile} profile", *_counts(verdicts)]
        for name in paper.tables.names:
            numbers = [status(entry, found) for entry in paper.tables.table(name)]
            yield [f"numbers of Table {name}, {plain(paper.tables.titles[name])}", *_counts(numbers)]


def _counts(verdicts: Iterable[Verdict]) -> list[int]:
    counts = Counter(verdicts)
    return [counts[verdict] for verdict in reversed(Verdict)]


def _said(claim: Claim) -> str:
    parts = [f'<span id="claim-{claim.id}"></span>{plain(claim.says)}', f"*{plain(claim.place)}*"]
    if published := claim.published:
        where = f" ({plain(str(published.reference))})" if published.reference else ""
        text = published.entries[0].value if published.entries else f"{published.value:g}"
        several = f"{len(published.entries)} numbers" if len(published.entries) > 1 else ""
        parts.append(f"Published: {several or plain(text)}{where}")
    return "<br>".join(parts)


def _judged(claim: Claim, pages: Mapping[str, str]) -> str:
    if claim.judge is None:
        return "—"
    keys = _lettered(claim, [f"`{key}`" for key in claim.keys])
    if isinstance(claim.judge, Order):
        statement = [keys[0], f"above {keys[1]}"]
    else:
        statement = [*keys, ("each " if len(keys) > 1 else "") + plain(claim.judge.describe())]
    return "<br>".join([*statement, pages.get(claim.experiment, f"`{claim.experiment}`")])


def _lettered(claim: Claim, parts: list[str]) -> list[str]:
    """What belongs to several keys, each with a number of its own, told apart by letters."""
    if len(claim.keys) < 2 or isinstance(claim.judge, Order):
        return parts
    return [f"({letter}) {part}" for letter, part in zip(ascii_lowercase, parts, strict=False)]


def _verdict(row: ClaimVerdict) -> str:
    marks = badge(row.verdict) + (f" {span('stale', 'stale')}" if row.stale else "")
    if row.changed and not row.unexpected:
        marks += f" (expected: {row.expected})"
    numbers = _lettered(row.claim, [plain(str(estimate)) for estimate in row.judgement.evidence.values()])
    reason = [with_code(row.judgement.reason)] if row.judgement.reason else []
    return "<br>".join([marks, *numbers, *reason])
