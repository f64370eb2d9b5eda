"""Published tables as Markdown: each printed number, below it ours, and the verdict on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attnlib.companion.claims import PROFILES
from attnlib.companion.estimates import Estimate
from attnlib.companion.markup import badge, plain, span
from attnlib.companion.published import Entry, PublishedTables
from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Tolerance, Verdict

SYMBOLS = {"alpha": "α", "beta": "β", "delta": "Δ"}
SIGNS = {Verdict.REPRODUCED: "✓", Verdict.PARTLY: "(✓)", Verdict.NOT_REPRODUCED: "✗"}
MARKS = {"uf": "<sup>uf</sup>", "px": "<sup>px</sup>", "frozen": "<sup>fr</sup>"}


def answer_to(entry: Entry, rows: Sequence[Row], reading: str = "") -> Row | None:
    """The verdict on one printed number alone, at the largest profile judged; None where there is none.

    Args:
        reading: which set of ours, where the printed name may mean several; by default the first.
    """
    for profile in reversed(PROFILES):
        for row in rows:
            published = row.claim.published
            exact = published is not None and published.entries == 1 and published.reference is not None
            wanted = row.profile == profile and row.claim.reading == reading
            if exact and wanted and row.verdict.judged and published.reference.covers(entry):
                return row
    return None


def status(entry: Entry, rows: Sequence[Row]) -> Verdict:
    """How one printed number fares, in the first reading of its data set."""
    if row := answer_to(entry, rows):
        return row.verdict
    if entry.by_construction:
        return Verdict.BY_CONSTRUCTION
    return Verdict.CANNOT_BE_RUN if entry.unavailable else Verdict.NOT_RUN


def reason(entry: Entry, verdict: Verdict) -> str:
    """What stands beside a verdict that is not about a number of ours."""
    return {Verdict.CANNOT_BE_RUN: entry.unavailable, Verdict.NOT_RUN: entry.not_run}.get(verdict, "")


def published_table(tables: PublishedTables, name: str, rows: Sequence[Row]) -> str:
    """A published table, folded, with ours below each number that was judged, and how each row fares.

    Where a printed data set may mean several of ours, the others follow in rows of their own.
    """
    entries = tables.table(name)
    quantities = list(dict.fromkeys(entry.quantity for entry in entries))
    heads = ["", *(symbol(quantity) for quantity in quantities), "here"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    answers = [row for entry in entries if (row := answer_to(entry, rows))]
    readings = list(dict.fromkeys(row.claim.reading for row in rows if row.claim.reading))
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        cells = {entry.quantity: entry for entry in entries if entry.dataset == dataset}
        printed = [_both(cells[quantity], rows) if quantity in cells else "" for quantity in quantities]
        here = _status_of_a_row(list(cells.values()), rows)
        lines.append(f"| {' | '.join([plain(dataset), *printed, here])} |")
        for reading in readings:
            ours = {quantity: answer_to(entry, rows, reading) for quantity, entry in cells.items()}
            if any(ours.values()):
                answers += filter(None, ours.values())
                told = [_ours(row) if (row := ours.get(quantity)) else "" for quantity in quantities]
                verdicts = dict.fromkeys(row.verdict for row in ours.values() if row)
                here = "<br>".join(map(badge, verdicts))
                lines.append(f"| {' | '.join([f'*{plain(reading)}*', *told, here])} |")
    note = "".join(f"\n{one}\n" for one in _notes(entries, answers))
    title = f"Table {name}: {tables.titles.get(name, 'as printed')} ({len(entries)} numbers)"
    summary = re.sub(r"[<>&]", lambda mark: f"&#{ord(mark[0])};", title)
    table = "\n".join(lines)
    return f"<details>\n<summary>{summary}</summary>\n\n{table}\n{note}\n</details>\n"


def _notes(entries: Sequence[Entry], answers: Sequence[Row]) -> Iterator[str]:
    if any("starred" in entry.note for entry in entries) or any(row.starred for row in answers):
        yield "Starred (\\*): no checkpoint agrees more, so the performance at the end stands there."
    if answers:
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


def _both(entry: Entry, rows: Sequence[Row]) -> str:
    """The printed number, and below it ours."""
    row = answer_to(entry, rows)
    return _printed(entry) if row is None else f"{_printed(entry)}<br>{_ours(row)}"


def _ours(row: Row) -> str:
    """Our number in the colour of its verdict and with its sign, with an asterisk where it is ξ*.

    The sign alone where ours is no such number, but says how far what is printed is possible.
    """
    judge, told = row.claim.judge, []
    if isinstance(judge, Tolerance):
        for estimate in row.judgement.evidence.values():
            if judge.allowed:
                told.append(_number(estimate, "\\*" if row.starred else ""))
            else:
                told.append(f"{estimate.value:,}".removesuffix(".0"))  # counts and medians
    return span(row.verdict.css_class, " ".join([*told, SIGNS[row.verdict]]))


def _number(estimate: Estimate, star: str) -> str:
    ends = [f"{end:.0f}".replace("-0", "0") for end in (estimate.low, estimate.high) if estimate.has_interval]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{estimate.value:.1f}{star}{interval}".replace("-", "−")


def _printed(entry: Entry) -> str:
    return plain(entry.value) + ("\\*" if "starred" in entry.note else "")


def _status_of_a_row(entries: Sequence[Entry], rows: Sequence[Row]) -> str:
    """Verdicts, with what stands beside them; what is by construction is told below the table."""
    told = []
    kinds: dict[tuple[Verdict, str], list[str]] = {}
    for entry in entries:
        if (verdict := status(entry, rows)) is not Verdict.BY_CONSTRUCTION:
            kinds.setdefault((verdict, reason(entry, verdict)), []).append(symbol(entry.quantity))
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
