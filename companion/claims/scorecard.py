"""What each paper says beside what our runs say, as MyST Markdown: the scorecard."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from string import ascii_lowercase

from attnlib.errors import AttnlibError
from companion.book.markup import plain, span, template
from companion.book.project import Project, discover
from companion.claims.estimates import figure, look_up
from companion.claims.model import ABOUT, ORIGINS, Claim, Entry, Paper, load_papers
from companion.claims.verdicts import Verdict
from companion.claims.verify import ClaimVerdict, chance, tally
from companion.paths import PROFILES

PAGE = Path(__file__).with_name("scorecard.md.jinja")
SIGNS = {
    Verdict.REPRODUCED: "✓",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.CANNOT_BE_JUDGED: "–",
}


def scorecard_markdown(root: Path, rows: Sequence[ClaimVerdict]) -> str:
    """The page for a checkout and the verdicts on its claims; BadInput where a claims file cannot be used."""
    papers, figures = load_papers(root / "claims"), discover(Project(root)).values()
    filters = {"lettered": lettered, "numbers": _numbers, "presupposed": _presupposed, "accuracy": accuracy}
    return template(PAGE, figure=figure, **filters).render(
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
    """Yield counts of verdicts at the paper profile: by paper what claims are about, and tables."""
    found = answers(rows)
    for paper in papers:
        of_paper = [row for row in rows if row.claim.paper == paper.name]
        of_numbers = {place: row for place, row in found.items() if row.claim.paper == paper.name}
        counts = [
            *_by_origin(paper, of_paper),
            *_distinct_numbers(paper, of_numbers),
            *_by_table(paper, found),
        ]
        yield from ((title, counted) for title, counted in counts if counted)


def _by_origin(paper: Paper, rows: Sequence[ClaimVerdict]) -> Iterator[tuple[str, Counter]]:
    for about, origin in product(ABOUT, ORIGINS):
        verdicts = (row.verdict for row in rows if (tally(row), row.claim.origin) == (about, origin))
        yield f"{plain(paper.title)}: claims about {about}, {origin}", Counter(verdicts)


def _distinct_numbers(paper: Paper, found: "Answers") -> Iterator[tuple[str, Counter]]:
    """A number printed in several tables counts once, by what it is about, where it has most digits."""
    judged = [(entry, row) for (entry, reading), row in found.items() if not reading]
    judged.sort(key=lambda pair: len(pair[0].value))  # so that the longest number stays
    distinct = {row.claim.keys: row for _, row in judged}.values()
    printed = f"{len(judged)} of the {len(paper.tables.entries)} numbers that it prints have one of ours"
    for about in ABOUT:
        title = f"{printed}, {len(distinct)} of these distinct; those about {about}"
        yield title, Counter(row.verdict for row in distinct if row.claim.about == about)
    other_readings = (row.verdict for (_, reading), row in found.items() if reading)
    yield "the same numbers in other readings than the first", Counter(other_readings)


def _by_table(paper: Paper, found: "Answers") -> Iterator[tuple[str, Counter]]:
    for name in paper.tables.names:
        title = f"numbers of Table {name}, {plain(paper.tables.titles[name])}"
        yield title, Counter(status(entry, found) for entry in paper.tables.table(name))


def _numbers(row: ClaimVerdict) -> list[str]:
    """Each number of a verdict, with its own verdict's sign where they differ."""
    kept, parts = "\u00a0", row.judgement.parts  # a space at which no line ends
    signs = {label: kept + SIGNS[own] for label, own in parts.items()} if len({*parts.values()}) > 1 else {}
    numbers = {label: plain(str(own)) for label, own in row.judgement.evidence.items()}
    return [own.replace(" = ", f"{kept}={kept}") + signs.get(label, "") for label, own in numbers.items()]


def _presupposed(row: ClaimVerdict) -> Iterator[tuple]:
    """What a verdict rests on: of each presupposition the numbers, that which is nearest to failing first."""
    for each in row.claim.presupposes:
        ends = {key.split(".")[-1] for key in each.keys}
        found = row.judgement.presupposed.items()
        own = ((one.value, key) for key, one in found if key.split(".")[-1] in ends)
        yield tuple(sorted(own, reverse=math.isfinite(each.high)))


def accuracy(row: ClaimVerdict, keys: Sequence[str]) -> tuple:
    """How well the networks behind a verdict do, by the first of ``keys`` for each part that is there."""
    found, told = {}, {*row.claim.keys, *row.judgement.presupposed}
    for part, key in product(row.claim.keys, reversed(keys)):
        with suppress(IndexError, AttnlibError, AttributeError):  # another part has it; there is no result
            named = key.format(*part.split("."))
            found[part] = named, look_up(row.result.values, named)
    return tuple(sorted({(own.value, key) for key, own in found.values() if own.defined and key not in told}))


def lettered(parts: Iterable[str], claim: Claim) -> list[str]:
    """What belongs to several keys, each with a number of its own, told apart by letters."""
    if len(claim.keys) < 2 or claim.judge.contrast:
        return list(parts)
    return [f"({letter}) {part}" for letter, part in zip(ascii_lowercase, parts, strict=False)]


Answers = Mapping[tuple[Entry, str], ClaimVerdict]  # by printed number and reading; empty: the first reading


def answers(rows: Sequence[ClaimVerdict]) -> Answers:
    """The verdict on each printed number by reading (empty: the first), at the largest profile judged."""
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
