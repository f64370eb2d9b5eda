"""What each source says beside what our runs say: the scorecard, as MyST Markdown, and its rows as CSV."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

from attnlib.errors import AttnlibError
from companion.book.markup import plain, template
from companion.book.numbers import SMALL
from companion.book.project import Project, discover
from companion.claims.estimates import figure, look_up
from companion.claims.model import ABOUT, Claim, Entry, Paper, load_papers
from companion.claims.verdicts import Verdict
from companion.claims.verify import Chance, ClaimVerdict, chance
from companion.claims.wording import (
    SOURCES,
    decided_after_looking,
    evidence_in_words,
    judged_in_words,
    key_in_words,
    outcome,
    source_label,
    source_of,
)
from companion.paths import PROFILES
from companion.results.result import Result

PAGE = Path(__file__).with_name("scorecard.md.jinja")
SIGNS = {
    Verdict.REPRODUCED: "✓",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.CANNOT_BE_JUDGED: "–",
}
NO_BREAK = "\u00a0"  # a space at which no line ends
KINDS = {
    "said": "said by the source",
    "inferred": "inferred by us from the source",
    "reported": "reported of the source by others",
    "predicted": "predicted by us",
    "falsifier": "what would change our mind",
    "reading": "what our own sentences rest on",
}
COLUMNS = (
    "claim",
    "source",
    "kind",
    "place",
    "statement",
    "profile",
    "verdict",
    "what came out",
    "numbers",
    "p",
    "chapter",
    "set with the result known",
    "trained on",
)
SIZES = "9"  # the table whose numbers are sizes of data sets, which are among the statements
UNRECORDED = "a processor that was not recorded"
DOT_ORDER = (
    Verdict.REPRODUCED,
    Verdict.NOT_REPRODUCED,
    Verdict.UNDECIDED,
    Verdict.CANNOT_BE_JUDGED,
    Verdict.BY_CONSTRUCTION,
    Verdict.CANNOT_BE_RUN,
    Verdict.NOT_RUN,
)

UNTESTED = frozenset(Verdict) - {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.UNDECIDED}


@dataclass(frozen=True)
class Source:
    """A line of the scorecard's overview: a source, or a kind of the book's own claims, with its verdicts."""

    name: str
    rows: tuple[ClaimVerdict, ...]

    @property
    def of_a_source(self) -> bool:
        return bool(source_of(self.rows[0].claim))

    def count(self, *verdicts: Verdict) -> int:
        return sum(row.verdict in verdicts for row in self.rows)

    def of_origin(self, origin: str) -> int:
        return sum(row.claim.origin == origin for row in self.rows)

    @property
    def decided_after_looking(self) -> int:
        return sum(decided_after_looking(row.claim) for row in self.rows)

    @property
    def dots(self) -> list[tuple[str, int]]:
        """The CSS class of each verdict and how often it is met, in the order in which dots are drawn."""
        return [(verdict.css_class, self.count(verdict)) for verdict in DOT_ORDER if self.count(verdict)]


def scorecard_markdown(root: Path, rows: Sequence[ClaimVerdict]) -> str:
    """The page for a checkout and the verdicts on its claims; BadInput where a claims file cannot be used."""
    papers = load_papers(root / "claims")
    chapters = _chapters(root)
    by_place = {(row.claim.id, row.profile): row for row in rows}
    filters = {
        "accuracy": accuracy,
        "borderline": borderline,
        "evidence_in_words": evidence_in_words,
        "judged_in_words": judged_in_words,
        "key_in_words": key_in_words,
        "kind_of": kind_of,
        "lettered": lettered,
        "numbers": _numbers,
        "presupposed": _presupposed,
        "source_label": source_label,
        "source_of": source_of,
        "trained_on": trained_on,
    }
    central = []
    for paper in _papers_before_primers(papers):
        for name, claimed in paper.central.items():
            row = by_place[name, PROFILES[-1]]
            central.append((_source_name(paper, row.claim), claimed, row))
    among = chance(rows)
    return template(
        PAGE, figure=figure, outcome=outcome, after_looking=decided_after_looking, **filters
    ).render(
        papers=papers,
        central=central,
        central_counts=counts_in_words([row for *_, row in central], among),
        central_chosen=chosen_in_words([row for *_, row in central]),
        sources=list(overview(papers, rows)),
        without_claim=without_claim(papers, rows),
        tables=list(_tables(papers, rows)),
        titles={paper.name: paper.title for paper in papers},
        accuracies={paper.name: paper.accuracy for paper in papers},
        claims=[claim for paper in papers for claim in paper.claims if not claim.number],
        chapters=chapters,
        by_place=by_place,
        chance=among,
        stale=sum(row.stale for row in rows),
        seen_on=_seen_on(rows),
        Verdict=Verdict,
        PROFILES=PROFILES,
        KINDS=KINDS,
    )


def scorecard_csv(root: Path, rows: Sequence[ClaimVerdict]) -> str:
    """Every claim at every profile as CSV, published numbers included, in the order of the files."""
    chapters = _chapters(root)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        claim, judgement = row.claim, row.judgement
        _, chapter = chapters.get(claim.experiment or "", ("", ""))
        numbers = "; ".join(f"{key}: {estimate}" for key, estimate in judgement.evidence.items())
        p = "" if judgement.p is None else f"{judgement.p:.3g}"
        known = "yes" if decided_after_looking(claim) else ""
        about = [claim.id, claim.paper, kind_of(claim), claim.place, claim.says]
        came_out = [row.profile, row.verdict.value, outcome(claim, row.verdict), numbers, p]
        writer.writerow([*about, *came_out, chapter, known, "; ".join(trained_on(row))])
    return out.getvalue()


def _chapters(root: Path) -> dict[str, tuple[str, str]]:
    """Title and page of the chapter of each experiment."""
    return {page.experiment: (page.title, page.id) for page in discover(Project(root)).values()}


def borderline(row: ClaimVerdict, among: Chance) -> bool:
    """Return True for a verdict of the paper profile that a false discovery rate of 5 % would not leave."""
    p = row.judgement.p
    return row.profile == PROFILES[-1] and row.verdict.decided and p is not None and not among.survives(p)


def borderline_claims(rows: Sequence[ClaimVerdict]) -> frozenset[str]:
    """Return the claims whose verdict at the paper profile is borderline."""
    among = chance(rows)
    return frozenset(row.claim.id for row in rows if borderline(row, among))


def counts_in_words(rows: Sequence[ClaimVerdict], among: Chance) -> str:
    """Say of these claims how many hold, fail, are open or are untested; empty where there are none."""
    if not rows:
        return ""
    counts = []
    for verdicts, singular, plural in (
        ((Verdict.REPRODUCED,), "holds", "hold"),
        ((Verdict.NOT_REPRODUCED,), "fails", "fail"),
        ((Verdict.UNDECIDED,), "is open", "are open"),
        (UNTESTED, "is not tested", "are not tested"),
    ):
        counted = [row for row in rows if row.verdict in verdicts]
        n_borderline = sum(borderline(row, among) for row in counted)
        if counted:
            count = f"{_in_words(len(counted))} {singular if len(counted) == 1 else plural}"
            if n_borderline:
                count += f" ({_in_words(n_borderline)} of them borderline)"
            counts.append(count)
    total = f"{_in_words(len(rows))} claim{'s' if len(rows) > 1 else ''}"
    *others, last = counts
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Of {total} {listed}."


def chosen_in_words(rows: Sequence[ClaimVerdict]) -> str:
    """Say for how many of these claims the threshold was chosen after the result; empty where for none."""
    chosen = [row for row in rows if decided_after_looking(row.claim)]
    if not chosen:
        return ""
    holding = [row for row in rows if row.verdict is Verdict.REPRODUCED]
    of_holding = sum(row in holding for row in chosen)
    text = f"For {_in_words(len(chosen))} of the {_in_words(len(rows))}"
    if of_holding and of_holding == len(holding):
        which = "the one that holds" if of_holding == 1 else f"all {_in_words(of_holding)} that hold"
        text += f", including {which},"
    elif of_holding:
        text += f", including {_in_words(of_holding)} of those that hold,"
    return f"{text} we chose the threshold after seeing the result."


def _in_words(count: int) -> str:
    return SMALL[count] if count < len(SMALL) else str(count)


def kind_of(claim: Claim) -> str:
    """Return what sort of claim it is, a key of `KINDS`."""
    return claim.origin if claim.kind == "statement" else claim.kind


def overview(papers: Sequence[Paper], rows: Sequence[ClaimVerdict]) -> Iterator[Source]:
    """What each source says, and what the book says itself, at the paper profile; primers are two sources."""
    judged = [row for row in rows if row.profile == PROFILES[-1] and not row.claim.reading]
    for paper in _papers_before_primers(papers):
        statements = [row for row in judged if row.claim.paper == paper.name and source_of(row.claim)]
        named: dict[str, list[ClaimVerdict]] = {}
        for row in statements:
            named.setdefault(_source_name(paper, row.claim), []).append(row)
        yield from (Source(name, tuple(of_source)) for name, of_source in named.items())
    ours = [row for row in judged if not source_of(row.claim)]
    for name, kinds in (
        ("Predictions of our own", ("predicted",)),
        ("Sentences of this book", ("reading",)),
        ("What would refute this book", ("falsifier",)),
    ):
        if of_kinds := tuple(row for row in ours if kind_of(row.claim) in kinds):
            yield Source(name, of_kinds)


def _papers_before_primers(papers: Sequence[Paper]) -> list[Paper]:
    return sorted(papers, key=lambda paper: paper.name in SOURCES)


def _source_name(paper: Paper, claim: Claim) -> str:
    if claim.number:
        return f"{_short(paper.title)}: numbers in tables"
    if claim.place.startswith(("Primer 1", "Primer 2")):
        return claim.place[:8]
    return _short(paper.title)


def _short(title: str) -> str:
    """Return who wrote a paper and when, of a title that ends with it in brackets."""
    return title.rpartition("(")[2].rstrip(")") if title.endswith(")") else title


def _tables(papers: Sequence[Paper], rows: Sequence[ClaimVerdict]) -> Iterator[tuple[str, Counter]]:
    """Counts of verdicts on printed numbers, for each table and for further readings of the numbers."""
    answered = answers(rows)
    for paper in papers:
        for name in paper.tables.names:
            counts = Counter(status(entry, answered) for entry in paper.tables.table(name))
            yield f"Table {name}, {plain(paper.tables.titles[name])}", counts
        of_paper = {number: row for number, row in answered.items() if row.claim.paper == paper.name}
        judged = [(entry, row) for (entry, reading), row in of_paper.items() if not reading]
        judged.sort(key=lambda pair: len(pair[0].value))  # so that the longest number stays
        distinct = {row.claim.keys: row for _, row in judged}.values()
        for about in ABOUT:
            if counts := Counter(row.verdict for row in distinct if row.claim.about == about):
                yield f"distinct numbers about {about}", counts
        if others := [row for (_, reading), row in of_paper.items() if reading]:
            yield "the same numbers in other readings than the first", Counter(row.verdict for row in others)


def without_claim(papers: Sequence[Paper], rows: Sequence[ClaimVerdict]) -> Counter:
    """Count the printed numbers, sizes of data sets aside, about which no claim is made, by the reason."""
    claimed = {
        entry
        for row in rows
        if row.claim.number and row.claim.published
        for entry in row.claim.published.entries
    }
    answered = answers(rows)
    return Counter(
        status(entry, answered)
        for paper in papers
        for name in paper.tables.names
        for entry in paper.tables.table(name)
        if str(name) != SIZES and entry not in claimed
    )


def _numbers(row: ClaimVerdict) -> list[str]:
    """Each number of a verdict, with its own verdict's sign where they differ."""
    verdicts = row.judgement.parts
    differ = len({*verdicts.values()}) > 1
    numbers = []
    for label, estimate in row.judgement.evidence.items():
        number = str(estimate).replace(" = ", f"{NO_BREAK}={NO_BREAK}")
        if differ and label in verdicts:
            number += NO_BREAK + SIGNS[verdicts[label]]
        numbers.append(number)
    return numbers


def _presupposed(row: ClaimVerdict) -> Iterator[tuple]:
    """What a verdict rests on: of each presupposition the numbers, that which is nearest to failing first."""
    for presupposition in row.claim.presupposes:
        quantities = {key.rpartition(".")[2] for key in presupposition.keys}
        numbers = [
            (estimate.value, key)
            for key, estimate in row.judgement.presupposed.items()
            if key.rpartition(".")[2] in quantities
        ]
        is_limited_above = math.isfinite(presupposition.high)
        yield tuple(sorted(numbers, reverse=is_limited_above))


def accuracy(row: ClaimVerdict, keys: Sequence[str]) -> tuple:
    """How well the networks behind a verdict do, by the first of ``keys`` for each part that is there."""
    shown = {*row.claim.keys, *row.judgement.presupposed}
    accuracies = set()
    for part in row.claim.keys:
        for pattern in keys:
            with suppress(
                IndexError, AttnlibError, AttributeError
            ):  # another part has it; there is no result
                key = pattern.format(*part.split("."))
                estimate = look_up(row.result.values, key)
                if estimate.defined and key not in shown:
                    accuracies.add((estimate.value, key))
                break
    return tuple(sorted(accuracies))


def lettered(parts: Iterable[str]) -> list[str]:
    """Several parts told apart by letters; one alone has none."""
    parts = list(parts)
    if len(parts) < 2:
        return parts
    return [f"({letter}) {part}" for letter, part in zip(ascii_lowercase, parts, strict=False)]


def trained_on(row: ClaimVerdict) -> list[str]:
    """Return the kinds of processor on which the networks behind a verdict were trained.

    They are those of all networks of the figure. Early networks have no record of theirs.
    """
    if row.claim.about != "networks" or not isinstance(row.result, Result):
        return []
    places = row.result.provenance.get("trained_on", [])
    return sorted({_processor(place) for place in places})


def _processor(place: str) -> str:
    """Return the kind of processor, without the number of cores, the instruction set and the threads.

    >>> _processor("AMD EPYC × 2 with AVX512, 1 thread(s)")
    'AMD EPYC'
    """
    name = place.rpartition(", ")[0].partition(" with ")[0].partition(" × ")[0]
    return UNRECORDED if name == "cpu" else name.replace("(R)", "").removesuffix(" Processor")


def _seen_on(rows: Iterable[ClaimVerdict]) -> dict[str, int]:
    """Count judged statements about networks by how many kinds of processor they were seen on."""
    counts = {"several": 0, "one": 0, "unrecorded": 0}
    for row in rows:
        places = trained_on(row)
        if row.profile != PROFILES[-1] or not row.verdict.judged or row.claim.number or not places:
            continue
        match len(set(places) - {UNRECORDED}):
            case 0:
                counts["unrecorded"] += 1
            case 1:
                counts["one"] += 1
            case _:
                counts["several"] += 1
    return counts


Answers = Mapping[tuple[Entry, str], ClaimVerdict]  # by printed number and reading; empty: the first reading


def answers(rows: Sequence[ClaimVerdict]) -> Answers:
    """The verdict on each printed number by reading (empty: the first), at the largest profile judged."""
    answered = {}
    for profile in PROFILES:
        for row in reversed(rows):  # of several claims about a number the first counts
            published = row.claim.published
            if row.profile == profile and row.verdict.judged and published and len(published.entries) == 1:
                answered[published.entries[0], row.claim.reading] = row
    return answered


def status(entry: Entry, answered: Answers) -> Verdict:
    """How one printed number fares, in the first reading of its data set."""
    if row := answered.get((entry, "")):
        return row.verdict
    if entry.by_construction:
        return Verdict.BY_CONSTRUCTION
    return Verdict.CANNOT_BE_RUN if entry.unavailable else Verdict.NOT_RUN
