"""The scorecard page: what each paper says beside what our runs say, as MyST Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    page = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page.filters |= {"plain": plain, "badge": badge, "with_code": with_code, "lettered": _lettered}
    return page.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        papers=papers,
        pages={each.experiment: f"[{plain(each.title)}](/{each.id})" for each in discover(project).values()},
        by_place={(row.claim.id, row.profile): row for row in rows},
        summary=markdown_table(["", *map(badge, reversed(Verdict))], _summary(papers, rows)),
        stale=sum(row.stale for row in rows),
        published_table=published_table,
        rows_of=lambda paper: [row for row in rows if row.claim.paper == paper.name],
        stale_mark=span("stale", "stale"),
        Verdict=Verdict,
        PROFILES=PROFILES,
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


def _lettered(parts: Iterable[str], claim: Claim) -> list[str]:
    """What belongs to several keys, each with a number of its own, told apart by letters."""
    if len(claim.keys) < 2 or isinstance(claim.judge, Order):
        return list(parts)
    return [f"({letter}) {part}" for letter, part in zip(ascii_lowercase, parts, strict=False)]
