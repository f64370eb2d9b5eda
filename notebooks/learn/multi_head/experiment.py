"""Several heads make learning likelier: one good first query map among bad ones is enough."""

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Annotated

import numpy as np

from attnlib.errors import NotMeasured
from companion.results.config import BaseConfig, Field, NotNegative, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copied_sentences import words_of
from notebooks.shared.copying import (
    check_checkpoints,
    course_rows,
    enough,
    followed,
    has_failed,
    judged,
    measure_copying,
    outcome,
    outcome_rows,
    share,
    sides,
    turned_away,
)
from notebooks.shared.intervals import Interval, Point, matched, over_seeds, paired, share_interval

GOOD = 0  # place of the good head in its network


def failures_apart(first: list[Point], second: list[Point]) -> dict[str, float | int | None]:
    """Share of networks of the first kind that fail less that of the second, in pairs of one seed."""
    pairs = [(has_failed(one), has_failed(other)) for _, (one, other) in matched(first, second)]
    return share_difference(pairs).as_dict() if pairs else over_seeds([], has_failed)


def good_head(points: list[Point], alone: list[Point], steps: int) -> dict:
    """Whether the good head has the most weight on the word to be said (``wins``), at the last snapshot.

    Only of networks that did not fail: in others no head need attend to that word. ``alone`` is the outcome
    of the trials of good heads.
    """
    learned = [(name, course["head_right"][-1]) for name, course in points if not has_failed(course)]
    return {
        "n": len(learned),
        "wins": share([weights[GOOD] > _best_other(weights) for _, weights in learned]),
        "weight": over_seeds(learned, itemgetter(GOOD)),
        "best_other": over_seeds(learned, _best_other),
        "alone": outcome(alone, steps),
    }


def _best_other(weights: list[float]) -> float:
    return max(weights[:GOOD] + weights[GOOD + 1 :], default=0.0)


SCENARIOS = ("all_bad", "copied", "one_good", "random", "alone")
SCREENED = ("all_bad", "copied", "one_good")  # made of heads that were tried alone
KINDS = ("good", "bad")
BAD = 0.6  # accuracy under which a single head's course ends on all data seeds (the authors' configuration)
UNSEEN = 100_000  # heads of the random scenario are numbered from here, beyond all candidates


def standing(accuracy: list[float]) -> str | None:
    """What a course alone makes of a head (Snell et al., 5.2): ``good``, ``bad``, or None for neither.

    >>> standing([0.1, 0.96, 0.8]), standing([0.1, 0.7, 0.5]), standing([0.1, 0.5, 0.7])
    ('good', 'bad', None)
    """
    if enough(max(accuracy)):
        return "good"
    return "bad" if accuracy[-1] < BAD else None


def too_few(scenario: str, heads: int, good: list[int], bad: list[int], *, tried: int) -> str:
    """Why there are no networks of a scenario, with ``tried`` heads alone; empty where there are."""
    needed = {"all_bad": heads, "copied": 1, "one_good": heads - 1}.get(scenario, 0)
    if len(bad) < needed:
        return f"{len(bad)} of {tried} heads turned out bad when alone; such networks need {needed}"
    if scenario == "one_good" and not good:
        return f"none of {tried} heads turned out good when alone"
    return ""


def together(points: list[Point], length: int, step: int) -> dict:
    """In how many networks all heads end drawn to the right word, none or some; others are driven away.

    Several heads are as many chances to start well only if each goes its own way. ``same`` is the share of
    networks in which every head is on its final side of uniform attention at the early snapshot, ``step``.
    """
    ends = [_drawn(course, -1, length) for _, course in points]
    early = [_drawn(course, course["steps"].index(step), length) for _, course in points]
    every, none = sum(map(all, ends)), sum(not any(own) for own in ends)
    return {
        "n": len(points),
        "step": step,
        "all_drawn": every,
        "none_drawn": none,
        "mixed": len(points) - every - none,
        "same": share([first == last for first, last in zip(early, ends, strict=True)]),
    }


def chances(alone: list[Point], several: list[Point], length: int) -> dict:
    """Shares of networks of one head and of several that have a head drawn to the right word, and pairs."""

    def some(course: dict) -> bool:
        return any(_drawn(course, -1, length))

    pairs = [tuple(map(some, both)) for _, both in matched(several, alone)]
    return {
        "alone": share([some(course) for _, course in alone]),
        "several": share([some(course) for _, course in several]),
        "several_less_alone": share_difference(pairs).as_dict() if pairs else over_seeds([], len),
        "both": pairs.count((True, True)),
        "several_only": pairs.count((True, False)),
        "alone_only": pairs.count((False, True)),
        "neither": pairs.count((False, False)),
    }


def _drawn(course: dict, look: int, length: int) -> list[bool]:
    return [weight >= 1 / length for weight in course["head_right"][look]]


PLACE = "Snell et al. 2021, Figure 6; section 5.2"
QUESTION = "Do several heads help because one of them is likely to start well?"
EARLY = 20  # updates after which the way that attention goes may show


class Config(BaseConfig):
    """Settings.

    Attributes:
        candidates: heads that are tried alone, numbered from 0.
        trials: data seeds, from 0, on which a head has to be good or bad.
        seeds: networks of each scenario, on data seeds that no head was judged on.
        heads: heads of each.
        body: all parameters but the query maps of networks of good and bad heads, as a seed. Random heads
            have this body and the ones after it, each network its own.
        elsewhere: further bodies in which some good and bad heads are tried alone.
        moved: good heads, and bad ones, that are tried there.
        length: words of a permutation.
        width: of embeddings and states.
        steps: updates after which heads and networks are judged.
        every: updates between two snapshots.
        followed: updates in training, if more than steps. Heads whose attention is driven away from the word
            to be said learn too, only later (:mod:`~notebooks.shared.copying`): by the 200 updates of
            the authors' configuration, at full size, too much so to be called bad.
    """

    candidates: Annotated[int, Field(ge=1, lt=UNSEEN)] = 12
    trials: Positive = 1
    seeds: Positive = 3
    heads: Positive = 4
    body: NotNegative = 0
    elsewhere: NotNegative = 1
    moved: NotNegative = 2
    length: int = 12
    width: Positive = 32
    steps: Positive = 200
    every: Positive = 10
    followed: Positive = 200

    def check(self) -> None:
        words_of("permutation", self.length)
        check_checkpoints(self.steps, self.every, self.updates)

    @property
    def updates(self) -> int:
        """How long networks are trained: as long as they are judged, or for longer."""
        return max(self.steps, self.followed)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        candidates=20, trials=3, seeds=20, heads=8, elsewhere=2, moved=3, length=40, width=256, steps=100
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    """What is known before any network is trained: first trials, and random heads; the rest follows."""
    first = [_spec(config, (head,), 0, config.body) for head in range(config.candidates)]
    random = [spec for scenario in ("random", "alone") for spec in _scenario(scenario, config, [], [])]
    return measurements_of([*first, *random], measure_copying)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Which single heads are good or bad, and what becomes of networks that combine them.

    The first ``steps`` updates of a course count. A head is *good*, or *bad*, when it is on every data seed
    (:func:`standing`); one that is neither, or not what it was before, is not tried on the next. A scenario
    for which there are too few of them has no networks, and ``not_run`` says so beside its values.

    Values by scenario are those of :mod:`notebooks.shared.copying`, ``single`` being the first trials of all
    heads and ``elsewhere_{good, bad}`` heads in other bodies; later trials are the scenario ``again``.

    Raises:
        NotMeasured: a store that does not train lacks a run of a single head.
    """
    trials, heads = _screened(config, store)
    specs = {scenario: _scenario(scenario, config, **heads) for scenario in SCENARIOS}
    specs |= {f"elsewhere_{kind}": _moved(config, own) for kind, own in heads.items()}
    whole = {"single": _named("single", trials[0])}
    whole |= {name: _named(name, _asked(own, store)) for name, own in specs.items()}
    found = {name: judged(points, config.steps) for name, points in whole.items()}
    values: dict[str, dict] = {
        name: outcome(points, config.steps)
        | {"head_sets": len({frozenset(columns["heads"].split()) for columns, _ in points})}
        | {"turned": turned_away(points, config.length)}
        | {"followed": followed(whole[name], config.steps, config.updates)}
        for name, points in found.items()
    }
    good = [point for trial in trials for point in trial if point[0]["heads"][0] in heads["good"]]
    early = _early(config)
    values |= {
        "random_over_alone": paired(found["random"], found["alone"], lambda course: course["accuracy"][-1]),
        "all_bad_less_one_good": failures_apart(found["all_bad"], found["one_good"]),
        "good_head": good_head(found["one_good"], judged(good, config.steps), config.steps),
        "together": {name: together(whole[name], config.length, early) for name in ("single", *SCENARIOS)},
        "chances": chances(whole["alone"], whole["random"], config.length),
        "sides": sides(whole["alone"], config.length, early),
    }
    for scenario in SCREENED:
        if reason := too_few(scenario, config.heads, tried=config.candidates, **heads):
            values[scenario]["not_run"] = reason
            if scenario != "copied":
                values["all_bad_less_one_good"]["not_run"] = reason
    values["heads"] = {
        "tried": len(trials[0]),
        "runs": sum(map(len, trials)),
        "bad_later": sum(standing(course["accuracy"]) == "bad" for _, course in trials[0]),
        **{kind: len(own) for kind, own in heads.items()},
    }
    again = [point for trial in trials[1:] for point in _named("again", trial)]
    everything = [*(point for points in whole.values() for point in points), *again]
    return values, {
        "courses": course_rows(everything),
        "outcomes": outcome_rows(judged(everything, config.steps)),
    }


def _early(config: Config) -> int:
    """The last look at or before :data:`EARLY`, or the first after the beginning."""
    return min(max(EARLY // config.every, 1) * config.every, config.updates)


def _screened(config: Config, store: Store) -> tuple[list[list[Point]], dict[str, list[int]]]:
    """The trials' points, and the heads that are good, or bad, on every data seed."""
    heads: dict[int, str] = {}
    trials = []
    for seed in range(config.trials):
        tried = heads if seed else range(config.candidates)
        points = _asked([_spec(config, (head,), seed, config.body) for head in tried], store)
        if len(points) < len(tried):
            raise NotMeasured(
                f"{len(tried) - len(points)} of {len(tried)} single heads have no answer yet on data seed "
                f"{seed}; which heads are good or bad depends on all of them"
            )
        found = judged(points, config.steps)
        seen = {columns["heads"][0]: standing(course["accuracy"]) for columns, course in found}
        heads = {head: kind for head, kind in seen.items() if kind and heads.get(head, kind) == kind}
        trials.append(points)
    return trials, {kind: [head for head, own in heads.items() if own == kind] for kind in KINDS}


def _scenario(scenario: str, config: Config, good: list[int], bad: list[int]) -> list[RunSpec]:
    """The networks of a scenario; none where good or bad heads are too few.

    In ``copied`` all heads are the first of ``all_bad``: equal heads learn alike, so this is one head with a
    longer context. Heads of ``random`` were never tried; ``alone`` has the first of each.
    """
    heads, specs = config.heads, []
    if too_few(scenario, heads, good, bad, tried=0):
        return []
    moves = 0 if scenario in SCREENED else 1  # to a body of its own
    for seed in range(config.seeds):
        generator = np.random.default_rng(seed)
        drawn = [bad[place] for place in generator.permutation(len(bad))]
        if scenario == "all_bad":
            own = drawn[:heads]
        elif scenario == "copied":
            own = drawn[:1] * heads
        elif scenario == "one_good":
            own = [good[generator.integers(len(good))], *drawn[: heads - 1]]
        else:
            first = UNSEEN + seed * heads
            own = range(first, first + (heads if scenario == "random" else 1))
        specs.append(_spec(config, tuple(own), config.trials + seed, config.body + moves * seed))
    return specs


def _moved(config: Config, heads: list[int]) -> list[RunSpec]:
    bodies = range(config.body + 1, config.body + 1 + config.elsewhere)
    return [_spec(config, (head,), 0, body) for body in bodies for head in heads[: config.moved]]


def _spec(config: Config, heads: tuple[int, ...], seed: int, body: int) -> RunSpec:
    settings = {name: getattr(config, name) for name in ("length", "width", "every")}
    return RunSpec.of("multi_head", heads=heads, body=body, seed=seed, steps=config.updates, **settings)


def _asked(specs: Iterable[RunSpec], store: Store) -> list[Point]:
    """(settings, course) of every network that the store knows or may train."""
    return answers(measurements_of(specs, measure_copying), store)


def _named(scenario: str, points: list[Point]) -> list[Point]:
    """The same points under the columns that name a network in this chapter."""
    named = []
    for name, course in points:
        heads = " ".join(map(str, name["heads"]))
        named.append(
            ({"scenario": scenario, "heads": heads, "body": name["body"], "seed": name["seed"]}, course)
        )
    return named


def share_difference(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """The share of the first less that of the second, with Newcombe's interval for pairs.

    It adds the squares of how far Wilson's bounds stand from each share, less twice their product times φ,
    the correlation of both in the pairs: method 10 of Newcombe (1998, Statistics in Medicine 17(22),
    2635-2650). φ is corrected for continuity where it is positive, and 0 where one of the two always or never
    happens. Unlike an interval of the mean of the differences it stays inside [-1, 1], and is not a point
    where all pairs are alike.

    >>> share_difference([(True, False)] * 3).value, round(share_difference([(True, False)] * 3).low, 2)
    (1.0, 0.21)
    """
    n = len(pairs)
    one, other = (share_interval(sum(own), n) for own in zip(*pairs, strict=True))
    correlation = _correlation(pairs)

    def apart(first: float, second: float) -> float:
        return math.sqrt(max(0.0, first**2 - 2 * correlation * first * second + second**2))

    value = sum(first - second for first, second in pairs) / n
    low = value - apart(one.value - one.low, other.high - other.value)
    high = value + apart(one.high - one.value, other.value - other.low)
    return Interval(value, low, high, n)


def _correlation(pairs: Sequence[tuple[bool, bool]]) -> float:
    """φ of the two, from counts of pairs with both, with one alone and with neither."""
    n = len(pairs)
    both, neither = sum(a and b for a, b in pairs), sum(not (a or b) for a, b in pairs)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    spread = first * (n - first) * second * (n - second)
    if not spread:
        return 0.0
    excess = both * neither - (first - both) * (second - both)
    return (max(excess - n / 2, 0.0) if excess > 0 else excess) / math.sqrt(spread)
