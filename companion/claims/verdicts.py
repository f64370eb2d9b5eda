"""How a number from a result is held against a statement: the four kinds of judge, and the verdict.

A statement is a half-line or a band of numbers that satisfy it; an estimate is a point, usually with an
interval: without one a count decides alone, and runs decide nothing. A trend, an order or an inequality may
have a smallest effect, by which a number has to be past the threshold to mean what the words say.

A statement with several keys has a part for each, and claims all of them: it is refuted by one part that is
not reproduced, if that would be seen in one of so many parts in fewer than 5 % of cases (Bonferroni), and
else undecided; failing that it cannot be judged if one part cannot; failing that it is undecided if one part
is. The reason counts the parts that are reproduced.

A statement that something *can* be so (``enough: any``) needs one part: it is reproduced if one of its parts
is, at a level of 5 % for all (Bonferroni), and not reproduced if no part is.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from operator import ge, gt, le, lt
from typing import Literal, Self

from pydantic import model_validator

from attnlib.errors import BadInput
from companion.claims.estimates import CannotBeRun, Estimate, MissingKey, NotRun, difference, figure, look_up
from companion.claims.fields import Experiment, Fields, Number, Text


class Verdict(StrEnum):
    """The verdicts, spelled as readers see them; of several parts of a claim the first of these counts."""

    CANNOT_BE_RUN = "cannot be run"  # there never can be a number here
    NOT_RUN = "not run at this profile"  # there is no number yet
    BY_CONSTRUCTION = "by construction"  # it could not come out otherwise
    NOT_REPRODUCED = "not reproduced"  # no number of the interval satisfies the statement
    CANNOT_BE_JUDGED = "cannot be judged"  # what it presupposes does not hold, or its number is undefined
    UNDECIDED = "undecided"  # some numbers of the interval do, and some do not
    REPRODUCED = "reproduced"  # the whole interval does, point included

    @property
    def judged(self) -> bool:
        """Whether a number was held against the statement; only such verdicts can count as changed."""
        return self not in (Verdict.NOT_RUN, Verdict.CANNOT_BE_RUN)

    @property
    def decided(self) -> bool:
        return self in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)

    @property
    def css_class(self) -> str:
        return "not-run" if self is Verdict.NOT_RUN else self.value.replace(" ", "-")


class Judge(Fields):
    """A statement about numbers: which of them satisfy it, a half-line or a band, and which it is about.

    ``holds(value)`` says whether a number satisfies it, ``edges`` where those that do begin and end, and
    ``describe()`` is the statement in short, such as ``above 0.5``.
    """

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

    @property
    def edges(self) -> tuple[float, float]:
        return self.published - self.allowed, self.published + self.allowed

    def describe(self) -> str:
        return f"within {self.allowed:g} of the published {self.published:g}"


RELATIONS = {">": (gt, "above"), ">=": (ge, "at least"), "<": (lt, "below"), "<=": (le, "at most")}


class HalfLine(Judge):
    """On one side of a threshold, which lies past ``start`` by the smallest effect."""

    effect: Number = 0.0
    start = property(lambda self: 0.0)
    side = property(lambda self: ">")

    @property
    def limit(self) -> float:
        return self.start + (self.effect if self.side[0] == ">" else -self.effect)

    @property
    def edges(self) -> tuple[float, float]:
        return (self.limit, math.inf) if self.side[0] == ">" else (-math.inf, self.limit)

    def holds(self, value: float) -> bool:
        return RELATIONS[self.side][0](value, self.limit)

    def beyond(self, effect: float) -> Self:
        """The same with a smallest effect."""
        return self.model_copy(update={"effect": effect})

    def describe(self) -> str:
        return f"{RELATIONS[self.side][1]} {self.limit:g}".replace("-", "−")


class Inequality(HalfLine):
    """On the named side of ``threshold``."""

    kind: Literal["inequality"] = "inequality"
    relation: Literal[">", ">=", "<", "<="]
    threshold: Number
    start = property(lambda self: self.threshold)
    side = property(lambda self: self.relation)


class Band(Judge):
    """Above one number and below another, as *sometimes* is neither never nor always."""

    kind: Literal["band"] = "band"
    above: Number
    below: Number

    @property
    def edges(self) -> tuple[float, float]:
        return self.above, self.below

    def holds(self, value: float) -> bool:
        return self.above < value < self.below

    def describe(self) -> str:
        return f"above {self.above:g} and below {self.below:g}"


class Trend(HalfLine):
    """A slope or correlation of the named sign, larger than the smallest effect."""

    kind: Literal["trend"] = "trend"
    direction: Literal["positive", "negative"]
    side = property(lambda self: ">" if self.direction == "positive" else "<")


class Order(HalfLine):
    """The first key's number is larger than the second's, by more than the smallest effect.

    The interval of the difference is the result's own at the key ``paired``, where there is one (it is the
    sharp answer for two numbers of the same models); else it is made from the two
    (`companion.claims.estimates.difference`).
    """

    kind: Literal["order"] = "order"
    paired: str | None = None
    independent: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.paired is not None and self.independent:
            raise ValueError("an order is either paired or independent; keep the one that is true")
        return self

    def describe(self) -> str:
        return "the first above the second" + (f" by more than {self.effect:g}" if self.effect else "")

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        if self.paired is not None:
            return {self.paired: look_up(values, self.paired)}
        both = (look_up(values, key) for key in keys)
        return {" − ".join(keys): difference(*both, independent=self.independent)}


Others = Callable[[str], Mapping]  # values of an experiment's result at the profile of the claim


def not_there(experiment: str) -> Mapping:
    raise NotRun(f"it presupposes what {experiment} finds, which has not been run")


class Presupposition(Fields):
    """What has to hold of the networks for a claim about them to mean anything.

    Judged by their own mean, without its interval: it is about these very networks, and no others. Keys
    may name pieces of the claim's: of ``scan.AO.x`` ``{0}.{1}.accuracy`` makes ``scan.AO.accuracy``. They
    are keys of the claim's own result unless an ``experiment`` is named.
    """

    keys: tuple[str, ...]
    relation: Literal[">", ">=", "<", "<="] = ">="
    threshold: Number
    says: Text
    experiment: Experiment | None = None  # whose result has the keys; the claim's own without one
    only_for: tuple[str, ...] = ()  # keys without such a piece presuppose nothing
    except_for: tuple[str, ...] = ()  # keys with such a piece presuppose nothing

    def look_up(self, values: Mapping, key: str, others: Others) -> dict[str, Estimate]:
        """What it is about, for a key of the claim. Raises as :func:`look_up` does; MissingKey: too short."""
        pieces = key.split(".")
        named = {*pieces}
        if named & {*self.except_for} or (self.only_for and not named & {*self.only_for}):
            return {}
        values = others(self.experiment) if self.experiment else values
        try:
            keys = [each.format(*pieces) for each in self.keys]
        except IndexError as error:
            raise MissingKey(f"no {self.keys} of {key!r}, which has fewer pieces") from error
        return {each: look_up(values, each) for each in keys}

    def failing(self, found: Mapping[str, Estimate]) -> dict[str, str]:
        """The numbers that are not as they should be."""
        holds, _ = RELATIONS[self.relation]
        return {
            key: figure(own.value) if own.defined else "undefined"
            for key, own in found.items()
            if not holds(own.value, self.threshold)
        }

    def reason(self, failing: Mapping[str, str]) -> str:
        """Why a claim cannot be judged."""
        numbers = ", ".join(f"`{key}` is {number}" for key, number in failing.items())
        word = RELATIONS[self.relation][1]
        return f"presupposes that {self.says}, and {numbers}, not {word} {self.threshold:g}"


@dataclass(frozen=True)
class Judgement:
    """A verdict with the numbers it rests on, and a reason where there is something to say.

    ``parts`` has a verdict for each number, ``presupposed`` what the claim rests on besides, ``p`` the
    probability of an interval so far from the threshold were the truth there. ``miswired`` says that the
    result is there and lacks the key: a mistake, not a verdict.
    """

    verdict: Verdict
    evidence: Mapping[str, Estimate]
    reason: str = ""
    miswired: bool = False
    parts: Mapping[str, Verdict] = field(default_factory=dict)
    presupposed: Mapping[str, Estimate] = field(default_factory=dict)
    p: float | None = None


def weigh(judge: Judge, estimate: Estimate) -> Verdict:
    """Hold one estimate against the statement; that is convex, so the ends speak for the interval.

    A count or a minimum has none and decides alone. Runs too few for one, as a single one is, do not.
    """
    if not estimate.defined:
        return Verdict.CANNOT_BE_JUDGED
    if estimate.n is not None and not estimate.has_interval:
        return Verdict.UNDECIDED
    low, high = estimate.ends
    if all(map(judge.holds, (estimate.value, low, high))):
        return Verdict.REPRODUCED
    nearest = min(max(sum(judge.edges) / 2, low), high)  # to the middle of what satisfies it
    return Verdict.UNDECIDED if judge.holds(nearest) else Verdict.NOT_REPRODUCED


def p_value(judge: Judge, estimate: Estimate) -> float | None:
    """Two-sided, by inverting the 95 % interval at the nearest edge of the statement; None without one.

    The interval is taken for Student's of ``n`` runs, and for that of a normal estimate where n is not known;
    of one that is not symmetric the half towards that edge counts.
    """
    nearest = min(judge.edges, key=lambda edge: abs(edge - estimate.value))
    half = abs(estimate.ends[nearest > estimate.value] - estimate.value)
    if not (estimate.defined and estimate.has_interval and half and math.isfinite(half)):
        return None
    from scipy.special import stdtr, stdtrit  # pages that judge nothing do without them

    freedom = estimate.n - 1 if estimate.n and estimate.n > 1 else math.inf
    return float(2 * stdtr(freedom, -abs(nearest - estimate.value) / half * stdtrit(freedom, 0.975)))


OfParts = Mapping[str, tuple[Verdict, float | None]]


def verdict_if_one_is_enough(of_parts: OfParts) -> Verdict:
    """The verdict on a statement that something can be so: one part shows it, at a level of 5 % for all.

    It is refuted only where every part is, and cannot be judged where no part can be.
    """
    verdicts = {verdict for verdict, _ in of_parts.values()}
    shown = [p or 0.0 for verdict, p in of_parts.values() if verdict is Verdict.REPRODUCED]
    if shown and min(shown) <= 0.05 / len(of_parts):
        return Verdict.REPRODUCED
    if len(verdicts) == 1 and Verdict.REPRODUCED not in verdicts:
        return verdicts.pop()
    return Verdict.UNDECIDED


def verdict_of_parts(of_parts: OfParts) -> Verdict:
    """The first of their verdicts; one part of several refutes at a level of 5 % for all (Bonferroni)."""
    worst = min((own for own, _ in of_parts.values()), key=list(Verdict).index)
    against = [p or 0.0 for own, p in of_parts.values() if own is Verdict.NOT_REPRODUCED]  # a count is sure
    if worst is not Verdict.NOT_REPRODUCED or len(of_parts) == 1 or min(against) <= 0.05 / len(of_parts):
        return worst
    unjudged = any(own is Verdict.CANNOT_BE_JUDGED for own, _ in of_parts.values())
    return Verdict.CANNOT_BE_JUDGED if unjudged else Verdict.UNDECIDED


def p_of_parts(verdict: Verdict, of_parts: OfParts, *, one_is_enough: bool = False) -> float | None:
    """Return the p of a statement: the smallest of its failing parts (Bonferroni), or the largest of all.

    A part that fails counts with the number of parts, whether the statement is refuted by it or left open.
    Where one part is enough, those that hold take the place of those that fail.
    """
    alone = Verdict.REPRODUCED if one_is_enough else Verdict.NOT_REPRODUCED
    deciding = [p for part, p in of_parts.values() if part is alone]
    relevant = deciding or [p for _, p in of_parts.values()]
    known = [p for p in relevant if p is not None]
    if not known or verdict is Verdict.CANNOT_BE_JUDGED:
        return None
    return min(1.0, min(known) * len(of_parts)) if deciding else max(known)


def judge_values(
    judge: Judge,
    values: Mapping,
    keys: Sequence[str],
    not_trained: Sequence[str] = (),
    *,
    effects: Sequence[float] = (),
    presupposes: Iterable[Presupposition] = (),
    others: Others = not_there,
    one_is_enough: bool = False,
) -> Judgement:
    """Judge a result's values; a missing key is reported, not raised, so that no claim hides another.

    Where models are not trained yet, a number that is not there is not run. ``effects`` are the smallest
    ones, one for each key. ``others`` has the values of other results, which a presupposition may name.
    ``one_is_enough``: the statement is that something can be so, and one of its parts shows it.
    """
    untrained = Judgement(Verdict.NOT_RUN, {}, f"models not trained yet ({in_short(not_trained)})")
    try:
        if isinstance(judge, Tolerance) and judge.unrelated:
            nothing = look_up(values, judge.unrelated)
            if not nothing.defined:
                return Judgement(Verdict.CANNOT_BE_JUDGED, {}, f"undefined: {judge.unrelated}")
            judge = judge.short_of(nothing.value)
        evidence = judge.evidence(values, keys)
        about = [(key,) for key in keys] if len(evidence) == len(keys) else [tuple(keys)]
        found = [
            [(each, each.look_up(values, key, others)) for each in presupposes for key in own]
            for own in about
        ]
    except CannotBeRun as error:
        return Judgement(Verdict.CANNOT_BE_RUN, {}, str(error))
    except NotRun as error:
        return Judgement(Verdict.NOT_RUN, {}, str(error))
    except MissingKey as error:
        return untrained if not_trained else Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True)
    undefined = [label for label, estimate in evidence.items() if not estimate.defined]
    if not_trained and len(undefined) == len(evidence):
        return untrained
    parts: dict[str, tuple[Verdict, float | None]] = {}
    failed: dict[Presupposition, dict[str, str]] = {}
    for (label, own), presupposed, effect in zip(evidence.items(), found, effects or repeat(0), strict=False):
        held = judge.beyond(effect) if effect else judge
        failing = [(each, lacking) for each, there in presupposed if (lacking := each.failing(there))]
        verdict = Verdict.CANNOT_BE_JUDGED if failing else weigh(held, own)
        parts[label] = verdict, p_value(held, own)
        for each, lacking in failing:
            failed.setdefault(each, {}).update(lacking)
    verdict = verdict_if_one_is_enough(parts) if one_is_enough else verdict_of_parts(parts)
    good = sum(own is Verdict.REPRODUCED for own, _ in parts.values())
    reasons = [each.reason(lacking) for each, lacking in failed.items()]
    reasons += [f"undefined: {', '.join(undefined)}"] * bool(undefined)
    reasons += [f"{good} of {len(parts)} parts reproduced"] * (0 < good < len(parts))
    failed_part = Verdict.NOT_REPRODUCED in {own for own, _ in parts.values()}
    chance = verdict is Verdict.UNDECIDED and failed_part and not one_is_enough
    reasons += [f"that one of {len(parts)} parts fails may be chance"] * chance
    return Judgement(
        verdict,
        evidence,
        "; ".join(reasons),
        parts={label: own for label, (own, _) in parts.items()},
        presupposed={key: own for each in found for _, there in each for key, own in there.items()},
        p=p_of_parts(verdict, parts, one_is_enough=one_is_enough),
    )


def in_short(missing: Sequence[str]) -> str:
    """Kinds of model with their numbers, as in ``scan AO: 3``; many as two counts."""
    if len(missing) <= 3:
        return ", ".join(missing)
    models = sum(int(kind.rpartition(": ")[2]) for kind in missing)
    return f"{models} models of {len(missing)} kinds"
