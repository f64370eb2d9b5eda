"""What sentences take from results: numbers, verdicts and lists of claims, as text with its sources.

Three marks stand in the Markdown of a chapter:

* ``{num}`temporal_share:spearman.temporal_share|.2f` `` — a number; the experiment's name may be left out in
  its own chapter, and :mod:`companion.book.numbers` has the ways to write one;
* ``{verdict}`claim-id = reproduced` `` — the verdict that the sentence was written for. Any other one of
  today is an error, which asks for another sentence;
* a ``{claims}`` block — a table of the chapter's claims (``:kind: falsifier`` for those of that kind, or one
  id a line) with number and verdict.

All are of the result that the chapter leads with, the committed one of the paper profile where there is one;
``experiment@quick:key`` and ``claim-id@quick`` name another. :mod:`companion.book.roles` shows them in the
book; `with_text` puts text in their place in notebooks that leave it. ``python -m companion.book.prose
notebooks/primer/x.md`` shows a chapter's prose as it will read, with whatever is wrong by line.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from attnlib.errors import AttnlibError, BadInput, UnknownName
from companion.book.markup import plain
from companion.book.numbers import NOTHING, NotComputed, value_at, written
from companion.book.project import PROFILES, Project, find_root
from companion.claims import UNDECIDED, Claim, Judgement, Verdict, judge_values, load_claims
from companion.results import registry
from companion.results.result import Result

ROLE = re.compile(r"\{(?P<role>num|verdict)\}`(?P<text>[^`]+)`")
BLOCK = re.compile(
    r"^(?P<fence>```|:::)\{claims\}[ \t]*\n(?P<options>(?::\w+:.*\n)*)(?P<body>(?:.*\n)*?)(?P=fence)[ \t]*$",
    re.MULTILINE,
)
AT = r"(?:@(?P<profile>\w+))?"
NUMBER = re.compile(rf"(?:(?P<experiment>\w+){AT}:)?(?P<key>[^|:@]+)(?:\|(?P<ways>.*))?", re.DOTALL)
PINNED = re.compile(rf"(?P<claim>[a-z0-9-]+){AT}\s*=\s*(?P<verdict>[a-z ]+)")


@dataclass(frozen=True)
class Shown:
    """What stands in the place of a role, and what it rests on; of a verdict its claim and CSS class."""

    text: str
    title: str
    claim: str = ""
    css_class: str = ""


@dataclass
class Book:
    """Results and claims of a checkout, and every file that was asked for, whether it is there or not."""

    root: Path
    files: set[Path] = field(default_factory=set)

    def leading(self, experiment: str, profile: str | None = None) -> Result | None:
        """The result that a chapter leads with, or the one of a profile; None where nothing has been run.

        Raises:
            UnknownName: no such experiment or profile.
        """
        if experiment not in registry.names():
            raise UnknownName("experiment", experiment, registry.names())
        if profile and profile not in PROFILES:
            raise UnknownName("profile", profile, PROFILES)
        for each in [profile] if profile else reversed(PROFILES):
            path = Project(self.root).results(each) / f"{experiment}.json"
            self.files.add(path)
            if path.is_file():
                return _result(path, path.stat().st_mtime_ns)
        return None

    def claims(self) -> dict[str, Claim]:
        """Every claim by id."""
        folder = self.root / "claims"
        files = tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
        self.files.update(files)
        return _claims(folder, tuple(path.stat().st_mtime_ns for path in files))

    def verdict_of(self, claim: Claim, profile: str | None = None) -> tuple[Judgement, str]:
        """Today's judgement of a claim and the profile of the result that it rests on."""
        if claim.judge is None:
            verdict = Verdict.CANNOT_BE_RUN if claim.cannot_be_run else Verdict.NOT_RUN
            return Judgement(verdict, {}, claim.reason), ""
        at = None if profile is None and len(claim.profiles) > 1 else profile or claim.profiles[0]
        result = self.leading(claim.experiment, at)
        if result is None:
            way_out = f"`attnlib run {claim.experiment}` computes it"
            return Judgement(Verdict.NOT_RUN, {}, way_out), at or PROFILES[0]
        return judge_values(claim.judge, result.values, claim.keys), result.profile


@lru_cache(maxsize=64)
def _result(path: Path, changed: int) -> Result:
    return Result.load(path)


@lru_cache(maxsize=2)
def _claims(folder: Path, changed: tuple[int, ...]) -> dict[str, Claim]:
    return {claim.id: claim for claim in load_claims(folder)}


def num(book: Book, text: str, page: str) -> Shown:
    """A number in a sentence of the chapter ``page``; a dash where nothing has been run.

    Raises:
        BadInput: text that is no ``experiment:key|way``, an unknown experiment, key or way.
    """
    found = NUMBER.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{{num}}`{text}`: expected experiment:key|way, such as temporal_share:spearman.input|.2f"
        )
    experiment = found["experiment"] or page.rpartition("/")[2]
    result = book.leading(experiment, found["profile"])
    if result is None:
        return Shown(NOTHING, f"not computed here: attnlib run {experiment}")
    try:
        content = value_at(result, key := found["key"].strip())
    except NotComputed as error:
        return Shown(NOTHING, str(error))
    ways = [way.strip() for way in found["ways"].split("|")] if found["ways"] else []
    counted = f", n = {content['n']}" if isinstance(content, dict) and content.get("n") else ""
    return Shown(written(content, ways), f"{result.profile} profile{counted}; {experiment}: {key}")


def verdict(book: Book, text: str, page: str) -> Shown:
    """The verdict that a sentence was written for.

    Raises:
        BadInput: text that is no ``claim-id = verdict``, an unknown claim, or another verdict of today.
    """
    found = PINNED.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{{verdict}}`{text}`: expected claim-id = verdict, such as longer-is-harder = reproduced"
        )
    claims = book.claims()
    if found["claim"] not in claims:
        raise UnknownName("claim", found["claim"], claims)
    claim, wanted = claims[found["claim"]], " ".join(found["verdict"].split())
    judgement, profile = book.verdict_of(claim, found["profile"])
    numbers = "; ".join(map(str, judgement.evidence.values()))
    today = judgement.verdict
    if claim.judge is not None and not today.judged and not judgement.miswired:
        return Shown(wanted, f"not computed here: {judgement.reason}", claim.id, Verdict.NOT_RUN.css_class)
    if today.value != wanted:
        where = f" at the {profile} profile" if profile else ""
        raise BadInput(
            f"claim {claim.id} is `{today}` today{where} ({numbers or judgement.reason}), and this sentence "
            f"was written for `{wanted}`: mend the sentence, then the verdict that it names"
        )
    return Shown(wanted, f"{claim.says} {profile} profile: {numbers}", claim.id, today.css_class)


ROLES: dict[str, Callable[[Book, str, str], Shown]] = {"num": num, "verdict": verdict}


def claims_table(book: Book, page: str, kind: str | None = None, ids: tuple[str, ...] = ()) -> str:
    """Claims with number and verdict as a Markdown table: the named ones, or those of the page's experiment.

    Args:
        kind: only claims of this kind, say ``falsifier``; all but the numbers of printed tables by default.

    Raises:
        UnknownName: no such claim. BadInput: there are none to list.
    """
    known, experiment = book.claims(), page.rpartition("/")[2]
    for name in ids:
        if name not in known:
            raise UnknownName("claim", name, known)
    own = (claim for claim in known.values() if claim.experiment == experiment and not claim.number)
    listed = [known[name] for name in ids] or [claim for claim in own if kind in (None, claim.kind)]
    if not listed:
        of_kind = f" of kind {kind!r}" if kind else ""
        raise BadInput(f"{{claims}}: no claims{of_kind} about {experiment} in claims/*.yaml")
    lines = ["| statement | number | verdict |", "|---|---|---|"]
    for claim in listed:
        judgement, profile = book.verdict_of(claim)
        numbers = "<br>".join(plain(str(estimate)) for estimate in judgement.evidence.values()) or NOTHING
        at = f"@{profile}" if profile and len(claim.profiles) > 1 else ""
        undecided = " undecided" * (judgement.reason == UNDECIDED)
        badge = f"{{verdict}}`{claim.id}{at} = {judgement.verdict}`{undecided}"
        lines.append(f"| {plain(claim.says)} | {numbers} | {badge} |")
    return "\n".join(lines) + "\n"


def read_block(options: str, body: str) -> tuple[str | None, tuple[str, ...]]:
    """Kind and ids of a ``{claims}`` block."""
    given = dict(re.findall(r"^:(\w+):\s*(.*?)\s*$", options, re.MULTILINE))
    if unknown := set(given) - {"kind"}:
        raise UnknownName("option of {claims}", unknown.pop(), ("kind",))
    return given.get("kind"), tuple(body.split())


def with_text(markdown: str, book: Book, page: str) -> str:
    """Markdown that any notebook reader shows: numbers and verdicts as text, the table of claims as a table.

    What is wrong stays as it is written: the build of the book reports it.
    """

    def table(match: re.Match) -> str:
        return claims_table(book, page, *read_block(match["options"], match["body"]))

    def text(match: re.Match) -> str:
        shown = ROLES[match["role"]](book, match["text"], page).text
        return f"*({shown})*" if match["role"] == "verdict" else shown

    def unless_wrong(replaced: Callable[[re.Match], str], match: re.Match) -> str:
        try:
            return replaced(match)
        except BadInput:
            return match[0]

    return ROLE.sub(partial(unless_wrong, text), BLOCK.sub(partial(unless_wrong, table), markdown))


def leave_the_book(notebook, root: Path, page: str) -> None:
    """Put text for every mark in the Markdown cells of a notebook (in place)."""
    book = Book(root)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_text(cell.source, book, page)


def source_of(root: Path, page: str) -> Path:
    """The Markdown of a page: a chapter's notebook, or prose of ``book/``."""
    chapter = root / "notebooks" / f"{page}.md"
    return chapter if chapter.is_file() else root / "book" / f"{page}.md"


def place_of(mark: str, root: Path, page: str) -> str:
    """``notebooks/primer/x.md:123``: the source and the line of a mark, however it is broken over lines."""
    source = source_of(root, page)
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    found = re.search(r"\s+".join(map(re.escape, mark.split())), text)
    line = text.count("\n", 0, found.start()) + 1 if found else 1
    return f"{source.relative_to(root).as_posix()}:{line}"


def problems(root: Path, page: str) -> Iterator[tuple[int, str]]:
    """Line and message of everything that is wrong with the marks of a page."""
    book, text = Book(root), source_of(root, page).read_text(encoding="utf-8")
    for match in (*ROLE.finditer(text), *BLOCK.finditer(text)):
        try:
            if "role" in match.re.groupindex:
                ROLES[match["role"]](book, match["text"], page)
            else:
                claims_table(book, page, *read_block(match["options"], match["body"]))
        except AttnlibError as error:
            yield text.count("\n", 0, match.start()) + 1, str(error)


def main(arguments: list[str]) -> int:
    """Print the prose of chapters as it will read; returns 1 where something is wrong."""
    import jupytext

    root, wrong = find_root(), 0
    for path in map(Path, arguments):
        page = path.resolve().relative_to(root / "notebooks").with_suffix("").as_posix()
        notebook = jupytext.read(path)
        leave_the_book(notebook, root, page)
        print(*(cell.source for cell in notebook.cells if cell.cell_type == "markdown"), sep="\n\n")
        for line, message in sorted(problems(root, page)):
            print(f"{path}:{line}: {message}", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
