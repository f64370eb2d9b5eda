"""How a number from a result is compared with a statement: the region that satisfies it, and the verdict.

A statement is a `Region` of numbers that satisfy it; an estimate is a point, usually with an interval:
without one a count decides alone, and runs decide nothing. A region with one limit may have a smallest
effect, by which a number has to be past the limit to mean what the words say.

A statement with several keys has a part for each, and claims all of them: it is refuted by one part that is
not reproduced, if that would be seen in one of so many parts in fewer than 5 % of cases (Bonferroni), and
else undecided; failing that it cannot be judged if one part cannot; failing that it is undecided if one part
is. The reason counts the parts that are reproduced.

A statement that something *can* be so (``enough: any``) needs one part: it is reproduced if one of its parts
is, at a level of 5 % for all (Bonferroni), and not reproduced if no part is.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, product, starmap
from operator import ge, gt, le, lt
from typing import Self

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


class Bounds(Fields):
    """Numbers past a limit, or between two: ``{above: 0.5}``, ``{at_most: 0}``, ``{above: 0, below: 1}``."""

    above: Number | None = None
    at_least: Number | None = None
    below: Number | None = None
    at_most: Number | None = None

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are given, by name."""
        given = {name: getattr(self, name) for name in WORDS}
        return {name: limit for name, limit in given.items() if limit is not None}

    @model_validator(mode="after")
    def _one_limit_a_side(self) -> Self:
        for side in (("above", "at_least"), ("below", "at_most")):
            if self.limits.keys() >= {*side}:
                raise ValueError(f"{' and '.join(side)} are limits of one side; keep one of them")
        return self

    @property
    def low(self) -> float:
        return self.limits.get("above", self.limits.get("at_least", -math.inf))

    @property
    def high(self) -> float:
        return self.limits.get("below", self.limits.get("at_most", math.inf))

    def holds(self, value: float) -> bool:
        """Return True if a number is within the limits, of which ``above`` and ``below`` are not part."""
        return all(RELATIONS[name](value, limit) for name, limit in self.limits.items())

    def describe(self) -> str:
        """Return the statement in short, such as ``above 0.5``."""
        limits = [f"{WORDS[name]} {limit:g}" for name, limit in self.limits.items()]
        return " and ".join(limits).replace("-", "−")


RELATIONS = {"above": gt, "at_least": ge, "below": lt, "at_most": le}
WORDS = {name: name.replace("_", " ") for name in RELATIONS}


class Region(Bounds):
    """The numbers that satisfy a statement, of a key or of the difference of two keys.

    Attributes:
        within: how far from the published number, ends included; in place of limits.
        within_fraction: the same, as a part of the published number.
        contrast: the number is the first key's minus the second's. Its interval is made from both, taken as
            ``independent`` or, whatever the dependence, as the widest one (``dependent``); or it is the
            result's own, at a third key: the sharp answer for two numbers of the same networks.
        published: the number that the paper prints.
        unrelated: key of what a result has where a number is about nothing, see :meth:`short_of`.
    """

    within: Number | None = None
    within_fraction: Number | None = None
    contrast: str = ""
    published: Number | None = None
    unrelated: str = ""

    @model_validator(mode="after")
    def _limits_or_tolerance(self) -> Self:
        kinds = [bool(self.limits), self.within is not None, self.within_fraction is not None]
        if sum(kinds) != 1:
            raise ValueError("give limits (above, at_least, below, at_most), within, or within_fraction")
        return self

    @property
    def is_tolerance(self) -> bool:
        return not self.limits

    @property
    def is_one_sided(self) -> bool:
        return len(self.limits) == 1

    @property
    def is_strictly_past_zero(self) -> bool:
        return self.above == 0 or self.below == 0

    @property
    def allowed(self) -> float:
        """How far a number may be from the published one."""
        return abs(self.within_fraction * self.published) if self.within is None else abs(self.within)

    @property
    def low(self) -> float:
        return self.published - self.allowed if self.is_tolerance else super().low

    @property
    def high(self) -> float:
        return self.published + self.allowed if self.is_tolerance else super().high

    def holds(self, value: float) -> bool:
        if not self.is_tolerance:
            return super().holds(value)
        # A hair of slack, because in floating point 53.1 - 53 is more than 0.1.
        return abs(value - self.published) <= self.allowed + 1e-9 * max(1.0, abs(self.published))

    def about(self, published: float | None) -> Self:
        """Return the region of a claim of which this number is published."""
        if not self.is_tolerance:
            return self
        if published is None or self.published is not None:
            raise BadInput(
                "a tolerance needs one published number: give `published` a number or a full reference"
            )
        return self.model_copy(update={"published": published})

    def short_of(self, nothing: float) -> Self:
        """Return at most half of the way to ``nothing``, so that it does not pass for what is published."""
        half = abs(self.published - nothing) / 2
        return self.model_copy(update={"within": min(self.allowed, half), "within_fraction": None})

    def beyond(self, effect: float) -> Self:
        """Return the region whose limit lies further by a smallest effect."""
        further = {"above": effect, "at_least": effect, "below": -effect, "at_most": -effect}
        return self.model_copy(update={name: limit + further[name] for name, limit in self.limits.items()})

    def evidence(self, values: Mapping, keys: Sequence[str]) -> dict[str, Estimate]:
        """Return the numbers that have to be in the region, by key; errors as :func:`look_up`."""
        if not self.contrast:
            return {key: look_up(values, key) for key in keys}
        if self.contrast not in ("independent", "dependent"):
            return {self.contrast: look_up(values, self.contrast)}
        both = [look_up(values, key) for key in keys]
        return {" − ".join(keys): difference(*both, independent=self.contrast == "independent")}

    def describe(self) -> str:
        if self.is_tolerance:
            return f"within {self.allowed:g} of the published {self.published:g}"
        if self.contrast:
            return "the first above the second" + (f" by more than {self.low:g}" if self.low else "")
        return super().describe()


Others = Callable[[str], Mapping]  # values of an experiment's result at the profile of the claim


def not_there(experiment: str) -> Mapping:
    raise NotRun(f"it presupposes what {experiment} finds, which has not been run")


class Presupposition(Bounds):
    """What has to hold of the networks for a claim about them to mean anything.

    Judged by their own mean, without its interval: it is about these very networks, and no others. Keys
    may name pieces of the claim's: of ``scan.AO.x`` ``{0}.{1}.accuracy`` makes ``scan.AO.accuracy``. They
    are keys of the claim's own result unless an ``experiment`` is named.
    """

    keys: tuple[str, ...]
    says: Text
    experiment: Experiment | None = None  # whose result has the keys; the claim's own without one
    only_for: tuple[str, ...] = ()  # keys without such a piece presuppose nothing
    except_for: tuple[str, ...] = ()  # keys with such a piece presuppose nothing

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if not self.limits:
            raise ValueError("give a limit: above, at_least, below or at_most")
        return self

    def applies_to(self, key: str) -> bool:
        """Return True if a claim's key presupposes this."""
        named = {*key.split(".")}
        if named & {*self.except_for}:
            return False
        return not self.only_for or bool(named & {*self.only_for})

    def look_up(self, values: Mapping, key: str, others: Others) -> dict[str, Estimate]:
        """What it is about, for a key of the claim. Raises as :func:`look_up` does; MissingKey: too short."""
        if not self.applies_to(key):
            return {}
        pieces = key.split(".")
        values = others(self.experiment) if self.experiment else values
        try:
            keys = [pattern.format(*pieces) for pattern in self.keys]
        except IndexError as error:
            raise MissingKey(f"no {self.keys} of {key!r}, which has fewer pieces") from error
        return {key: look_up(values, key) for key in keys}

    def failing(self, estimates: Mapping[str, Estimate]) -> dict[str, str]:
        """The numbers that are not as they should be."""
        return {
            key: figure(estimate.value) if estimate.defined else "undefined"
            for key, estimate in estimates.items()
            if not (estimate.defined and self.holds(estimate.value))
        }

    def reason(self, failing: Mapping[str, str]) -> str:
        """Why a claim cannot be judged."""
        numbers = ", ".join(f"`{key}` is {number}" for key, number in failing.items())
        return f"presupposes that {self.says}, and {numbers}, not {self.describe()}"


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


def weigh(region: Region, estimate: Estimate) -> Verdict:
    """Hold one estimate against the statement; that is convex, so the ends speak for the interval.

    A count or a minimum has none and decides alone. Runs too few for one, as a single one is, do not.
    """
    if not estimate.defined:
        return Verdict.CANNOT_BE_JUDGED
    if estimate.n is not None and not estimate.has_interval:
        return Verdict.UNDECIDED
    low, high = estimate.ends
    if all(map(region.holds, (estimate.value, low, high))):
        return Verdict.REPRODUCED
    nearest = min(max((region.low + region.high) / 2, low), high)  # to the middle of what satisfies it
    return Verdict.UNDECIDED if region.holds(nearest) else Verdict.NOT_REPRODUCED


def p_value(region: Region, estimate: Estimate) -> float | None:
    """Two-sided, by inverting the 95 % interval at the nearest edge of the statement; None without one.

    The interval is taken for Student's of ``n`` runs, and for that of a normal estimate where n is not known;
    of one that is not symmetric the half towards that edge counts.
    """
    nearest = min((region.low, region.high), key=lambda edge: abs(edge - estimate.value))
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
    worst = min((verdict for verdict, _ in of_parts.values()), key=list(Verdict).index)
    # A count has no p, since it is sure.
    against = [p or 0.0 for verdict, p in of_parts.values() if verdict is Verdict.NOT_REPRODUCED]
    if worst is not Verdict.NOT_REPRODUCED or len(of_parts) == 1 or min(against) <= 0.05 / len(of_parts):
        return worst
    unjudged = any(verdict is Verdict.CANNOT_BE_JUDGED for verdict, _ in of_parts.values())
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
    region: Region,
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

    Args:
        region: the numbers that satisfy the statement.
        values: of the result.
        keys: the statement's parts, or the two keys of a contrast.
        not_trained: kinds of networks that are not trained yet; a number that is not there is not run.
        effects: the smallest ones, one for each key; none by default.
        presupposes: what has to hold of the networks behind each part.
        others: values of other results, which a presupposition may name.
        one_is_enough: the statement is that something can be so, and one of its parts shows it.
    """
    untrained = Judgement(Verdict.NOT_RUN, {}, f"models not trained yet ({in_short(not_trained)})")
    try:
        if region.unrelated:
            nothing = look_up(values, region.unrelated)
            if not nothing.defined:
                return Judgement(Verdict.CANNOT_BE_JUDGED, {}, f"undefined: {region.unrelated}")
            region = region.short_of(nothing.value)
        evidence = region.evidence(values, keys)
        keys_of_parts = [keys] if region.contrast else [[key] for key in keys]
        presupposed = [_presupposed(presupposes, of_part, values, others) for of_part in keys_of_parts]
    except CannotBeRun as error:
        return Judgement(Verdict.CANNOT_BE_RUN, {}, str(error))
    except NotRun as error:
        return Judgement(Verdict.NOT_RUN, {}, str(error))
    except MissingKey as error:
        return untrained if not_trained else Judgement(Verdict.NOT_RUN, {}, str(error), miswired=True)
    if not_trained and not any(estimate.defined for estimate in evidence.values()):
        return untrained
    regions = [region.beyond(effect) for effect in effects] or [region] * len(evidence)
    judged = zip(regions, evidence.values(), presupposed, strict=False)  # a contrast may have two effects
    parts = dict(zip(evidence, starmap(_part, judged), strict=True))
    verdict = verdict_if_one_is_enough(parts) if one_is_enough else verdict_of_parts(parts)
    return Judgement(
        verdict,
        evidence,
        "; ".join(_reasons(verdict, evidence, parts, presupposed, one_is_enough=one_is_enough)),
        parts={label: part for label, (part, _) in parts.items()},
        presupposed={
            key: estimate
            for of_part in presupposed
            for estimates in of_part.values()
            for key, estimate in estimates.items()
        },
        p=p_of_parts(verdict, parts, one_is_enough=one_is_enough),
    )


Presupposed = Mapping[Presupposition, Mapping[str, Estimate]]  # the numbers that each is about


def _presupposed(
    presupposes: Iterable[Presupposition], keys: Iterable[str], values: Mapping, others: Others
) -> Presupposed:
    """Return what is presupposed of the networks behind some keys."""
    estimates: dict[Presupposition, dict[str, Estimate]] = {}
    for presupposition, key in product(presupposes, keys):
        estimates.setdefault(presupposition, {}).update(presupposition.look_up(values, key, others))
    return estimates


def _all_presupposed(of_parts: Iterable[Presupposed]) -> dict[str, Estimate]:
    together: dict[str, Estimate] = {}
    for of_part in of_parts:
        for estimates in of_part.values():
            together |= estimates
    return together


def _part(region: Region, estimate: Estimate, presupposed: Presupposed) -> tuple[Verdict, float | None]:
    """Return the verdict on one number, and its p."""
    failing = any(presupposition.failing(estimates) for presupposition, estimates in presupposed.items())
    verdict = Verdict.CANNOT_BE_JUDGED if failing else weigh(region, estimate)
    return verdict, p_value(region, estimate)


def _reasons(
    verdict: Verdict,
    evidence: Mapping[str, Estimate],
    parts: OfParts,
    presupposed: Iterable[Presupposed],
    *,
    one_is_enough: bool,
) -> Iterator[str]:
    """Say what there is to say of a verdict, beside its numbers."""
    failing: dict[Presupposition, dict[str, str]] = {}
    for presupposition, estimates in chain.from_iterable(of_part.items() for of_part in presupposed):
        if failed := presupposition.failing(estimates):
            failing.setdefault(presupposition, {}).update(failed)
    for presupposition, failed in failing.items():
        yield presupposition.reason(failed)
    if undefined := [label for label, estimate in evidence.items() if not estimate.defined]:
        yield f"undefined: {', '.join(undefined)}"
    verdicts = [part for part, _ in parts.values()]
    if 0 < (good := verdicts.count(Verdict.REPRODUCED)) < len(parts):
        yield f"{good} of {len(parts)} parts reproduced"
    if verdict is Verdict.UNDECIDED and Verdict.NOT_REPRODUCED in verdicts and not one_is_enough:
        yield f"that one of {len(parts)} parts fails may be chance"


def in_short(missing: Sequence[str]) -> str:
    """Kinds of model with their numbers, as in ``scan AO: 3``; many as two counts."""
    if len(missing) <= 3:
        return ", ".join(missing)
    models = sum(int(kind.rpartition(": ")[2]) for kind in missing)
    return f"{models} models of {len(missing)} kinds"
