"""Verdicts of every claim at every profile, held against the expected ones of ``claims/expected.json``.

That file holds ``{claim id: {profile: verdict}}`` for verdicts that rest on numbers, and only
``attnlib verify --accept`` writes it. *Not run* and *cannot be run* are neither recorded nor ever counted as
a change, so that a machine without the data has the same file. A verdict that rests on numbers and has no
entry does count: whoever adds a claim accepts its verdict.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, partial
from json import dumps, loads
from pathlib import Path

from attnlib.errors import AttnlibError, BadInput, CorruptFile, UnknownName
from attnlib.files import write_json_atomic
from companion.claims.estimates import MissingKey, look_up
from companion.claims.model import ABOUT, ORIGINS, Claim, load_claims, load_papers
from companion.claims.verdicts import Judgement, Verdict, not_there
from companion.claims.wording import PARTS, judged_in_words, source_of, whose, why_in_words
from companion.paths import PROFILES, RESULTS
from companion.results.committed import altered
from companion.results.result import Result

NEAREST = 5  # names that are offered in the place of an unknown one
SHOWN = 8  # changes or problems, so that all stays on one screen
PUBLISHED, OTHERS = "published", "others"  # numbers of published tables; what no paper says
LEVEL = 0.05  # of the verdicts that intervals decide, as many are expected to be wrong
TALLIES = (*ABOUT, PUBLISHED, OTHERS)


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on one claim at one profile, beside what was expected of it."""

    claim: Claim
    profile: str
    judgement: Judgement
    expected: Verdict | None = None
    starred: bool = False  #: for most runs ours is ξ*, which the tables print with an asterisk
    #: what it was judged by; a text says why the file that is there cannot be read
    result: Result | str | None = field(default=None, repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def stale(self) -> bool:
        """Its result rests on other settings, runs or versions than it would today."""
        return isinstance(self.result, Result) and not self.result.current

    @property
    def changed(self) -> bool:
        """It differs from the expected verdict, both resting on numbers; or nothing was expected yet."""
        if self.expected is None:
            return self.unexpected
        return self.expected.judged and self.verdict.judged and self.verdict is not self.expected

    @property
    def unexpected(self) -> bool:
        """A verdict from a current result that nobody has accepted."""
        return self.expected is None and self.verdict.judged and not self.stale

    @property
    def lost(self) -> bool:
        """A verdict was expected, and its result, which is current, decides none."""
        expected = self.expected is not None and self.expected.judged and not self.verdict.judged
        return expected and isinstance(self.result, Result) and not self.stale

    @property
    def problem(self) -> str:
        """Why the result cannot be read, or that a current one lacks the claim's key; else empty."""
        if isinstance(self.result, str):
            return self.result
        return self.judgement.reason if self.judgement.miswired and not self.stale else ""

    def as_json(self) -> dict[str, object]:
        evidence = {label: estimate.as_json() for label, estimate in self.judgement.evidence.items()}
        return {
            "claim": self.claim.id, "paper": self.claim.paper, "experiment": self.claim.experiment,
            "profile": self.profile, "verdict": self.verdict, "expected": self.expected,
            "changed": self.changed, "stale": self.stale, "problem": self.problem,
            "reason": self.judgement.reason, "evidence": evidence, "p": self.judgement.p,
            "parts": self.judgement.parts,
            "presupposed": {key: str(estimate) for key, estimate in self.judgement.presupposed.items()},
        }  # fmt: skip


def tally(row: ClaimVerdict) -> str:
    """Which tally of the paper profile a verdict belongs to; none at another profile.

    Others are our own readings, what would change our mind, and further readings of what is printed.
    """
    if row.profile != "paper":
        return ""
    if row.claim.kind != "statement" or row.claim.reading:
        return OTHERS
    return PUBLISHED if row.claim.number else row.claim.about


def by_origin(rows: Iterable[ClaimVerdict]) -> dict[tuple[str, str], Counter]:
    """Verdicts on statements about networks at the paper profile, by paper and by who says so: it, or we.

    Printed numbers are left out: all of them are said.
    """
    counts: dict[tuple[str, str], Counter] = {}
    statements = [row for row in rows if tally(row) == "networks"]
    for row in statements:
        counts.setdefault((row.claim.paper, row.claim.origin), Counter())[row.verdict] += 1
    papers = dict.fromkeys(row.claim.paper for row in statements)
    return {
        (paper, origin): counts[paper, origin]
        for paper in papers
        for origin in ORIGINS
        if (paper, origin) in counts
    }


def verify(
    root: Path, *, experiment: str | None = None, load: Callable[[Path], Result] = Result.load
) -> list[ClaimVerdict]:
    """The verdict on every claim, or those about one experiment, at every profile, in the order of the files.

    A verdict says so when its result is not there or cannot be read. ``load`` reads a result. Raises BadInput
    for a claims file or ``expected.json`` that cannot be used.
    """
    loaded, expected = cache(partial(_loaded, root, load)), read_expected(root)
    claims = [claim for claim in load_claims(root / "claims") if experiment in (None, claim.experiment)]
    return [
        replace(judge(claim, at, loaded), expected=expected.get((claim.id, at)))
        for claim in claims
        for at in PROFILES
    ]


def _loaded(
    root: Path, load: Callable[[Path], Result], experiment: str | None, profile: str
) -> Result | str | None:
    path = root / RESULTS[profile] / f"{experiment}.json"
    if not path.is_file():
        return None
    try:
        return load(path)
    except (AttnlibError, OSError, UnicodeDecodeError) as error:
        return f"{path}: {error}".replace(f"{path}: {path}", str(path)).replace(f"{root}/", "")


def judge(claim: Claim, profile: str, load: Callable[..., Result | str | None]) -> ClaimVerdict:
    """The verdict on a claim at a profile; ``load`` finds the result of an experiment there."""
    result = load(claim.experiment, profile)

    def others(experiment: str) -> dict:
        result = load(experiment, profile)
        return result.values if isinstance(result, Result) else not_there(experiment)

    def not_run(reason: str, **about: object) -> ClaimVerdict:
        return ClaimVerdict(claim, profile, Judgement(Verdict.NOT_RUN, {}, reason), **about)

    if claim.judge is None:
        return ClaimVerdict(claim, profile, claim.judged_by({}))
    if profile not in claim.profiles:
        return not_run(f"judged at the {' and '.join(claim.profiles)} profile only")
    if result is None:
        command = f"attnlib run {claim.experiment} --profile {profile}"
        return not_run(f"no {profile} result yet; `{command}` makes it")
    if isinstance(result, str):
        return not_run(result, result=result)
    judgement, starred = claim.judged_by(result.values, result.missing, others), False
    if claim.starred and judgement.verdict.judged:
        try:
            starred = look_up(result.values, claim.starred).value > 0.5  # no for a number that is none
        except MissingKey as error:
            judgement = Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True)
    return ClaimVerdict(claim, profile, judgement, starred=starred, result=result)


def read_expected(root: Path) -> dict[tuple[str, str], Verdict]:
    """The expected verdicts by (claim id, profile); none when the file is not there yet."""
    path = root / "claims" / "expected.json"
    if not path.is_file():
        return {}
    try:
        content = loads(path.read_text(encoding="utf-8")).items()
        return {
            (claim, at): Verdict(verdict) for claim, verdicts in content for at, verdict in verdicts.items()
        }
    except (AttributeError, ValueError) as error:
        mistake = f"claims/{path.name} is not as `attnlib verify --accept` writes it: {error}"
        raise BadInput(mistake) from error


def accept_verdicts(root: Path, rows: Iterable[ClaimVerdict]) -> int:
    """Write the verdicts of ``rows`` as the expected ones; gives back of how many the expectation is new.

    A claim judged from a stale result, or not judged here at all, keeps what was expected of it; at a profile
    where it is no longer judged nothing is.
    """
    expected: dict[str, dict[str, str]] = {}
    migrated = 0
    for row in rows:
        verdict = row.verdict if row.verdict.judged and not row.stale else row.expected
        judged_here = row.claim.judge is not None and row.profile in row.claim.profiles
        if verdict is not None and verdict.judged and judged_here:
            expected.setdefault(row.claim.id, {})[row.profile] = verdict.value
        migrated += verdict is not row.expected
    write_json_atomic(root / "claims" / "expected.json", expected)
    return migrated


def problems(root: Path, rows: Iterable[ClaimVerdict]) -> list[str]:
    """Return a line for each result that is lost, altered or cannot be read, missing key, and lost claim."""
    rows = list(rows)
    lines = _problems_of_rows(root, rows)
    known = {(row.claim.id, row.profile) for row in rows if row.claim.judge and _judged_there(row)}
    way_out = "bring it back, or let `attnlib verify --accept` forget it"
    for (claim, at), verdict in read_expected(root).items():
        if (claim, at) not in known:
            gone = f"claims/expected.json expects {claim} to be `{verdict}` at {at}"
            lines.append(f"{gone}, where there is no such claim: {way_out}")
    return list(dict.fromkeys(lines))  # of a file once


def _judged_there(row: ClaimVerdict) -> bool:
    return row.profile in row.claim.profiles


def _problems_of_rows(root: Path, rows: Iterable[ClaimVerdict]) -> list[str]:
    """Return the problems of claims and of results that somebody may have altered."""
    lines, results = [], {}
    for row in rows:
        if isinstance(row.result, Result):
            results[row.profile, row.result.experiment] = row.result
        if row.problem:
            where = "" if isinstance(row.result, str) else f"{row.claim.id} at {row.profile}: "
            lines.append(where + row.problem)
        elif row.profile == "paper" and _judged_there(row) and row.expected and row.result is None:
            missing = f"results/paper/{row.claim.experiment}.json is missing"
            lines.append(f"{missing}, and verdicts on it are expected")
        elif row.profile == "paper" and row.lost:
            lost = f"{row.claim.id} at paper: {row.verdict}, and `{row.expected}` was expected"
            lines.append(f"{lost}: {row.judgement.reason}")
    lines += filter(None, (_not_as_computed(profile, result) for (profile, _), result in results.items()))
    published = [result for (profile, _), result in results.items() if profile == "paper"]
    lines += filter(None, map(_of_uncommitted_code, published))
    if published:
        lines += altered(root / RESULTS["paper"])
    return list(dict.fromkeys(lines))


def concerns(line: str, row: ClaimVerdict) -> bool:
    """Return True if a line of :func:`problems` is about this claim or about a result that it rests on."""
    if row.problem and row.problem in line:
        return True
    if line.startswith(f"{row.claim.id} at {row.profile}: "):
        return True
    if row.claim.judge is None or not _judged_there(row):
        return False
    rests_on = {row.claim.experiment, *(needed.experiment for needed in row.claim.presupposes)} - {None}
    folder = RESULTS[row.profile]
    return any(line.startswith(f"{folder}/{experiment}.") for experiment in rests_on)


def _not_as_computed(profile: str, result: Result) -> str:
    """That a result has other numbers than when it was computed, though its seals may have been made anew."""
    computed = result.provenance.get("computed", result.digest)  # older ones do not say
    if computed == result.digest:
        return ""
    path = f"{RESULTS[profile]}/{result.experiment}.json"
    if profile == "paper":
        way_out = f"`python -m companion.results.recompute {result.experiment}` computes it from the archive"
    else:
        way_out = f"delete it, and `attnlib run {result.experiment}` computes it again"
    return f"{path} has other numbers than when it was computed: {way_out}"


def _of_uncommitted_code(result: Result) -> str:
    """That a published result names a commit which does not have the code that made it."""
    if not result.provenance.get("dirty"):
        return ""
    way_out = f"commit the code, delete this file, and run `attnlib run {result.experiment} --profile paper`"
    return f"results/paper/{result.experiment}.json was made by code that was not committed: {way_out}"


def not_in_the_archive() -> Iterator[str]:
    """A line for each committed result that the archive does not give; takes two minutes."""
    from companion.paths import ARCHIVE, PAPER
    from companion.results.answer import all_measurements
    from companion.results.committed import committed
    from companion.results.recompute import RECOMPUTED, recomputed
    from companion.runs.archive import Archive

    archive = Archive(ARCHIVE)
    asked = [measurement for group in all_measurements("paper").values() for measurement in group]
    try:
        yield from archive.unknown(asked)
    except CorruptFile as error:
        yield str(error)
    for name in committed():
        try:
            today, there = recomputed(name, archive), Result.load(PAPER / f"{name}.json")
        except AttnlibError as error:  # the others are compared all the same
            yield f"results/paper/{name}.json: {error}"
            continue
        if today.digest != there.digest:
            yield f"results/paper/{name}.json: the archive gives other numbers"
        for part in RECOMPUTED:
            if today.provenance.get(part) != there.provenance.get(part):
                yield f"results/paper/{name}.provenance.json: the archive gives another `{part}`"


@dataclass(frozen=True)
class Chance:
    """Of verdicts that rest on intervals, at most one in twenty is expected to be wrong.

    ``limit`` is the largest p at which a verdict survives a false discovery rate of as much (Benjamini and
    Hochberg 1995).
    """

    verdicts: int
    wrong: float
    surviving: int
    limit: float

    def survives(self, p: float | None) -> bool:
        return p is not None and p <= self.limit


def _family(rows: Iterable[ClaimVerdict]) -> list[Judgement]:
    """Judgements at the paper profile that have a p, by the first claim about each set of numbers.

    A falsifier mirrors a claim, and a table rounds the numbers of another: each would count a question twice.
    """
    family: dict[tuple, Judgement] = {}
    for row in rows:
        if row.profile == "paper" and row.judgement.p is not None:
            family.setdefault((row.claim.experiment, *sorted(row.claim.keys)), row.judgement)
    return list(family.values())


def chance(rows: Iterable[ClaimVerdict]) -> Chance:
    """Among the verdicts of the paper profile that intervals decide; the open ones are of the family, too."""
    known = _family(rows)
    ps = sorted(judgement.p for judgement in known)
    # By Benjamini and Hochberg: of the verdicts whose p is at most this, a share LEVEL may be chance.
    limit = max((p for rank, p in enumerate(ps, 1) if p * len(ps) / rank <= LEVEL), default=0.0)
    ours = [judgement.p for judgement in known if judgement.verdict.decided]
    return Chance(len(ours), LEVEL * len(ours), sum(p <= limit for p in ours), limit)


def summaries(rows: Iterable[ClaimVerdict]) -> dict[tuple[str, str], str]:
    """By (experiment, profile), the verdicts in words, such as ``4 reproduced, 1 undecided (stale)``."""
    by_place: dict[tuple[str, str], list[ClaimVerdict]] = defaultdict(list)
    for row in rows:
        if row.claim.experiment:
            by_place[row.claim.experiment, row.profile].append(row)
    in_words = {}
    for place, of_place in by_place.items():
        stale = " (stale)" if any(row.stale for row in of_place) else ""
        in_words[place] = _in_words(Counter(row.verdict for row in of_place)) + stale
    return in_words


def verify_command(
    root: Path, json: bool = False, accept: bool = False, everything: bool = False, recompute: bool = False
) -> int:
    """Say what the verdicts are and which have changed, or ``everything``, in words or ``json``.

    The exit code is 1 where a verdict is not as expected or was never accepted, or there is a problem. A
    verdict from a stale result is named and counts as it stands: remaking it may take hours.
    """
    rows, migrated = verify(root), 0
    if accept:
        migrated = accept_verdicts(root, rows)
        rows = verify(root)
    changed, wrong = sum(row.changed for row in rows), problems(root, rows)
    wrong += not_in_the_archive() if recompute else ()
    if json:
        outcome = {"changed": changed, "problems": wrong, "accepted": migrated}
        print(dumps(outcome | {"rows": [row.as_json() for row in rows]}, indent=1, ensure_ascii=False))
    else:
        print("\n".join(_report(rows, wrong, everything)))
        if accept:
            print(f"expected verdicts written to claims/expected.json, {migrated} of them new")
    return 1 if changed or wrong else 0


LEGEND = (
    "quick, paper: all claims, judged by results of that profile. The other columns divide those at paper:",
    "mathematics, data, networks: statements of the papers and ours, by what they are about; published:",
    "numbers of the papers' tables; others: our own readings and what would change our mind.",
    "cannot be judged: what a claim presupposes does not hold, say that the networks have learned their",
    "task; `attnlib verify NAME` says why, NAME being a claim or a figure.",
)


class UnknownClaim(UnknownName):
    """A name that no claim and no figure has; the message offers the nearest of a thousand."""

    def __init__(self, name: str, options: Iterable[str]):
        super().__init__("claim or figure", name, options)
        self.args = name, self.options

    def __str__(self) -> str:
        """Return the message with the nearest names and the command that lists all."""
        within = [option for option in self.options if self.name and self.name in option]
        similar = get_close_matches(self.name, self.options, n=NEAREST, cutoff=0.5)
        nearest = [repr(name) for name in [*dict.fromkeys(within + similar)][:NEAREST]]
        *others, last = nearest or [""]
        offered = f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if nearest else "."
        return f"no claim or figure {self.name!r}{offered} `attnlib verify --all` lists the claims"


def explain_command(root: Path, names: Iterable[str]) -> int:
    """Explain some claims, or all claims about a figure: what is said, how it is judged, and what came out.

    The exit code is 1 where a verdict is not as expected, or there is a problem with a claim or its result.

    Raises:
        UnknownName: no claim and no figure with a claim has this name.
    """
    rows = verify(root)
    known = {row.claim.id for row in rows} | {row.claim.experiment for row in rows if row.claim.experiment}
    chosen: list[ClaimVerdict] = []
    for name in names:
        last = name.rpartition("/")[2]  # attend/temporal_share is about the experiment temporal_share
        if last not in known:
            raise UnknownClaim(last, sorted(known))
        chosen += [row for row in rows if last in (row.claim.id, row.claim.experiment)]
    of_claims: dict[str, list[ClaimVerdict]] = {}
    for row in chosen:
        of_claims.setdefault(row.claim.id, []).append(row)
    sources = {
        paper.name: ", ".join(filter(None, (paper.title, paper.url)))
        for paper in load_papers(root / "claims")
    }
    wrong = [line for line in _problems_of_rows(root, chosen) if any(concerns(line, row) for row in chosen)]
    blocks = []
    for of_claim in of_claims.values():
        lines = list(_statement(of_claim[0].claim, sources))
        for row in of_claim:
            lines += _explained(row, [line for line in wrong if concerns(line, row)])
        blocks.append("\n".join(lines))
    print("\n\n".join(blocks))
    return int(bool(wrong) or any(row.changed for row in chosen))


def _statement(claim: Claim, sources: Mapping[str, str]) -> Iterator[str]:
    """What a claim says, who says it, and how it is judged, a line each."""
    yield f"{claim.id}: {claim.says}"
    yield f"  whose: {whose(claim)}"
    if claim.inferred_from or claim.reported_by:
        yield f"  after: {claim.inferred_from or claim.reported_by}"
    if source_of(claim):
        yield f"  source: {sources[claim.paper]}"
    else:
        yield f"  place: {claim.place}"
    if claim.published is not None and claim.published.value is not None:
        where = f" ({claim.published.reference})" if claim.published.reference else ""
        yield f"  published: {claim.published.value:g}{where}"
    if claim.judge is None:
        return  # why is said at each profile
    yield f"  judged by: {judged_in_words(claim)}"
    for presupposition in claim.presupposes:
        if not any(presupposition.applies_to(key) for key in claim.keys):
            continue
        yield f"  presupposes that {presupposition.says}: {presupposition.describe()}"
    yield f"  measured by: `attnlib run {claim.experiment}`"


def _explained(row: ClaimVerdict, wrong: Iterable[str]) -> Iterator[str]:
    """What came out of a claim at a profile and why, a line each."""
    marks = [word for word, holds in (("stale", row.stale), ("changed", row.changed)) if holds]
    mark = f" ({', '.join(marks)})" if marks else ""
    yield f"{row.claim.id} at {row.profile}: {row.verdict}{mark}"
    for line in wrong:
        yield f"  problem: {line}"
    if why := why_in_words(row.judgement):
        yield f"  why: {why}"
    for label, estimate in row.judgement.evidence.items():
        part = row.judgement.parts.get(label)
        yield f"  {label}: {estimate}" + (f": {PARTS[part]}" if part else "")
    for key, estimate in row.judgement.presupposed.items():
        yield f"  presupposed, {key}: {estimate}"
    if row.changed:
        expected = row.expected or "nothing yet; `attnlib verify --accept` expects this verdict from now on"
        yield f"  expected: {expected}"


def _report(rows: list[ClaimVerdict], wrong: list[str], everything: bool) -> Iterator[str]:
    changed = [row for row in rows if row.changed]
    if everything:
        for row in rows:
            marks = " (stale)" * row.stale + " (changed)" * row.changed
            because = f": {row.judgement.reason}" if row.verdict is Verdict.CANNOT_BE_JUDGED else ""
            yield f"{row.verdict:<24}{row.profile:<7}{row.claim.id}{marks}{because}"
    yield from _tally(rows, wrong)
    for lines in ([f"changed: {_change(row)}" for row in changed], [f"problem: {line}" for line in wrong]):
        yield from lines if everything else lines[:SHOWN]
        if len(lines) > SHOWN and not everything:
            yield f"… and {len(lines) - SHOWN} more: `attnlib verify --all`"
    if any(not (row.unexpected or row.stale) for row in changed):
        yield "where the new verdict is right, `attnlib verify --accept` makes it the expected one"


def _tally(rows: list[ClaimVerdict], wrong: list[str]) -> Iterator[str]:
    yield from _counts(rows)
    yield from LEGEND
    for (paper, origin), counts in by_origin(rows).items():
        yield f"statements about networks, {paper}, {origin}: {_in_words(counts)}"
    yield from _gaps(rows)
    if (chances := chance(rows)).verdicts:
        yield (
            f"{chances.verdicts} verdicts at paper are decided by intervals: up to {chances.wrong:.0f} are "
            f"expected to be wrong; {chances.surviving} survive a false discovery rate of 5 %"
        )
    yield _outcome(rows, wrong)


def _outcome(rows: list[ClaimVerdict], wrong: list[str]) -> str:
    """Return how many verdicts are as expected, have changed, or rest on something broken."""
    broken = [row for row in rows if any(concerns(line, row) for line in wrong)]
    names = {(row.claim.id, row.profile) for row in broken}
    sound = [row for row in rows if row.verdict.judged and (row.claim.id, row.profile) not in names]
    changed = sum(row.changed for row in sound)
    counts = f"{len(sound) - changed} as expected, {changed} changed"
    if broken:
        counts += f", {len(broken)} broken"
    return f"{len(sound) + len(broken)} verdicts: {counts}"


def _counts(rows: list[ClaimVerdict]) -> Iterator[str]:
    """A line for each verdict: how many at each profile, and in each tally of the paper profile."""
    counts = Counter((row.verdict, column) for row in rows for column in (row.profile, tally(row)))
    columns = (*PROFILES, *TALLIES)
    yield f"{'':<24}" + "".join(f"{name:>13}" for name in columns)
    for verdict in reversed(Verdict):
        numbers = [counts[verdict, name] for name in columns]
        if any(numbers):
            yield f"{verdict:<24}" + "".join(f"{number:>13}" for number in numbers)


def _in_words(counts: Counter) -> str:
    """Verdicts with their number, the best first, as in ``4 reproduced, 1 undecided``."""
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in reversed(Verdict) if counts[verdict])


def _gaps(rows: list[ClaimVerdict]) -> Iterator[str]:
    """Experiments without a result at a profile, and with one that is stale."""
    for profile in PROFILES:
        judged = [row for row in rows if row.profile == profile and profile in row.claim.profiles]
        missing = {row.claim.experiment for row in judged if row.result is None}
        stale = {row.claim.experiment for row in judged if row.stale}
        if missing:
            yield f"no {profile} result yet: {_named(missing)}"
        if stale:
            yield f"stale at {profile}, other runs or versions are asked for today: {_named(stale)}"


def _named(experiments: set[str]) -> str:
    return ", ".join(sorted(experiments)) if len(experiments) < SHOWN else f"{len(experiments)} experiments"


def _change(row: ClaimVerdict) -> str:
    numbers = "; ".join(f"{label} {estimate}" for label, estimate in row.judgement.evidence.items())
    if row.unexpected:
        change = f"{row.verdict} ({numbers}): no expected verdict; accept it with `attnlib verify --accept`"
    else:
        change = f"{row.expected} → {row.verdict} ({numbers})"
        if row.judgement.reason:
            change += f", because {row.judgement.reason}"
    if row.stale:  # then accepting keeps what was expected
        change += f"; stale: run it again first, `attnlib run {row.claim.experiment} --profile {row.profile}`"
    return f"{row.claim.id} at {row.profile}: {change}"
