"""What each paper says beside what our runs say, as MyST Markdown: the scorecard."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from companion.book.markup import plain, span, template
from companion.book.project import PROFILES, Project, discover
from companion.claims.estimates import figure
from companion.claims.model import Claim, Paper, load_papers
from companion.claims.published import Entry
from companion.claims.verdicts import Order, Verdict
from companion.claims.verify import TALLIES, ClaimVerdict, chance, tally

HERE = Path(__file__).parent
SIGNS = {
    Verdict.REPRODUCED: "✓",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.CANNOT_BE_JUDGED: "–",
}

# By printed number and reading (empty for the first) the verdict on it.
Answers = Mapping[tuple[Entry, str], ClaimVerdict]


def scorecard_markdown(root: Path, rows: Sequence[ClaimVerdict]) -> str:
    """The page for a checkout and the verdicts on its claims; BadInput where a claims file cannot be used."""
    papers, figures = load_papers(root / "claims"), discover(Project(root)).values()
    filters = {"lettered": lettered, "numbers": _numbers, "presupposed": _presupposed}
    return template(HERE / "scorecard.md.jinja", **filters).render(
        papers=papers,
        pages={each.experiment: f"[{plain(each.title)}](/{each.id})" for each in figures},
        by_place={(row.claim.id, row.profile): row for row in rows},
        summary=list(_summary(papers, rows)),
        stale=sum(row.stale for row in rows),
        chance=chance(rows),
        stale_mark=span("stale", "stale"),
        Verdict=Verdict,
        PROFILES=PROFILES,
    )


def _summary(papers: Sequence[Paper], rows: Sequence[ClaimVerdict]) -> Iterator[tuple[str, Counter]]:
    """Counts of verdicts at the paper profile, for each paper by what claims are about, and for each table.

    A number that is printed in several tables counts once more, by the place where it has most digits.
    """
    found = answers(rows)
    for paper in papers:
        own = [row for row in rows if row.claim.paper == paper.name]
        for about in TALLIES[:-1]:
            of = (row for row in own if tally(row) == about and row.claim.kind == "statement")
            if counts := Counter(row.verdict for row in of):
                yield f"{plain(paper.title)}: claims about {about}", counts
        judged = [(each, row) for (each, reading), row in found.items() if row in own and not reading]
        judged.sort(key=lambda pair: len(pair[0].value))  # so that the longest number stays
        if distinct := {row.claim.keys: row for _, row in judged}:
            told = f"{len(judged)} of its {len(paper.tables.entries)} printed numbers have one of ours"
            counts = Counter(row.verdict for row in distinct.values())
            yield f"{told}, {len(distinct)} of these distinct, which count here", counts
        for name in paper.tables.names:
            counts = Counter(status(entry, found) for entry in paper.tables.table(name))
            yield f"numbers of Table {name}, {plain(paper.tables.titles[name])}", counts


def _numbers(row: ClaimVerdict) -> list[str]:
    """Each number of a verdict, with its own verdict's sign where they differ."""
    evidence, parts = row.judgement.evidence, row.judgement.parts
    kept = "\u00a0"  # a space at which no line ends
    signs = {label: kept + SIGNS[own] for label, own in parts.items()} if len({*parts.values()}) > 1 else {}
    numbers = {label: plain(str(own)).replace(" = ", f"{kept}={kept}") for label, own in evidence.items()}
    return [number + signs.get(label, "") for label, number in numbers.items()]


def _presupposed(row: ClaimVerdict) -> str:
    """What a verdict rests on: of the numbers of each presupposition the one that is nearest to failing."""
    found, told = {key: own.value for key, own in row.judgement.presupposed.items()}, []
    for each in row.claim.presupposes:
        ends = {key.rpartition(".")[2] for key in each.keys}
        if own := {key: value for key, value in found.items() if key.rpartition(".")[2] in ends}:
            weakest = (min if each.relation[0] == ">" else max)(own, key=own.get)
            of = f", the weakest of {len(own)}" if len(own) > 1 else ""
            told.append(f"`{weakest}` {figure(own[weakest])}{of}")
    return "; ".join(told)


def lettered(parts: Iterable[str], claim: Claim) -> list[str]:
    """What belongs to several keys, each with a number of its own, told apart by letters."""
    if len(claim.keys) < 2 or isinstance(claim.judge, Order):
        return list(parts)
    return [f"({letter}) {part}" for letter, part in zip(ascii_lowercase, parts, strict=False)]


def answers(rows: Sequence[ClaimVerdict]) -> Answers:
    """The verdicts that are about one printed number alone, at the largest profile judged."""
    found = {}
    for profile in PROFILES:
        for row in reversed(rows):  # of several claims about a number the first counts
            published = row.claim.published
            if row.profile == profile and row.verdict.judged and published and len(published.entries) == 1:
                found[published.entries[0], row.claim.reading] = row
    return found


def status(entry: Entry, found: Answers) -> Verdict:
    """How one printed number fares, in the first reading of its data set."""
    if row := found.get((entry, "")):
        return row.verdict
    if entry.by_construction:
        return Verdict.BY_CONSTRUCTION
    return Verdict.CANNOT_BE_RUN if entry.unavailable else Verdict.NOT_RUN
