"""Claims: what a paper says, in our words, and how a number of ours answers it. Read from ``claims/*.yaml``.

A file holds one paper: ``paper``, ``title``, ``url`` where it has one, ``claims``, and with published tables
``csv``, ``tables`` (a title for each), what rules say of numbers (``unavailable``, why they cannot be had
here, ``by_construction``, why no run can move them, and ``not_run``, what they take) and ``numbers`` (which
of them are claims of their own, by rule: see :mod:`attnlib.companion.numbers`).
A claim is

.. code-block:: yaml

    - id: temporal-share-rises-with-typicality     # letters, digits and hyphens; unique over all files
      place: Abstract; contribution 2
      says: What the paper says, in our own words.
      published: 53                                # optional; or {table: 2, dataset: IMDB, quantity: xi_star}
      experiment: temporal_share
      keys: [spearman]                             # dotted paths into Result.values; two for `order`
      judge: {kind: trend, direction: positive}
      profiles: [quick, paper]                     # where it can be judged

Judges: ``{kind: tolerance, absolute | relative}``, ``{kind: inequality, relation: ">", threshold}``,
``{kind: trend, direction: positive | negative}``, ``{kind: order}`` with ``paired: key`` (the result's own
interval of the difference) or ``independent: true``. In place of the last four fields a claim may carry
``not_run: reason`` (nothing measures it yet) or ``cannot_be_run: reason``. A statement that is no paper's has
a ``kind``: ``falsifier``, what would speak against a chapter, or ``reading``, what a sentence of ours says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from attnlib.companion.estimates import KEY
from attnlib.companion.fields import read_fields
from attnlib.companion.numbers import NumberRule, name_of
from attnlib.companion.published import RULES, Published, PublishedTables, Reference, read_tables
from attnlib.companion.verdicts import Judge, Order, read_judge
from attnlib.errors import AttnlibError, BadInput, UnknownName
from attnlib.experiments import registry

PROFILES = ("quick", "paper")
JUDGED_FIELDS = ("experiment", "keys", "judge", "profiles")
CLAIM_FIELDS = ("id", "kind", "place", "says", "published", *JUDGED_FIELDS, "not_run", "cannot_be_run")
KINDS = ("falsifier", "reading")
PAPER_FIELDS = ("paper", "title", "url", "claims", "csv", "tables", *RULES, "numbers")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper. ``judge`` is ``None`` when it is not run (``reason`` says why).

    ``number``: it is about one number of a published table, made by rule; ``reading`` and ``starred`` are
    then those of :class:`~attnlib.companion.numbers.RuledNumber`.
    """

    id: str
    paper: str
    place: str
    says: str
    published: Published | None = None
    experiment: str | None = None
    keys: tuple[str, ...] = ()
    judge: Judge | None = None
    profiles: tuple[str, ...] = ()
    reason: str = ""
    impossible: bool = False  # the reason is why it cannot be run, not why it is not run yet
    number: bool = False
    reading: str = ""
    starred: str = ""
    kind: str = ""  # of KINDS; a paper's statement has none


@dataclass(frozen=True)
class Paper:
    """A paper with its claims and, where it prints tables, their numbers."""

    name: str
    title: str
    url: str
    claims: tuple[Claim, ...]
    tables: PublishedTables | None = None


def load_papers(folder: str | Path, experiments: Collection[str] | None = None) -> tuple[Paper, ...]:
    """Every ``*.yaml`` of ``folder``, by name. ``experiments`` are the names a claim may use (default: all).

    Raises:
        BadInput: a file, field or value that cannot be used; the message names file, claim and way out.
        UnknownName: an unknown field, judge, profile or experiment (with the nearest name).
    """
    folder = Path(folder)
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise BadInput(
            f"no claims in {folder}: expected files such as aitken2021.yaml; run from the repository"
        )
    known = registry.names() if experiments is None else tuple(experiments)
    papers = tuple(_read_paper(path, known) for path in files)
    first_seen: dict[str, str] = {}
    for paper, path in zip(papers, files, strict=True):
        for claim in paper.claims:
            if claim.id in first_seen:
                where = f"{first_seen[claim.id]} and {path.name}"
                raise BadInput(f"claim id {claim.id!r} is used twice ({where}); rename one of them")
            first_seen[claim.id] = path.name
    return papers


def load_claims(folder: str | Path, experiments: Collection[str] | None = None) -> tuple[Claim, ...]:
    """The claims of every paper in ``folder``, in order (errors as `load_papers`)."""
    return tuple(claim for paper in load_papers(folder, experiments) for claim in paper.claims)


def _read_paper(path: Path, experiments: Collection[str]) -> Paper:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path.name} cannot be read as YAML in UTF-8: {error}") from error
    fields = read_fields(path.name, content, PAPER_FIELDS, required=("paper", "title", "claims"))
    tables = None
    if "csv" in fields:
        rules = {kind: fields.get(kind, []) for kind in RULES}
        tables = read_tables(path.parent / fields["csv"], fields.get("tables", {}), rules)
    if not isinstance(fields["claims"], list):
        raise BadInput(
            f"{path.name}: 'claims' is a {type(fields['claims']).__name__}, expected a list of claims"
        )
    claims = []
    for position, entry in enumerate(fields["claims"], start=1):
        name = entry.get("id", f"number {position}") if isinstance(entry, Mapping) else f"number {position}"
        where = f"{path.name}, claim {name}"
        try:
            claims.append(_read_claim(where, fields["paper"], entry, tables, experiments))
        except AttnlibError as error:
            if str(error).startswith(where):
                raise
            raise BadInput(f"{where}: {error}") from error
    for rule in fields.get("numbers", ()):
        if tables is None:
            raise BadInput(f"{path.name}: `numbers` are of published tables, but the file names no `csv`")
        claims += _numbers(fields["paper"], NumberRule.read(rule, tables, experiments), tables)
    return Paper(fields["paper"], fields["title"], fields.get("url") or "", tuple(claims), tables)


def _numbers(paper: str, rule: NumberRule, tables: PublishedTables) -> Iterator[Claim]:
    profiles = _profiles(list(rule.profiles))
    for one in rule.numbers(tables):
        entry = one.entry
        read = f" ({one.reading})" if one.reading else ""
        yield Claim(
            id=name_of(entry, one.reading),
            paper=paper,
            place=f"Table {entry.table}",
            says=f"{entry.dataset}{read}, {entry.quantity}: {entry.value}",
            published=one.published,
            experiment=rule.experiment,
            keys=(one.key,),
            judge=one.judge,
            profiles=profiles,
            number=True,
            reading=one.reading,
            starred=one.starred,
        )


def _read_claim(
    where: str, paper: str, entry: object, tables: PublishedTables | None, experiments: Collection[str]
) -> Claim:
    fields = read_fields(where, entry, CLAIM_FIELDS, required=("id", "place", "says"))
    for name in ("id", "place", "says", "not_run", "cannot_be_run"):
        if name in fields and not (isinstance(fields[name], str) and fields[name].strip()):
            raise BadInput(
                f"{name!r} is {fields[name]!r}, expected some text (quote it if YAML reads it otherwise)"
            )
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["id"]):
        raise BadInput(
            f"id {fields['id']!r} has other characters than small letters, digits and single hyphens"
        )
    if fields.get("kind", KINDS[0]) not in KINDS:
        raise UnknownName("kind of claim", str(fields["kind"]), KINDS)
    published = _published(fields.get("published"), tables)
    common = {
        "kind": fields.get("kind", ""),
        "id": fields["id"],
        "paper": paper,
        "place": fields["place"],
        "says": " ".join(fields["says"].split()),
    }
    given = [name for name in JUDGED_FIELDS if name in fields]
    reasons = [name for name in ("not_run", "cannot_be_run") if name in fields]
    if reasons:
        if given or len(reasons) > 1:
            raise BadInput(
                f"{reasons[0]!r} excludes {', '.join(given + reasons[1:])}; keep the one that is true"
            )
        reason = " ".join(fields[reasons[0]].split())
        return Claim(**common, published=published, reason=reason, impossible=reasons == ["cannot_be_run"])
    missing = [name for name in JUDGED_FIELDS if name not in fields]
    if missing:
        raise BadInput(
            f"missing {', '.join(missing)}; a claim that is not judged says `not_run: why` instead"
        )
    if fields["experiment"] not in experiments:
        raise UnknownName("experiment", str(fields["experiment"]), experiments)
    judge = read_judge(fields["judge"], None if published is None else published.value)
    keys = _keys(fields["keys"], exactly=2 if isinstance(judge, Order) else None)
    return Claim(
        **common,
        published=published,
        experiment=fields["experiment"],
        keys=keys,
        judge=judge,
        profiles=_profiles(fields["profiles"]),
    )


def _published(content: object, tables: PublishedTables | None) -> Published | None:
    if content is None:
        return None
    if isinstance(content, int | float) and not isinstance(content, bool):
        return Published(value=float(content))
    if isinstance(content, Mapping) and "table" in content:
        if tables is None:
            raise BadInput(f"published {dict(content)} refers to a table, but the file names no `csv`")
        read_fields("published", content, ("table", "dataset", "quantity"), required=("table",))
        return tables.published(Reference(**{name: str(text) for name, text in content.items()}))
    raise BadInput(f"published {content!r} is neither a number nor {{table, dataset, quantity}}")


def _keys(content: object, exactly: int | None) -> tuple[str, ...]:
    if not (isinstance(content, list) and content and all(isinstance(key, str) for key in content)):
        raise BadInput(
            f"keys {content!r}: expected a list of dotted keys, such as [one_to_one.AO.typicality]"
        )
    for key in content:
        if not KEY.fullmatch(key):
            raise BadInput(f"key {key!r}: expected names joined by dots, such as one_to_one.AO.typicality")
    if exactly is not None and len(content) != exactly:
        raise BadInput(f"{len(content)} keys for an order; it takes two, the first of which is to be larger")
    return tuple(content)


def _profiles(content: object) -> tuple[str, ...]:
    if not (isinstance(content, list) and content):
        raise BadInput(f"profiles {content!r}: expected a list of {' and '.join(PROFILES)}")
    for name in content:
        if name not in PROFILES:
            raise UnknownName("profile", str(name), PROFILES)
    return tuple(name for name in PROFILES if name in content)
