"""What each paper says beside what our runs say, as MyST Markdown: the scorecard, and published tables."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from companion.book.markup import badge, plain, span, template
from companion.book.project import PROFILES, Project, discover
from companion.claims.estimates import figure
from companion.claims.model import Claim, Paper, load_papers
from companion.claims.published import Entry, PublishedTables
from companion.claims.verdicts import Order, Tolerance, Verdict
from companion.claims.verify import TALLIES, ClaimVerdict, chance, tally, verify

HERE = Path(__file__).parent
SYMBOLS = {"alpha": "α", "beta": "β", "delta": "Δ"}
SIGNS = {
    Verdict.REPRODUCED: "✓",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.CANNOT_BE_JUDGED: "–",
}
MARKS = {"uf": "<sup>uf</sup>", "px": "<sup>px</sup>", "frozen": "<sup>fr</sup>"}

# By printed number and reading (empty for the first) the verdict on it.
Answers = Mapping[tuple[Entry, str], ClaimVerdict]


def scorecard_markdown(root: Path) -> str:
    """The page for a checkout; BadInput where a claims file or ``expected.json`` cannot be used."""
    papers, rows, figures = load_papers(root / "claims"), verify(root), discover(Project(root)).values()
    filters = {"lettered": lettered, "numbers": _numbers, "presupposed": _presupposed}
    return template(HERE / "scorecard.md.jinja", **filters).render(
        papers=papers,
        pages={each.experiment: f"[{plain(each.title)}](/{each.id})" for each in figures},
        by_place={(row.claim.id, row.profile): row for row in rows},
        summary=list(_summary(papers, rows)),
        stale=sum(row.stale for row in rows),
        chance=chance(rows),
        published_table=published_table,
        rows_of=lambda paper: [row for row in rows if row.claim.paper == paper.name],
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
            told = f"{len(judged)} of its {len(paper.tables.entries)} printed numbers are judged"
            counts = Counter(row.verdict for row in distinct.values())
            yield f"{told}, {len(distinct)} of them distinct, which count here", counts
        for name in paper.tables.names:
            counts = Counter(status(entry, found) for entry in paper.tables.table(name))
            yield f"numbers of Table {name}, {plain(paper.tables.titles[name])}", counts


def _numbers(row: ClaimVerdict) -> list[str]:
    """Each number of a verdict, with its own verdict's sign where they differ."""
    evidence, parts = row.judgement.evidence, row.judgement.parts
    signs = {label: f" {SIGNS[own]}" for label, own in parts.items()} if len({*parts.values()}) > 1 else {}
    return [plain(str(own)) + signs.get(label, "") for label, own in evidence.items()]


def _presupposed(row: ClaimVerdict) -> str:
    """What a verdict rests on; of many numbers the smallest."""
    found = {key: own.value for key, own in row.judgement.presupposed.items()}
    key = min(found, key=found.get)
    told = f"`{key}` {figure(found[key])}"
    return told if len(found) == 1 else f"{len(found)} numbers, the smallest {told}"


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


def published_table(tables: PublishedTables, name: str, rows: Sequence[ClaimVerdict]) -> str:
    """A published table, folded, with ours below each number that was judged, and how each row fares.

    Where a printed data set may mean several of ours, the others follow in rows of their own.
    """
    entries, found = tables.table(name), answers(rows)
    shown = [row for (entry, _), row in found.items() if entry.table == name]
    lines, constructed = [], {}
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = [entry for entry in entries if entry.dataset == dataset]
        lines.append(
            (plain(dataset), {entry.quantity: _both(entry, found) for entry in own}, _fares(own, found))
        )
        for reading in dict.fromkeys(row.claim.reading for row in rows if row.claim.reading):
            ours = {entry.quantity: found[entry, reading] for entry in own if (entry, reading) in found}
            if ours:
                verdicts = dict.fromkeys(row.verdict for row in ours.values())
                cells = {quantity: _ours(row) for quantity, row in ours.items()}
                lines.append((f"*{plain(reading)}*", cells, "<br>".join(map(badge, verdicts))))
        for entry in own:
            if entry.by_construction:
                constructed.setdefault((entry.quantity, entry.by_construction), []).append(dataset)
    return template(HERE / "published_table.md.jinja", symbol=symbol).render(
        name=name,
        title=tables.titles.get(name, "as printed"),
        entries=entries,
        quantities=list(dict.fromkeys(entry.quantity for entry in entries)),
        lines=lines,
        shown=shown,
        starred=any("starred" in entry.note for entry in entries) or any(row.starred for row in shown),
        constructed=constructed,
        by_construction=Verdict.BY_CONSTRUCTION,
        signs=SIGNS,
    )


def _both(entry: Entry, found: Answers) -> str:
    printed = plain(entry.value) + ("\\*" if "starred" in entry.note else "")
    return f"{printed}<br>{_ours(row)}" if (row := found.get((entry, ""))) else printed


def _ours(row: ClaimVerdict) -> str:
    """Our number in the colour of its verdict and with its sign, with an asterisk where it is ξ*.

    The sign alone where ours is no such number, but says how far what is printed is possible.
    """
    told = []
    for estimate in row.judgement.evidence.values() if isinstance(row.claim.judge, Tolerance) else ():
        if not row.claim.judge.allowed:  # counts and medians
            told.append(f"{estimate.value:,}".removesuffix(".0"))
            continue
        star = "\\*" if row.starred else ""
        interval = f" [{estimate.low:z.0f}, {estimate.high:z.0f}]" if estimate.has_interval else ""
        told.append(f"{estimate.value:.1f}{star}{interval}".replace("-", "−"))
    return span(row.verdict.css_class, " ".join([*told, SIGNS[row.verdict]]))


def _fares(entries: Sequence[Entry], found: Answers) -> str:
    """Verdicts of a row, with what stands beside them; what is by construction is told below the table."""
    kinds: dict[tuple[Verdict, str], list[str]] = {}
    for entry in entries:
        verdict = status(entry, found)
        why = {Verdict.CANNOT_BE_RUN: entry.unavailable, Verdict.NOT_RUN: entry.not_run}.get(verdict, "")
        if verdict is not Verdict.BY_CONSTRUCTION:
            kinds.setdefault((verdict, why), []).append(symbol(entry.quantity))
    told = []
    for (verdict, why), about in kinds.items():
        few = 2 * len(about) <= len(entries)  # of most of a row it need not be said
        scope = f"{', '.join(about)}: " if why and few else ""
        told.append(f"{scope}{badge(verdict)} {plain(why)}".rstrip())
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
