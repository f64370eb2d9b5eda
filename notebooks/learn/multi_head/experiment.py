"""Several heads make learning likelier: one good first query map among bad ones is enough."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Annotated

import numpy as np

from attnlib.errors import NotMeasured
from companion.results.config import BaseConfig, Field, NotNegative, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying_points as copying
from notebooks.shared.copying import measure_copying
from notebooks.shared.intervals import Point, bounded, interval, matched, over_seeds, paired, share_interval
from notebooks.shared.permutation_copying import words_of
from notebooks.shared.plan import picked, settings_of
from notebooks.shared.thresholds import standing

SCENARIOS = ("all_bad", "copied", "one_good", "random", "alone")
SCREENED = ("all_bad", "copied", "one_good")  # made of heads that were tried alone
KINDS = ("good", "bad")
BESIDE = ("body", "seed")  # what a row is named by beside its heads
UNSEEN = 100_000  # heads of the random scenario are numbered from here, beyond all candidates
EARLY = 20  # updates after which the way that attention goes may show


class Config(BaseConfig):
    candidates: Annotated[int, Field(ge=1, lt=UNSEEN)] = 12  #: heads that are tried alone, numbered from 0
    trials: Positive = 1  #: data seeds, from 0, on which a head has to be good or bad
    seeds: Positive = 3  #: networks of each scenario, on data seeds that no head was judged on
    heads: Positive = 4  #: heads of each
    #: all parameters but the query maps of networks of good and bad heads, as a seed. Random heads have this
    #: body and the ones after it, each network its own.
    body: NotNegative = 0
    elsewhere: NotNegative = 1  #: further bodies in which some good and bad heads are tried alone
    moved: NotNegative = 2  #: good heads, and bad ones, that are tried there
    length: int = 12  #: words of a permutation
    width: Positive = 32  #: of embeddings and states
    steps: Positive = 200  #: updates after which heads and networks are judged
    every: Positive = 10  #: updates between two snapshots
    #: updates in training, if more than steps. Heads whose attention is driven away from the word to write
    #: learn too, only later (:mod:`~notebooks.shared.copying`): by the 200 updates of the authors'
    #: configuration, at full size, too much so to be called bad.
    followed: Positive = 200

    def check(self) -> None:
        words_of("permutation", self.length)
        copying.check_checkpoints(self.steps, self.every, self.updates)

    @property
    def updates(self) -> int:
        """How long networks are trained: as long as they are judged, or for longer."""
        return max(self.steps, self.followed)

    @property
    def early(self) -> int:
        """The last snapshot at or before :data:`EARLY`, or the first after the beginning."""
        return min(max(EARLY // self.every, 1) * self.every, self.updates)


PROFILES = {
    # By then two of these heads are good and four are bad, as many as a network has heads.
    "quick": Config(candidates=7, moved=1, length=11, steps=160, followed=160),
    "paper": Config(
        candidates=20, trials=3, seeds=20, heads=8, elsewhere=2, moved=3, length=40, width=256, steps=100
    ),
    "tiny": Config(candidates=2, seeds=1, heads=2, moved=1, length=4, width=8, steps=2, every=2, followed=2),
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
    Raises NotMeasured: a store that does not train lacks a run of a single head.
    """
    trials, heads = _screened(config, store)
    specs = {scenario: _scenario(scenario, config, **heads) for scenario in SCENARIOS}
    bodies = range(config.body + 1, config.body + 1 + config.elsewhere)
    specs |= {
        f"elsewhere_{kind}": [_spec(config, (h,), 0, body) for body in bodies for h in own[: config.moved]]
        for kind, own in heads.items()
    }
    whole = {"single": trials[0]} | {name: _points(name, own, store) for name, own in specs.items()}
    found = {name: copying.judged(points, config.steps) for name, points in whole.items()}
    values: dict[str, dict] = {
        name: copying.outcome(points, config.steps)
        | {"head_sets": len({frozenset(columns["heads"].split()) for columns, _ in points})}
        | {"turned": copying.turned_away(points, config.length)}
        | {"followed": copying.followed(whole[name], config.steps, config.updates)}
        for name, points in found.items()
    }
    good = [point for trial in trials for point in trial if int(point[0]["heads"]) in heads["good"]]
    values |= {
        "random_over_alone": paired(found["random"], found["alone"], lambda course: course["accuracy"][-1]),
        "all_bad_less_one_good": shares_apart(found["all_bad"], found["one_good"], copying.has_failed),
        "good_head": good_head(found["one_good"], copying.judged(good, config.steps), config.steps),
        "together": {n: together(whole[n], config.length, config.early) for n in ("single", *SCENARIOS)},
        "chances": chances(whole["alone"], whole["random"], config.length)
        | {"some_good": some_good(trials[0], config.heads)},
        "sides": copying.sides(whole["alone"], config.length, config.early),
        "heads": {
            "tried": len(trials[0]),
            "runs": sum(map(len, trials)),
            "bad_later": sum(standing(course["accuracy"]) == "bad" for _, course in trials[0]),
            **{kind: len(own) for kind, own in heads.items()},
        },
    }
    for scenario in SCREENED:
        if reason := too_few(scenario, config.heads, **heads):
            values[scenario]["not_run"] = reason
            if scenario != "copied":
                values["all_bad_less_one_good"]["not_run"] = reason
    everything = [point for points in (*whole.values(), *trials[1:]) for point in points]
    outcomes = copying.outcome_rows(copying.judged(everything, config.steps))
    return values, {"courses": copying.course_rows(everything), "outcomes": outcomes}


# Which heads are good or bad, and the networks made of them.


def too_few(scenario: str, heads: int, good: list[int], bad: list[int]) -> str:
    """Why there are no networks of a scenario; empty where there are."""
    needed = {"all_bad": heads, "copied": 1, "one_good": heads - 1}.get(scenario, 0)
    if len(bad) < needed:
        return "too few of the heads that were tried alone turned out bad"
    if scenario == "one_good" and not good:
        return "none of the heads that were tried alone turned out good"
    return ""


def _screened(config: Config, store: Store) -> tuple[list[list[Point]], dict[str, list[int]]]:
    """The trials' points, and the heads that are good, or bad, on every data seed."""
    heads: dict[int, str] = {}
    trials = []
    for seed in range(config.trials):
        tried = heads if seed else range(config.candidates)
        specs = [_spec(config, (head,), seed, config.body) for head in tried]
        points = _points("again" if seed else "single", specs, store)
        if len(points) < len(tried):
            raise NotMeasured(
                f"{len(tried) - len(points)} of {len(tried)} single heads have no answer yet on data seed "
                f"{seed}; which heads are good or bad depends on all of them"
            )
        found = copying.judged(points, config.steps)
        seen = {int(columns["heads"]): standing(course["accuracy"]) for columns, course in found}
        heads = {head: kind for head, kind in seen.items() if kind and heads.get(head, kind) == kind}
        trials.append(points)
    return trials, {kind: [head for head, own in heads.items() if own == kind] for kind in KINDS}


def _scenario(scenario: str, config: Config, good: list[int], bad: list[int]) -> list[RunSpec]:
    """The networks of a scenario; none where good or bad heads are too few.

    In ``copied`` all heads are the first of ``all_bad``: equal heads learn alike, so this is one head with a
    longer context. Heads of ``random`` were never tried; ``alone`` has the first of each.
    """
    heads, specs = config.heads, []
    if too_few(scenario, heads, good, bad):
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


def _spec(config: Config, heads: tuple[int, ...], seed: int, body: int) -> RunSpec:
    shared = settings_of(config, "length", "width", "every")
    return RunSpec.of("multi_head", heads=heads, body=body, seed=seed, steps=config.updates, **shared)


def _points(scenario: str, specs: Iterable[RunSpec], store: Store) -> list[Point]:
    """Every network that the store knows or may train, under the columns that name it in this chapter."""
    return [
        ({"scenario": scenario, "heads": " ".join(map(str, name["heads"]))} | picked(name, BESIDE), course)
        for name, course in answers(measurements_of(specs, measure_copying), store)
    ]


# Who attends in a network of several heads, and how scenarios compare.


def good_head(points: list[Point], alone: list[Point], steps: int) -> dict:
    """Whether the good head, a network's first, has the most weight on the next word to write (``wins``).

    At the last snapshot, of networks that did not fail: in others no head need attend to that word.
    ``alone``: the outcome of the trials of good heads.
    """
    ends = [(name, course["head_right"][-1]) for name, course in points if not copying.has_failed(course)]
    seen = [(name, {"weight": own, "best_other": max(others, default=0.0)}) for name, (own, *others) in ends]
    return {
        "n": len(seen),
        "wins": copying.share([found["weight"] > found["best_other"] for _, found in seen]),
        **{name: bounded(over_seeds(seen, itemgetter(name)), high=1.0) for name in ("weight", "best_other")},
        "alone": copying.outcome(alone, steps),
    }


def together(points: list[Point], length: int, step: int) -> dict:
    """In how many networks all heads end drawn to the right word, none or some; others are driven away.

    Several heads are as many chances to start well only if each goes its own way.
    ``same`` is the share of networks in which every head is on its final side at the snapshot ``step``.
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
        "same": copying.share([first == last for first, last in zip(early, ends, strict=True)]),
    }


def chances(alone: list[Point], several: list[Point], length: int) -> dict:
    """Shares of networks of one head and of several that have a head drawn to the right word, and pairs."""

    def some(course: dict) -> bool:
        return any(_drawn(course, -1, length))

    pairs = Counter(tuple(map(some, both)) for _, both in matched(several, alone))
    return {
        "alone": copying.share([some(course) for _, course in alone]),
        "several": copying.share([some(course) for _, course in several]),
        "several_less_alone": shares_apart(several, alone, some),
        "both": pairs[True, True],
        "several_only": pairs[True, False],
        "alone_only": pairs[False, True],
        "neither": pairs[False, False],
    }


def some_good(alone: list[Point], heads: int) -> dict[str, float | int | None]:
    """The chance that one of so many heads is good, from the share of single heads that are.

    Good is a head as the paper has it, right for 95 % within all of its updates on its first set of data.
    Heads are drawn one by one. Its interval is that of the share of single heads.
    """
    single = copying.share([standing(course["accuracy"]) == "good" for _, course in alone])
    if not single["n"]:
        return single
    ends = {end: 1 - (1 - single[end]) ** heads for end in ("value", "low", "high")}
    return single | ends


def _drawn(course: dict, snapshot: int, length: int) -> list[bool]:
    return [weight >= 1 / length for weight in course["head_right"][snapshot]]


def shares_apart(first: list[Point], second: list[Point], holds: Callable[[dict], bool]) -> dict:
    """For how many of the first something holds less for how many of the second, in pairs of one seed."""
    pairs = [(holds(one), holds(other)) for _, (one, other) in matched(first, second)]
    return share_difference(pairs) if pairs else over_seeds([], holds)


def share_difference(pairs: Sequence[tuple[bool, bool]]) -> dict:
    """The share of the first less that of the second, with Newcombe's interval for pairs.

    It adds the squares of how far Wilson's bounds stand from each share, less twice their product times φ,
    the correlation of both in the pairs: method 10 of Newcombe (1998, Statistics in Medicine 17(22),
    2635-2650). φ is corrected for continuity where it is positive, and 0 where one of the two always or never
    happens. It stays inside [-1, 1], and is not a point where all pairs are alike.
    """
    n = len(pairs)
    first, second = (sum(own) for own in zip(*pairs, strict=True))
    bounds = (share_interval(own, n) for own in (first, second))
    (one, low, high, _), (other, other_low, other_high, _) = (own.values() for own in bounds)
    excess = n * sum(map(all, pairs)) - first * second
    spread = math.sqrt(first * (n - first) * second * (n - second))
    correlation = (max(excess - n / 2, 0.0) if excess > 0 else excess) / spread if spread else 0.0

    def apart(first: float, second: float) -> float:
        return math.sqrt(max(0.0, first**2 - 2 * correlation * first * second + second**2))

    value = (first - second) / n
    below, above = apart(one - low, other_high - other), apart(high - one, other - other_low)
    return interval(value, value - below, value + above, n)
