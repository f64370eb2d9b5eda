"""Published tables as Markdown: each printed number, below it ours, and the verdict on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from companion.book.markup import badge, plain, span
from companion.book.project import PROFILES
from companion.claims.estimates import Estimate
from companion.claims.published import Entry, PublishedTables
from companion.claims.verdicts import Tolerance, Verdict
from companion.claims.verify import ClaimVerdict

SYMBOLS = {"alpha": "α", "beta": "β", "delta": "Δ"}
SIGNS = {Verdict.REPRODUCED: "✓", Verdict.PARTLY: "(✓)", Verdict.NOT_REPRODUCED: "✗"}
MARKS = {"uf": "<sup>uf</sup>", "px": "<sup>px</sup>", "frozen": "<sup>fr</sup>"}

# By printed number and reading (empty for the first) the verdict on it.
Answers = Mapping[tuple[Entry, str], ClaimVerdict]


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


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
    quantities = list(dict.fromkeys(entry.quantity for entry in entries))
    readings = list(dict.fromkeys(row.claim.reading for row in rows if row.claim.reading))
    shown = [row for entry in entries if (row := found.get((entry, "")))]
    lines = []
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = {entry.quantity: entry for entry in entries if entry.dataset == dataset}
        printed = [_both(own[quantity], found) if quantity in own else "" for quantity in quantities]
        lines.append([plain(dataset), *printed, _status_of_a_row(list(own.values()), found)])
        for reading in readings:
            ours = {name: row for name, entry in own.items() if (row := found.get((entry, reading)))}
            if ours:
                shown += ours.values()
                cells = [_ours(ours[quantity]) if quantity in ours else "" for quantity in quantities]
                verdicts = dict.fromkeys(row.verdict for row in ours.values())
                lines.append([f"*{plain(reading)}*", *cells, "<br>".join(map(badge, verdicts))])
    table = markdown_table(["", *map(symbol, quantities), "here"], lines)
    note = "".join(f"\n{one}\n" for one in _notes(entries, shown))
    title = f"Table {name}: {tables.titles.get(name, 'as printed')} ({len(entries)} numbers)"
    summary = re.sub(r"[<>&]", lambda mark: f"&#{ord(mark[0])};", title)
    return f"<details>\n<summary>{summary}</summary>\n\n{table}\n{note}\n</details>\n"


def _notes(entries: Sequence[Entry], shown: Sequence[ClaimVerdict]) -> Iterator[str]:
    if any("starred" in entry.note for entry in entries) or any(row.starred for row in shown):
        yield "Starred (\\*): no checkpoint agrees more, so the performance at the end stands there."
    if shown:
        signs = ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
        yield (
            "Below it stands ours, with its 95 % interval where it has one, in the colour and with the sign "
            f"of its verdict: {signs}. Of what is judged by no single number the sign stands alone."
        )
    constructed: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.by_construction:
            constructed.setdefault((entry.quantity, entry.by_construction), []).append(entry.dataset)
    for (quantity, why), of in constructed.items():
        every = len(of) == sum(entry.quantity == quantity for entry in entries)
        scope = "" if every else f" of {plain(', '.join(of))}"
        yield f"{badge(Verdict.BY_CONSTRUCTION)} {symbol(quantity)}{scope}: {plain(why)}."


def _both(entry: Entry, found: Answers) -> str:
    printed = plain(entry.value) + ("\\*" if "starred" in entry.note else "")
    return f"{printed}<br>{_ours(row)}" if (row := found.get((entry, ""))) else printed


def _ours(row: ClaimVerdict) -> str:
    """Our number in the colour of its verdict and with its sign, with an asterisk where it is ξ*.

    The sign alone where ours is no such number, but says how far what is printed is possible.
    """
    told = []
    if isinstance(row.claim.judge, Tolerance):
        for estimate in row.judgement.evidence.values():
            if row.claim.judge.allowed:
                told.append(_number(estimate, "\\*" if row.starred else ""))
            else:
                told.append(f"{estimate.value:,}".removesuffix(".0"))  # counts and medians
    return span(row.verdict.css_class, " ".join([*told, SIGNS[row.verdict]]))


def _number(estimate: Estimate, star: str) -> str:
    ends = [f"{end:.0f}".replace("-0", "0") for end in (estimate.low, estimate.high) if estimate.has_interval]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{estimate.value:.1f}{star}{interval}".replace("-", "−")


def _status_of_a_row(entries: Sequence[Entry], found: Answers) -> str:
    """Verdicts, with what stands beside them; what is by construction is told below the table."""
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
