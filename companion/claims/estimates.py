"""Estimates: a number of a result with its interval, found by a dotted key, and the difference of two."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from attnlib.errors import AttnlibError, BadInput

KEY = re.compile(r"[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)*")


class MissingKey(BadInput):
    """A result that lacks the number a claim asks for: the claim or the experiment is wired wrongly."""


class CannotBeRun(AttnlibError):
    """A result that says, on the way to the key, why the number cannot be had."""


class NotRun(AttnlibError):
    """A result that says, on the way to the key, why its settings leave nothing to take the number from."""


@dataclass(frozen=True)
class Estimate:
    """A point, its interval, the number of independent runs behind it, and what it was chosen from.

    ``at_least``: runs that never got there count with all their updates, so that the number is a bound from
    below; the interval has no upper end. ``weakest``: which of ``weakest_of`` it is, if the result says so.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    weakest_of: tuple[str, ...] = ()
    weakest: str = ""
    at_least: bool = False

    @property
    def defined(self) -> bool:
        return math.isfinite(self.value)

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def ends(self) -> tuple[float, float]:
        return (self.low, self.high) if self.has_interval else (self.value, self.value)

    def as_json(self) -> dict[str, float | int | bool | None]:
        """The number with its interval; None for what is undefined, and for the end that a bound lacks."""
        ends = {"low": self.low, "high": None if self.at_least else self.high}
        content = {"value": self.value if self.defined else None, **ends, "n": self.n}
        return content | ({"at_least": True} if self.at_least else {})

    def __str__(self) -> str:
        if not self.defined:
            return "undefined"
        runs = [] if self.n is None else [f"n = {self.n}"]
        if self.weakest_of:
            which = self.weakest or ", ".join(self.weakest_of)
            runs.append(f"the weakest of {len(self.weakest_of)}: {which}")
        if self.at_least:
            return ", ".join([f"at least {figure(self.low)}", *runs])
        if self.has_interval and self.low == self.high == self.value and self.n:
            return f"{figure(self.value)} ({', '.join([*runs, 'the same in each'])})"
        if self.has_interval:
            ends = f"{figure(self.low, like=self.value)}, {figure(self.high, like=self.value)}"
            return ", ".join([f"{figure(self.value)} [{ends}]", *runs])
        return f"{figure(self.value)} ({', '.join([*runs, 'no interval'])})"


def figure(value: float, like: float | None = None) -> str:
    """Three decimals for shares and correlations, one for percentages; a true minus sign, and none of zero.

    An end of an interval has as many as the number that it is ``like``.

    >>> figure(-0.25), figure(-0.0001), figure(61.24), figure(9.5, like=61.24)
    ('−0.250', '0.000', '61.2', '9.5')
    """
    decimals = 3 if abs(value if like is None else like) < 10 else 1
    return f"{value:z.{decimals}f}".replace("-", "−")


def _number(content: object, key: str) -> float:
    if content is None:
        return math.nan
    if isinstance(content, bool) or not isinstance(content, int | float):
        raise MissingKey(f"key {key!r} leads to {content!r}, not a number; name a numeric leaf of the result")
    return float(content)


def content_at(values: Mapping, key: str, result: str = "the result") -> object:
    """What a result's values hold at a dotted key: a number, an interval, text or a list.

    A whole number in the key leads into a list; ``result`` is what the message calls the result.

    Raises CannotBeRun, NotRun: a branch on the way, or what is at the key, has ``cannot_be_run`` (say, data
    not there) or ``not_run`` (say, too few heads for such networks) with the reason. MissingKey: there is no
    such key (the message names the nearest one), or it leads to a branch.
    """
    names, path = key.split("."), [values]
    for name in names:
        here = path[-1]
        if isinstance(here, Mapping) and name in here:
            path.append(here[name])
        elif isinstance(here, list | tuple) and name.isdecimal() and int(name) < len(here):
            path.append(here[int(name)])
        else:
            break
    here, depth = path[-1], len(path) - 1
    branches = [step for step in path if isinstance(step, Mapping)]
    for branch in branches:
        if isinstance(branch.get("cannot_be_run"), str):
            raise CannotBeRun(branch["cannot_be_run"])
    if depth < len(names):
        near = get_close_matches(name, here, n=1) if isinstance(here, Mapping) else ()  # beside it: quick
        hint = f"; did you mean {near[0]!r}?" if near else ""
        under = f"under {'.'.join(names[:depth])!r}" if depth else "at the top"
        raise MissingKey(f"{result} has no key {key!r} (nothing named {name!r} {under}){hint}")
    for branch in branches:
        if "not_run" in branch:
            raise NotRun(str(branch["not_run"]))
    if isinstance(here, Mapping) and "value" not in here:
        leaves = ", ".join(map(str, list(here)[:8]))
        raise MissingKey(f"key {key!r} leads to a branch ({leaves}), not a number; name one of its leaves")
    return here


def look_up(values: Mapping, key: str) -> Estimate:
    """The number at a dotted ``key`` of a result's values (errors as :func:`content_at`).

    It is a number, ``None``, or ``{"value", "low", "high", "n"}``, with ``weakest_of`` where it was chosen
    (beside it, ``data`` says which it is), and ``at_least`` where it is a bound from below.
    """
    content = content_at(values, key)
    if not isinstance(content, Mapping):
        return Estimate(_number(content, key))
    point, low, high = (_number(content.get(name), key) for name in ("value", "low", "high"))
    n, chosen = content.get("n"), tuple(content.get("weakest_of", ()))
    weakest = _beside(values, key, "data") if chosen else ""
    if content.get("at_least") and not math.isnan(low):
        return Estimate(point, low, math.inf, n, chosen, weakest, at_least=True)
    if math.isnan(low) or math.isnan(high):
        return Estimate(point, n=n, weakest_of=chosen, weakest=weakest)
    return Estimate(point, low, high, n, chosen, weakest)


def _beside(values: Mapping, key: str, name: str) -> str:
    """Return the text that a result has beside a number; empty where it has none."""
    branch = values
    for piece in key.split(".")[:-1]:
        branch = branch[piece]
    text = branch.get(name)
    return text if isinstance(text, str) else ""


def difference(first: Estimate, second: Estimate, *, independent: bool) -> Estimate:
    """The estimate of ``first - second``, without an interval when either has none.

    A number with neither interval nor runs, such as the share of the commonest label, is exact beside one of
    runs.

    For ``independent`` estimates this is the square-and-add interval of Zou and Donner (2008, Statistics in
    Medicine 27(10), 1693-1702): d - √((a - low_a)² + (high_b - b)²) below, and likewise above. Otherwise it
    is the widest one, low_a - high_b to high_a - low_b, which holds whatever the dependence and is cautious.
    """
    both, value = (first, second), first.value - second.value
    n = min((estimate.n for estimate in both if estimate.n is not None), default=None)
    exact = [estimate.n is None and not estimate.has_interval for estimate in both]
    if all(exact) or not all(
        estimate.has_interval or known for estimate, known in zip(both, exact, strict=True)
    ):
        return Estimate(value, n=n)
    (low, high), (lowest, highest) = first.ends, second.ends
    if not independent:
        return Estimate(value, low - highest, high - lowest, n)
    below = math.hypot(first.value - low, highest - second.value)
    above = math.hypot(high - first.value, second.value - lowest)
    return Estimate(value, value - below, value + above, n)
