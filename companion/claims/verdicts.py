"""How a number from a result is held against a statement: the four kinds of judge, and the verdict.

A statement is a half-line or a band of numbers that satisfy it; an estimate is a point, usually with an
interval: without one its point alone decides. A claim with several keys has the weakest of their verdicts.
Where the point does not satisfy the statement and some of the interval does, the reason says that it is
open, for *not reproduced* alone reads as if the data spoke against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import ge, gt, le, lt
from typing import Literal, Self

from pydantic import model_validator

from attnlib.errors import BadInput
from companion.claims.estimates import CannotBeRun, Estimate, MissingKey, NotRun, difference, look_up
from companion.claims.fields import Fields, Number

UNDECIDED = "undecided: some of the interval satisfies the statement"


class Verdict(StrEnum):
    """The verdicts, spelled as readers see them, the weakest first."""

    BY_CONSTRUCTION = "by construction"  # of a printed number: no run can move ours, so nothing is judged
    CANNOT_BE_RUN = "cannot be run"  # there never can be a number here
    NOT_RUN = "not run at this profile"  # there is no number yet
    NOT_REPRODUCED = "not reproduced"  # the point does not satisfy the statement, or is undefined
    PARTLY = "partly"  # the point does, and some of the interval does not
    REPRODUCED = "reproduced"  # the whole interval does, point included

    @property
    def judged(self) -> bool:
        """Whether a number was held against the statement; only such verdicts can count as changed."""
        return self not in (Verdict.NOT_RUN, Verdict.CANNOT_BE_RUN, Verdict.BY_CONSTRUCTION)

    @property
    def css_class(self) -> str:
        return "not-run" if self is Verdict.NOT_RUN else self.value.replace(" ", "-")


class Judge(Fields, ABC):
    """A statement about numbers: which of them satisfy it, by default a half-line, and which it is about."""

    @abstractmethod
    def holds(self, value: float) -> bool: ...

    def meets(self, low: float, high: float) -> bool:
        """Whether any number from ``low`` to ``high`` holds."""
        return self.holds(low) or self.holds(high)

    @abstractmethod
    def describe(self) -> str:
        """The statement in short, such as ``> 0.5``."""

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        return {key: look_up(values, key) for key in keys}

    def about(self, published: float | None) -> Self:
        """The judge of a claim of which this number is published."""
        return self


class Tolerance(Judge):
    """Within ``absolute``, or ``relative`` times it, of the ``published`` value of the claim, ends included.

    ``unrelated`` is the key of what a result has where a number is about nothing: see :meth:`short_of`.
    """

    kind: Literal["tolerance"] = "tolerance"
    absolute: Number | None = None
    relative: Number | None = None
    published: Number | None = None
    unrelated: str = ""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.absolute is None) == (self.relative is None):
            raise ValueError("a tolerance is either absolute or relative; give exactly one of them")
        return self

    @property
    def allowed(self) -> float:
        return abs(self.relative * self.published if self.absolute is None else self.absolute)

    def about(self, published: float | None) -> Self:
        if published is None or self.published is not None:
            raise BadInput(
                "a tolerance needs one published number: give `published` a number or a full reference"
            )
        return self.model_copy(update={"published": published})

    def short_of(self, nothing: float) -> Self:
        """At most half of the way to ``nothing``, so that it does not pass for what is published."""
        half = abs(self.published - nothing) / 2
        return self.model_copy(update={"absolute": min(self.allowed, half), "relative": None})

    def holds(self, value: float) -> bool:
        # A hair of slack, because in floating point 53.1 - 53 is more than 0.1.
        return abs(value - self.published) <= self.allowed + 1e-9 * max(1.0, abs(self.published))

    def meets(self, low: float, high: float) -> bool:
        return self.holds(min(max(self.published, low), high))

    def describe(self) -> str:
        return f"within {self.allowed:g} of the published {self.published:g}"


RELATIONS = {">": (gt, "above"), ">=": (ge, "at least"), "<": (lt, "below"), "<=": (le, "at most")}


class Inequality(Judge):
    """On the named side of ``threshold``."""

    kind: Literal["inequality"] = "inequality"
    relation: Literal[">", ">=", "<", "<="]
    threshold: Number

    def holds(self, value: float) -> bool:
        return RELATIONS[self.relation][0](value, self.threshold)

    def describe(self) -> str:
        return f"{RELATIONS[self.relation][1]} {self.threshold:g}"


class Trend(Judge):
    """A slope or correlation of the named sign, 0 excluded."""

    kind: Literal["trend"] = "trend"
    direction: Literal["positive", "negative"]

    def holds(self, value: float) -> bool:
        return value > 0 if self.direction == "positive" else value < 0

    def describe(self) -> str:
        return "above 0" if self.direction == "positive" else "below 0"


class Order(Judge):
    """The first key's number is larger than the second's: the interval of their difference lies above 0.

    That interval is the result's own at the key ``paired``, where there is one (it is the sharp answer for
    two numbers of the same models); else it is made from the two (`companion.claims.estimates.difference`).
    """

    kind: Literal["order"] = "order"
    paired: str | None = None
    independent: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.paired is not None and self.independent:
            raise ValueError("an order is either paired or independent; keep the one that is true")
        return self

    def holds(self, value: float) -> bool:
        return value > 0

    def describe(self) -> str:
        return "the first above the second"

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        if self.paired is not None:
            return {self.paired: look_up(values, self.paired)}
        both = (look_up(values, key) for key in keys)
        return {" − ".join(keys): difference(*both, independent=self.independent)}


@dataclass(frozen=True)
class Judgement:
    """A verdict with the numbers it rests on, and a reason where there are none.

    ``miswired`` says that the result is there and lacks the key: a mistake, not a verdict.
    """

    verdict: Verdict
    evidence: Mapping[str, Estimate]
    reason: str = ""
    miswired: bool = False


def weigh(judge: Judge, estimate: Estimate) -> Verdict:
    """Hold one estimate against the statement; that is convex, so the ends speak for the interval."""
    if not estimate.defined or not judge.holds(estimate.value):
        return Verdict.NOT_REPRODUCED
    return Verdict.REPRODUCED if all(map(judge.holds, estimate.ends)) else Verdict.PARTLY


def judge_values(
    judge: Judge, values: Mapping, keys: Sequence[str], not_trained: Sequence[str] = ()
) -> Judgement:
    """Judge a result's values; a missing key is reported, not raised, so that no claim hides another.

    Where models are not trained yet, a number that is not there is not run.
    """
    untrained = Judgement(Verdict.NOT_RUN, {}, f"models not trained yet ({in_short(not_trained)})")
    try:
        if isinstance(judge, Tolerance) and judge.unrelated:
            judge = judge.short_of(look_up(values, judge.unrelated).value)
        evidence = judge.evidence(values, keys)
    except CannotBeRun as error:
        return Judgement(Verdict.CANNOT_BE_RUN, {}, str(error))
    except NotRun as error:
        return Judgement(Verdict.NOT_RUN, {}, str(error))
    except MissingKey as error:
        return untrained if not_trained else Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True)
    undefined = [label for label, estimate in evidence.items() if not estimate.defined]
    if not_trained and len(undefined) == len(evidence):
        return untrained
    verdict = min((weigh(judge, own) for own in evidence.values()), key=list(Verdict).index)
    if undefined:
        return Judgement(verdict, evidence, f"undefined: {', '.join(undefined)}")
    is_open = all(judge.meets(*own.ends) for own in evidence.values())
    return Judgement(verdict, evidence, UNDECIDED * (is_open and verdict is Verdict.NOT_REPRODUCED))


def in_short(missing: Sequence[str], most: int = 3) -> str:
    """Kinds of model with their numbers, as in ``scan AO: 3``; many as two counts."""
    if len(missing) <= most:
        return ", ".join(missing)
    models = sum(int(kind.rpartition(": ")[2]) for kind in missing)
    return f"{models} models of {len(missing)} kinds"
