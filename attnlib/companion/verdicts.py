"""How a number from a result is held against a statement: the four kinds of judge, and the verdict.

A statement is a set of numbers that satisfy it (a half-line or a band, so always convex). An estimate is a
point with, usually, an interval. The verdict is

* *reproduced* when the whole interval, point included, satisfies the statement;
* *partly* when the point does and some of the interval does not;
* *not reproduced* when the point does not, or is undefined;
* *not run at this profile* when there is no number, and *cannot be run* when there never can be one here;
* *by construction*, of a printed number, when no run can move ours, so that nothing is judged.

An estimate without an interval is decided by its point alone, and shown as such. A claim with several keys
says that the statement holds for each of them, so its verdict is the weakest of theirs. A point that does not
satisfy the statement may have an interval that reaches into it: then the reason says that the data leave the
statement open, for *not reproduced* alone reads as if they spoke against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import ge, gt, le, lt
from typing import Protocol

from attnlib.companion.estimates import CannotBeRun, Estimate, MissingKey, NotRun, difference, look_up
from attnlib.companion.fields import read_fields, read_number
from attnlib.errors import BadInput, UnknownName

UNDECIDED = "undecided: some of the interval satisfies the statement"


class Verdict(StrEnum):
    """The verdicts, spelled as readers see them, the weakest first."""

    BY_CONSTRUCTION = "by construction"
    CANNOT_BE_RUN = "cannot be run"
    NOT_RUN = "not run at this profile"
    NOT_REPRODUCED = "not reproduced"
    PARTLY = "partly"
    REPRODUCED = "reproduced"

    @property
    def judged(self) -> bool:
        """Whether a number was held against the statement; only such verdicts can count as changed."""
        return self not in (Verdict.NOT_RUN, Verdict.CANNOT_BE_RUN, Verdict.BY_CONSTRUCTION)

    @property
    def css_class(self) -> str:
        """Its name with hyphens; ``not-run`` of what is not run at a profile."""
        return "not-run" if self is Verdict.NOT_RUN else self.value.replace(" ", "-")


def weakest(verdicts: Sequence[Verdict]) -> Verdict:
    return min(verdicts, key=list(Verdict).index)


class Judge(Protocol):
    """A statement about numbers: what it asks of each, and which estimates of a result it asks about."""

    def holds(self, value: float) -> bool: ...

    def meets(self, low: float, high: float) -> bool: ...

    def describe(self) -> str: ...

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]: ...


class _HalfLine:
    def meets(self, low: float, high: float) -> bool:
        """Whether any number from ``low`` to ``high`` satisfies the statement."""
        return self.holds(low) or self.holds(high)


class _EachKey:
    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        return {key: look_up(values, key) for key in keys}


@dataclass(frozen=True)
class Tolerance(_EachKey):
    """Within ``allowed`` of the ``published`` value, ends included.

    ``unrelated`` is the key of what a result has where a number is about nothing: see :meth:`short_of`.
    """

    published: float
    allowed: float
    unrelated: str = ""

    def short_of(self, nothing: float) -> Tolerance:
        """At most half of the way to ``nothing``, so that it does not pass for what is published."""
        return Tolerance(self.published, min(self.allowed, abs(self.published - nothing) / 2))

    def holds(self, value: float) -> bool:
        # A hair of slack, because in floating point 53.1 - 53 is more than 0.1.
        return abs(value - self.published) <= self.allowed + 1e-9 * max(1.0, abs(self.published))

    def meets(self, low: float, high: float) -> bool:
        return self.holds(min(max(self.published, low), high))

    def describe(self) -> str:
        return f"within {self.allowed:g} of the published {self.published:g}"


RELATIONS = {">": (gt, "above"), ">=": (ge, "at least"), "<": (lt, "below"), "<=": (le, "at most")}


@dataclass(frozen=True)
class Inequality(_HalfLine, _EachKey):
    """On the named side of ``threshold``; ``relation`` is one of ``> >= < <=``."""

    relation: str
    threshold: float

    def holds(self, value: float) -> bool:
        return RELATIONS[self.relation][0](value, self.threshold)

    def describe(self) -> str:
        return f"{RELATIONS[self.relation][1]} {self.threshold:g}"


@dataclass(frozen=True)
class Trend(_HalfLine, _EachKey):
    """A slope or correlation of the named sign (+1 or -1), 0 excluded."""

    sign: int

    def holds(self, value: float) -> bool:
        return value * self.sign > 0

    def describe(self) -> str:
        return "above 0" if self.sign > 0 else "below 0"


@dataclass(frozen=True)
class Order(_HalfLine):
    """The first key's number is larger than the second's: the interval of their difference lies above 0.

    That interval is the result's own at the key ``paired``, where there is one (it is the sharp answer for
    two numbers of the same models); else it is made from the two (`attnlib.companion.estimates.difference`).
    """

    paired: str | None = None
    independent: bool = False

    def holds(self, value: float) -> bool:
        return value > 0

    def describe(self) -> str:
        return "the first above the second"

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        first, second = keys
        if self.paired is not None:
            return {self.paired: look_up(values, self.paired)}
        both = {key: look_up(values, key) for key in keys}
        between = difference(both[first], both[second], independent=self.independent)
        return {f"{first} − {second}": between}


@dataclass(frozen=True)
class Judgement:
    """A verdict with the numbers it rests on, and a reason where there are none."""

    verdict: Verdict
    evidence: Mapping[str, Estimate]
    reason: str = ""
    miswired: bool = False  # the result is there and lacks the key: a mistake, not a verdict

    @property
    def undefined(self) -> bool:
        """Whether none of the numbers has a value: no run is behind them, or none gives one."""
        return bool(self.evidence) and not any(estimate.defined for estimate in self.evidence.values())


def weigh(judge: Judge, estimate: Estimate) -> Verdict:
    """Hold one estimate against the statement; that is convex, so the ends speak for the interval."""
    if not estimate.defined or not judge.holds(estimate.value):
        return Verdict.NOT_REPRODUCED
    ends = (estimate.low, estimate.high) if estimate.has_interval else ()
    return Verdict.REPRODUCED if all(judge.holds(end) for end in ends) else Verdict.PARTLY


def judge_values(judge: Judge, values: Mapping, keys: Sequence[str]) -> Judgement:
    """Judge a result's values; a missing key is reported, not raised, so that no claim hides another."""
    try:
        if isinstance(judge, Tolerance) and judge.unrelated:
            judge = judge.short_of(look_up(values, judge.unrelated).value)
        evidence = judge.evidence(values, keys)
    except CannotBeRun as error:
        return Judgement(Verdict.CANNOT_BE_RUN, {}, str(error))
    except NotRun as error:
        return Judgement(Verdict.NOT_RUN, {}, str(error))
    except MissingKey as error:
        return Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True)
    undefined = [label for label, estimate in evidence.items() if not estimate.defined]
    reason = f"undefined: {', '.join(undefined)}" if undefined else ""
    verdict = weakest([weigh(judge, estimate) for estimate in evidence.values()])
    if verdict is Verdict.NOT_REPRODUCED and all(leaves_open(judge, own) for own in evidence.values()):
        reason = UNDECIDED
    return Judgement(verdict, evidence, reason)


def leaves_open(judge: Judge, estimate: Estimate) -> bool:
    """Whether the estimate is compatible with the statement: by its interval, else by its point."""
    if not estimate.defined:
        return False
    ends = (estimate.low, estimate.high) if estimate.has_interval else (estimate.value, estimate.value)
    return judge.meets(*ends)


def read_judge(content: object, published: float | None) -> Judge:
    """The judge that a claim's ``judge`` field describes; ``published`` is the number a tolerance is about.

    Raises:
        UnknownName: an unknown kind, field, direction or relation.
        BadInput: a missing number, or two fields that exclude one another.
    """
    kinds = {
        "tolerance": ("absolute", "relative"),
        "inequality": ("relation", "threshold"),
        "trend": ("direction",),
        "order": ("paired", "independent"),
    }
    kind = content.get("kind") if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or kind not in kinds:
        raise UnknownName("judge kind", str(kind), kinds)
    fields = read_fields(f"judge {kind}", content, ("kind", *kinds[kind]), required=("kind",))
    if kind == "trend":
        signs = {"positive": 1, "negative": -1}
        if fields.get("direction") not in signs:
            raise UnknownName("direction of a trend", str(fields.get("direction")), signs)
        return Trend(signs[fields["direction"]])
    if kind == "inequality":
        if fields.get("relation") not in RELATIONS:
            raise UnknownName("relation of an inequality", str(fields.get("relation")), RELATIONS)
        return Inequality(fields["relation"], read_number(fields, "threshold", kind))
    if kind == "order":
        if "paired" in fields and fields.get("independent"):
            raise BadInput("an order is either paired or independent; keep the one that is true")
        return Order(fields.get("paired"), bool(fields.get("independent", False)))
    if ("absolute" in fields) == ("relative" in fields):
        raise BadInput("a tolerance is either absolute or relative; give exactly one of them")
    if published is None:
        raise BadInput(
            "a tolerance needs one published number: give `published` a number or a full reference"
        )
    if "absolute" in fields:
        return Tolerance(published, abs(read_number(fields, "absolute", kind)))
    return Tolerance(published, abs(read_number(fields, "relative", kind) * published))
