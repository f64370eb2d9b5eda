"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
from collections.abc import Callable, Iterator
from functools import partial

from companion.results.config import BaseConfig, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared.copied_sentences import KINDS, words_of
from notebooks.shared.copying import (
    check_checkpoints,
    course_rows,
    followed,
    judged,
    last,
    measure_copying,
    outcome,
    outcome_rows,
    probes,
    steps_to_learn,
    turned_away,
)
from notebooks.shared.intervals import Point, over_seeds

# Which comes first, words or attention? When either finds the right place in networks that copy.

FACTOR = 2  # weight of so many times uniform attention's, or a share of 1 in so many, is no longer uniform
HALF = 0.5  # of the words: from there on words are known, or attention is there
WAYS = ("drawn", "away")


def knowledge_first(learned: list[Point], uniform: list[Point], length: int) -> dict:
    """Which way attention goes, and whether words are known when it gets to the right place.

    Attention leaves uniform attention at the first snapshot where the mean weight on the word to be said is
    at
    least ``FACTOR`` / length (*drawn*) or at most 1 / (``FACTOR`` · length) (driven *away*). Words are known,
    and attention is there, from the first look at which the largest β, or the largest weight, of a target
    word stands at the word to be said for half of the words: the same is asked of both.

    Returns:
        ``stays``, networks that never leave; for both ways updates until attention has ``left``, words are
        ``known`` and attention is ``there``; ``lead``, the last less the one before, and ``first``, networks
        where words came first; ``held``, the share of words that networks which never attend know after as
        many updates as ``there`` (over ``n_held`` times); and times to learn.
    """
    gone = [(way(course, length), (name, course)) for name, course in learned]
    return {"stays": sum(way is None for way, _ in gone)} | {
        side: _group([point for way, point in gone if way == side], uniform, length) for side in WAYS
    }


def way(course: dict, length: int) -> str | None:
    """``drawn`` to the word to be said or driven ``away`` from it; None where attention stays uniform."""
    look = _leaves(course, length)
    if look is None:
        return None
    return "drawn" if course["attention_right"][look] > 1 / length else "away"


def _leaves(course: dict, length: int) -> int | None:
    """The first look at which attention is no longer uniform."""
    high, low = FACTOR / length, 1 / (FACTOR * length)
    return _first(course["attention_right"], lambda weight: weight >= high or weight <= low)


def _left(course: dict, length: int) -> int | None:
    look = _leaves(course, length)
    return None if look is None else course["steps"][look]


def _half(name: str, course: dict) -> int | None:
    """Updates until a share is a half."""
    look = _first(course[name], lambda share: share >= HALF)
    return None if look is None else course["steps"][look]


_known, _there = partial(_half, "probe_agreement"), partial(_half, "attention_accuracy")


def _lead(course: dict) -> int | None:
    known, there = _known(course), _there(course)
    return None if known is None or there is None else there - known


def _group(points: list[Point], uniform: list[Point], length: int) -> dict:
    times = [time for _, course in points if (time := steps_to_learn(course)) is not None]
    arrivals = [time for _, course in points if (time := _there(course)) is not None]
    seen = [step for step in arrivals if all(step in course["steps"] for _, course in uniform)]
    return {
        "n": len(points),
        "left": over_seeds(points, lambda course: _left(course, length)),
        "known": over_seeds(points, _known),
        "there": over_seeds(points, _there),
        "lead": over_seeds(points, _lead),
        "first": sum((_lead(course) or 0) > 0 for _, course in points),
        "held": over_seeds(uniform if seen else [], lambda course: _mean_share(course, seen)),
        "n_held": len(seen) if uniform else 0,
        "steps_to_learn": over_seeds(points, steps_to_learn),
        "soonest": min(times, default=None),
        "latest": max(times, default=None),
    }


def _mean_share(course: dict, updates: list[int]) -> float:
    """Of words with the largest β at the right place, over the snapshots after these updates."""
    shares = [course["probe_agreement"][course["steps"].index(step)] for step in updates]
    return math.fsum(shares) / len(shares)


def _first(series: list[float], holds: Callable[[float], bool]) -> int | None:
    return next((place for place, value in enumerate(series) if holds(value)), None)


PLACE = "Snell et al. 2021, Figure 3; section 3.3 and appendix A.3"
QUESTION = "Does attention fail to be learned where knowledge of single words cannot be learned before it?"
NETWORKS = ("learned", "uniform", "proxy")
SHARED_KIND, SHARED_NETWORKS = "sample", ("learned", "uniform")  # what fixed_permutation trains to copy


class Config(BaseConfig):
    """Settings; a network is a kind of sentences × (learned or uniform attention, or the proxy) × seed.

    Attributes:
        kind: of sentences: ``permutation``, ``sample``, ``mixture``.
        seeds: networks with learned attention of each kind.
        controls: networks with uniform attention, and bags of words, of each kind.
        length: words of a sentence; the vocabularies grow with it.
        width: of embeddings and states.
        steps: updates after which networks are judged.
        every: updates between two snapshots.
        followed: updates of learned attention on permutations and mixtures, if more. What fails may be slow.
        sample_steps: updates of the networks that copy samples, if more. With as many as
            :mod:`~notebooks.learn.fixed_permutation.experiment` has, these are its networks.
    """

    kind: tuple[str, ...] = KINDS
    seeds: Positive = 3
    controls: Positive = 2
    length: int = 16
    width: Positive = 64
    steps: Positive = 200
    every: Positive = 10
    followed: Positive = 200
    sample_steps: Positive = 240

    def check(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        updates = [self.updates(kind, network) for kind in self.kind for network in NETWORKS]
        check_checkpoints(self.steps, self.every, max(updates, default=self.steps))

    def updates(self, kind: str, network: str) -> int:
        """How long a network is trained: as long as it is judged, or for longer."""
        if kind == SHARED_KIND:
            return max(self.steps, self.sample_steps) if network in SHARED_NETWORKS else self.steps
        return max(self.steps, self.followed) if network == "learned" else self.steps


PROFILES = {
    "quick": Config(),
    "paper": Config(seeds=20, controls=5, length=40, width=256, followed=500, sample_steps=300),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(_planned(config), measure_copying)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The courses of all networks, and what became of them, as in :mod:`notebooks.shared.copying`.

    Values by kind are of learned attention after ``steps`` updates; ``floor``, log(length), and
    ``ignorance``, log(words), are entropies.
    """
    whole = [
        ({name: columns[name] for name in ("kind", "network", "seed")}, course)
        for columns, course in answers(measurements(config), store)
    ]
    values = {kind: _of_kind(kind, config, whole) for kind in config.kind}
    outcomes = outcome_rows(judged(whole, config.steps))
    for row, (columns, course) in zip(outcomes, whole, strict=True):
        row["way"] = way(course, config.length) if columns["network"] == "learned" else None
    return values, {"courses": course_rows(whole), "outcomes": outcomes}


def _planned(config: Config) -> Iterator[RunSpec]:
    settings = {name: getattr(config, name) for name in ("length", "width", "every")}
    for kind in config.kind:
        for network in NETWORKS:
            steps = config.updates(kind, network)
            for seed in range(config.seeds if network == "learned" else config.controls):
                yield RunSpec.of(
                    "permutation_copying", seed=seed, kind=kind, network=network, steps=steps, **settings
                )


def _of_kind(kind: str, config: Config, whole: list[Point]) -> dict:
    trained = {
        network: [point for point in whole if (point[0]["kind"], point[0]["network"]) == (kind, network)]
        for network in NETWORKS
    }
    learned, uniform, proxy = (judged(points, config.steps) for points in trained.values())
    return {
        **outcome(learned, config.steps),
        "turned": turned_away(learned, config.length),
        "ways": knowledge_first(trained["learned"], trained["uniform"], config.length),
        "followed": followed(trained["learned"], config.steps, config.updates(kind, "learned")),
        "probe_agreement": last(learned, "probe_agreement"),
        "uniform": {"accuracy": last(uniform, "accuracy")} | probes(uniform),
        "proxy": {name: last(proxy, name) for name in ("accuracy", "above_floor")} | probes(proxy),
        "floor": math.log(config.length),
        "ignorance": math.log(words_of(kind, config.length)),
    }
