"""A table as the paper prints it, with ours below each number that was judged, and how each row fares."""

import re
from collections.abc import Sequence
from pathlib import Path

from companion.book.markup import badge, plain, span, template
from companion.book.project import find_root
from companion.claims.model import Claim, Paper, load_papers
from companion.claims.published import Entry, PublishedTables
from companion.claims.scorecard import SIGNS, Answers, answers, status
from companion.claims.verdicts import Tolerance, Verdict
from companion.claims.verify import ClaimVerdict, verify

SYMBOLS = {"alpha": "α", "beta": "β", "delta": "Δ"}
MARKS = {"uf": "<sup>uf</sup>", "px": "<sup>px</sup>", "frozen": "<sup>fr</sup>"}


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
    return template(Path(__file__).with_name("published_table.md.jinja"), symbol=symbol).render(
        name=name,
        title=tables.titles.get(name, "as printed"),
        entries=entries,
        parts=_parts(list(dict.fromkeys(entry.quantity for entry in entries))),
        lines=lines,
        shown=shown,
        starred=any("starred" in entry.note for entry in entries) or any(row.starred for row in shown),
        constructed=constructed,
        by_construction=Verdict.BY_CONSTRUCTION,
        signs=SIGNS,
    )


def _parts(quantities: list[str]) -> list[list[str]]:
    """The columns of the tables that a page has room for: of many, those of ξ go below."""
    below = [name for name in quantities if name.startswith("xi")] if len(quantities) > 8 else []
    return [[name for name in quantities if name not in below], *([below] if below else [])]


def _both(entry: Entry, found: Answers) -> str:
    published = plain(entry.value) + ("\\*" if "starred" in entry.note else "")
    return f"{published}<br>{_ours(row)}" if (row := found.get((entry, ""))) else published


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


def paper() -> Paper:
    """The second paper: its claims and tables."""
    (found,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    return found


def numbers(*tables: str) -> list[Claim]:
    """The claims about printed numbers, of these tables or of all."""
    claims = [claim for claim in paper().claims if claim.number]
    return [claim for claim in claims if not tables or claim.published.reference.table in tables]


def published_numbers() -> list[ClaimVerdict]:
    return [row for row in verify(find_root(), experiment="agreement") if row.claim.number]


def published_agreement() -> dict[tuple[str, str], float]:
    """What Table 5 has of agreement and of chance, by our name of the data set and column."""
    found = {}
    for claim in numbers("5"):
        data, *_, column, number = claim.keys[0].split(".")
        if number in ("agreement_optimistic", "chance"):
            found[data, "chance" if number == "chance" else column] = claim.published.value
    return found
