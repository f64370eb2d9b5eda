"""What sentences take from results: numbers, verdicts and lists of claims, as text with its sources.

These marks stand in the Markdown of a page:

* ``{num}`temporal_share:spearman.temporal_share|.2f` `` — a number; the experiment's name may be left out in
  its own chapter, and :mod:`companion.book.numbers` has the ways to write one;
* ``{verdict}`claim-id = reproduced` `` — the verdict that the sentence was written for. Any other one of
  today is an error, which asks for another sentence. A reader sees a source badge where the claim is a
  paper's or a primer's, and the number behind it where it is the book's own;
* ``{evidence}`claim-id = reproduced` `` — the same, and a reader sees the number, whosever the claim is;
* ``{checked}`claim-id = reproduced` `` — the same, and a reader sees nothing: the sentence has its number;
* a ``{claims}`` block — a table of the chapter's claims (``:kind: falsifier`` for those of that kind, or one
  id a line) with number and outcome.

All are of the result that the chapter leads with, the committed one of the paper profile where there is one;
``experiment@quick:key`` and ``claim-id@quick`` name another. Pages of the book get HTML in their place: a
number has its source as its title, a badge opens a note with the claim and its numbers. Notebooks that leave
the book get text. ``python -m companion.book.prose notebooks/primer/x.md`` shows a chapter as it will read,
with whatever is wrong by line.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from pathlib import Path

from attnlib.errors import AttnlibError, BadInput, UnknownName, check_known
from companion.book.markup import claim_note, claim_tag, outcome_tag, plain, template
from companion.book.numbers import NOTHING, value_at, written
from companion.book.project import Project, find, find_root
from companion.claims.cells import Schemas, evidence_of, numbers_in_words
from companion.claims.estimates import CannotBeRun, NotRun
from companion.claims.model import Claim, load_claims
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.verify import judge
from companion.claims.wording import SIGNS, outcome_of, source_label
from companion.paths import PROFILES
from companion.results import registry
from companion.results.result import Result
from companion.runs.command import errors_in_a_line

MARK = re.compile(
    r"(?P<space>\s*)\{(?P<role>num|verdict|evidence|checked|outcome)\}`(?P<text>[^`]+)`"
    r"|^(?P<fence>```|:::)\{claims\}[ \t]*\n(?P<options>(?::\w+:.*\n)*)(?P<body>(?:.*\n)*?)(?P=fence)[ \t]*$",
    re.MULTILINE,
)
TABLE = Path(__file__).with_name("claims_table.md.jinja")
SAYS_SOMETHING = (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.BY_CONSTRUCTION)
WORTH_A_FOLD = 3  # statements that are not decided
AT = r"(?:@(?P<profile>\w+))?"
NUMBER = re.compile(rf"(?:(?P<experiment>\w+){AT}:)?(?P<key>[^|:@]+)(?:\|(?P<ways>.*))?", re.DOTALL)
PINNED = re.compile(rf"(?P<claim>[a-z0-9-]+){AT}\s*=\s*(?P<verdict>[a-z ]+)")


@dataclass(frozen=True)
class Shown:
    """A number in a sentence, and what it rests on."""

    text: str
    title: str


@dataclass(frozen=True)
class Judged:
    """A claim that a sentence was written for, with its judgement of today, and the role that shows it."""

    claim: Claim
    judgement: Judgement
    profile: str
    role: str = "verdict"
    schemas: Schemas = field(default_factory=dict, repr=False)  # of the result behind it

    @property
    def badge(self) -> str:
        """The text of a source badge, such as ``paper ✓``; empty where the reader sees something else."""
        source = source_label(self.claim)
        if self.role not in ("verdict", "outcome") or not source:
            return ""
        return f"{source} {SIGNS[self.judgement.verdict]}"

    @property
    def text(self) -> str:
        """What any reader of notebooks sees."""
        if self.role == "checked":
            return ""
        if self.badge:
            return self.badge
        if self.role == "outcome":
            return outcome_of(self.claim, self.judgement)
        return evidence_of(self.claim, self.judgement, self.schemas)


class Book:
    """Results and claims of a checkout, each read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.load = cache(Result.load)  # a result says only once whether it is current, which takes a while

    @cached_property
    def claims(self) -> dict[str, Claim]:
        return {claim.id: claim for claim in load_claims(self.root / "claims")}

    def leading(self, experiment: str, profile: str | None = None) -> Result | None:
        """The result that a chapter leads with, or the one of a profile; None where nothing has been run.

        Raises UnknownName: no such experiment or profile.
        """
        check_known("experiment", experiment, registry.names())
        if profile and profile not in PROFILES:
            raise UnknownName("profile", profile, PROFILES)
        profiles = [profile] if profile else reversed(PROFILES)
        paths = (Project(self.root).results(profile) / f"{experiment}.json" for profile in profiles)
        return next((self.load(path) for path in paths if path.is_file()), None)

    def claim(self, name: str) -> Claim:
        check_known("claim", name, self.claims)
        return self.claims[name]

    def verdict_of(self, claim: Claim, profile: str | None = None) -> tuple[Judgement, str]:
        """Today's judgement of a claim and the profile of the result that it rests on."""
        if claim.judge is None:
            return claim.judged_by({}), ""
        at = None if profile is None and len(claim.profiles) > 1 else profile or claim.profiles[0]
        result = self.leading(claim.experiment, at)
        at = result.profile if result else at or PROFILES[0]
        return judge(claim, at, self.leading).judgement, at

    def schemas(self, claim: Claim, profile: str) -> Schemas:
        """Return what the tables are that the numbers of a claim at a profile come from."""
        result = self.leading(claim.experiment, profile) if claim.judge else None
        return result.schemas if result else {}


def num(book: Book, text: str, page: str) -> Shown:
    """A number in a sentence of the chapter ``page``; a dash where nothing has been run.

    Raises BadInput: text that is no ``experiment:key|way``, an unknown experiment, key or way.
    """
    parts = NUMBER.fullmatch(text.strip())
    if parts is None:
        expected = "experiment:key|way, such as temporal_share:spearman.input|.2f"
        raise BadInput(f"{{num}}`{text}`: expected {expected}")
    experiment = parts["experiment"] or page.rpartition("/")[2]
    result = book.leading(experiment, parts["profile"])
    if result is None:
        return Shown(NOTHING, f"not computed here: attnlib run {experiment}")
    try:
        content = value_at(result, key := parts["key"].strip())
    except (CannotBeRun, NotRun) as error:
        return Shown(NOTHING, f"{experiment}: {key}: {error}")
    ways = [way.strip() for way in parts["ways"].split("|")] if parts["ways"] else []
    counted = f", n = {content['n']}" if isinstance(content, dict) and content.get("n") else ""
    return Shown(written(content, ways), f"{result.profile} profile{counted}; {experiment}: {key}")


def verdict(book: Book, text: str, page: str, role: str = "verdict") -> Judged:
    """Return the claim that a sentence names, with its judgement of today.

    Raises BadInput: text that is no ``claim-id = verdict``, an unknown claim, or another verdict of today.
    """
    match = PINNED.fullmatch(text.strip())
    if match is None:
        expected = "claim-id = verdict, such as longer-is-harder = reproduced"
        raise BadInput(f"{{{role}}}`{text}`: expected {expected}")
    claim, wanted = book.claim(match["claim"]), " ".join(match["verdict"].split())
    judgement, profile = book.verdict_of(claim, match["profile"])
    today = judgement.verdict
    not_computed_here = claim.judge is not None and not today.judged and not judgement.miswired
    if today.value != wanted and not not_computed_here:
        numbers = "; ".join(map(str, judgement.evidence.values()))
        where = f" at the {profile} profile" if profile else ""
        raise BadInput(
            f"claim {claim.id} is `{today}` today{where} ({numbers or judgement.reason}), and this sentence "
            f"was written for `{wanted}`: mend the sentence, then the verdict that it names"
        )
    return Judged(claim, judgement, profile, role, book.schemas(claim, profile))


def claims_table(book: Book, page: str, options: str, body: str) -> str:
    """Claims with number and verdict as a Markdown table: the named ones, or those of the page's experiment.

    Those that are not decided are in a fold below, if they are several and others are decided.

    Raises UnknownName: no such claim or option. BadInput: there are none to list.
    """
    given = dict(re.findall(r"^:(\w+):\s*(.*?)\s*$", options, re.MULTILINE))
    if unknown := set(given) - {"kind"}:
        raise UnknownName("option of {claims}", unknown.pop(), ("kind",))
    kind, experiment = given.get("kind"), page.rpartition("/")[2]
    of_experiment = (
        claim for claim in book.claims.values() if claim.experiment == experiment and not claim.number
    )
    listed = [book.claim(name) for name in body.split()]
    listed = listed or [claim for claim in of_experiment if kind in (None, claim.kind)]
    if not listed:
        of_kind = f" of kind {kind!r}" if kind else ""
        raise BadInput(f"{{claims}}: no claims{of_kind} about {experiment} in claims/*.yaml")
    rows = []
    for claim in listed:
        judgement, at = book.verdict_of(claim)
        cell = numbers_in_cell(claim, judgement, book.schemas(claim, at))
        rows.append((claim, judgement, at, cell))
    shown = [row for row in rows if row[1].verdict in SAYS_SOMETHING]
    folded = [row for row in rows if row[1].verdict not in SAYS_SOMETHING]
    if not shown or len(folded) < WORTH_A_FOLD:
        shown, folded = rows, []
    return template(TABLE).render(shown=shown, folded=folded, nothing=NOTHING)


def numbers_in_cell(claim: Claim, judgement: Judgement, schemas: Schemas | None = None) -> str:
    """Return the numbers of a claim as Markdown, with what the tables of their result say of them."""
    return "<br>".join(map(plain, numbers_in_words(claim, judgement, schemas or {})))


def as_text(shown: Shown | Judged) -> str:
    """Return what any notebook reader shows."""
    if isinstance(shown, Shown):
        return shown.text
    return f"*({plain(shown.text)})*" if shown.text else ""


class PageHtml:
    """The HTML of one page's numbers and badges, and the notes that its badges open.

    Args:
        page: Its address.
        borderline: Claims whose verdict at the paper profile would not survive a correction for many tests.

    Attributes:
        notes: The note of each claim that the page shows, as HTML by its id on the page.

    Example:
        >>> PageHtml("attend/readout")(Shown("0.25", "paper profile, n = 5"))
        '<span class="num" title="paper profile, n = 5">0.25</span>'
    """

    def __init__(self, page: str, borderline: frozenset[str] = frozenset()) -> None:
        self.scorecard = f"{'../' * page.count('/')}scorecard.html"
        self.borderline = borderline
        self.notes: dict[str, str] = {}

    def __call__(self, shown: Shown | Judged) -> str:
        if isinstance(shown, Shown):
            title = escape(shown.title).replace("|", "&#124;")  # which would end the cell of a table
            return f'<span class="num" title="{title}">{escape(shown.text)}</span>'
        if shown.role == "checked":
            return ""
        if shown.role == "outcome":
            words = outcome_of(shown.claim, shown.judgement)
            return outcome_tag(shown.claim, shown.judgement.verdict, words)
        note = f"note-{shown.claim.id}"
        if shown.profile == "quick":
            note += "-quick"
        self.notes[note] = claim_note(
            note, shown.claim, shown.judgement, shown.profile, self.scorecard,
            is_borderline=shown.profile == PROFILES[-1] and shown.claim.id in self.borderline,
        )  # fmt: skip
        return claim_tag(note, shown.text, shown.claim, shown.judgement.verdict, is_badge=bool(shown.badge))

    def notes_html(self) -> str:
        """Return the notes as one block of HTML, which has no blank line; empty where there is none."""
        if not self.notes:
            return ""
        return "\n".join(["", "", '<div class="claim-notes">', *self.notes.values(), "</div>", ""])


def filled(
    text: str, book: Book, page: str, form: Callable[[Shown | Judged], str] = as_text
) -> tuple[str, list[tuple[int, str]]]:
    """Markdown with every mark filled; line and message of what is wrong, which stays as it is written."""
    wrong: list[tuple[int, str]] = []

    def replaced(mark: re.Match) -> str:
        try:
            if mark["role"] == "num":
                return mark["space"] + form(num(book, mark["text"], page))
            if mark["role"]:
                shown = form(verdict(book, mark["text"], page, mark["role"]))
                return mark["space"] + shown if shown else ""
            table = claims_table(book, page, mark["options"], mark["body"])
            return f'<div class="claims">\n\n{filled(table, book, page, form)[0]}\n</div>'
        except AttnlibError as error:
            start = mark.start("role") if mark["role"] else mark.start()
            wrong.append((text.count("\n", 0, start) + 1, str(error)))
            return mark[0]

    return MARK.sub(replaced, text), wrong


@errors_in_a_line
def main(arguments: list[str]) -> int:
    """Print chapters as they will read; returns 1 where something is wrong."""
    book, mistakes = Book(find_root()), []
    for figure in (find(Project(book.root), name) for name in arguments):
        text, wrong = filled(figure.path.read_text(encoding="utf-8"), book, figure.id)
        print(text)
        if book.leading(figure.experiment) is None:
            mistakes.append(f"nothing was checked, as there is no result yet: attnlib run {figure.id}")
        mistakes += (f"{figure.path}:{line}: {message}" for line, message in wrong)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return int(bool(mistakes))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
