"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
import statistics
from collections.abc import Callable
from itertools import product
from operator import itemgetter

from companion.results.config import BaseConfig, Positive
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying_points as copying
from notebooks.shared.copying import measure_copying
from notebooks.shared.intervals import Point, over_seeds
from notebooks.shared.permutation_copying import KINDS, words_of
from notebooks.shared.plan import Plan, Points, answered, asked, by_network, each_seed, plan_of, settings_of
from notebooks.shared.thresholds import HALF

FACTOR = 2  # weight of so many times uniform attention's, or a share of 1 in so many, is no longer uniform
WAYS = ("drawn", "away")
TIMES = ("left", "known", "there", "lead", "steps_to_learn")


def events(course: dict, length: int) -> dict[str, object]:
    """Updates until something happens, None where it never does.

    Attention has ``left`` uniform attention at the first snapshot where the mean weight on the next word is
    at least ``FACTOR`` / length (``way`` *drawn*) or at most 1 / (``FACTOR`` · length) (driven *away*). Words
    are ``known``, and attention is ``there``, from the first snapshot at which the largest β, or the largest
    weight, is at the next word to write for half of the words. ``lead`` is the last less the one before.
    """

    def first(name: str, holds: Callable[[float], bool]) -> tuple[int | None, float]:
        snapshots = zip(course["steps"], course[name], strict=True)
        return next((snapshot for snapshot in snapshots if holds(snapshot[1])), (None, 0.0))

    low, high = 1 / (FACTOR * length), FACTOR / length
    left, weight = first("attention_right", lambda weight: weight <= low or weight >= high)
    known, _ = first("probe_agreement", lambda share: share >= HALF)
    there, _ = first("attention_accuracy", lambda share: share >= HALF)
    return {
        "way": None if left is None else "drawn" if weight > 1 / length else "away",
        "left": left,
        "known": known,
        "there": there,
        "lead": None if known is None or there is None else there - known,
        "steps_to_learn": copying.steps_to_learn(course),
    }


def knowledge_first(learned: list[Point], uniform: list[Point], length: int) -> dict:
    """Which way attention goes, and whether words are known when it gets to the right place.

    ``stays``: networks that never leave uniform attention; for both ways the :func:`events`; ``first``:
    networks where words came first; ``held``: the share of words that networks which never attend know after
    as many updates as ``there`` (over ``n_held`` times); and times to learn.
    """
    seen = [(name, events(course, length)) for name, course in learned]
    return {"stays": sum(own["way"] is None for _, own in seen)} | {
        way: _group([(name, own) for name, own in seen if own["way"] == way], uniform) for way in WAYS
    }


def _group(points: list[Point], uniform: list[Point]) -> dict:
    followed_to = [set(course["steps"]) for _, course in uniform]
    held = [own["there"] for _, own in points if uniform and all(own["there"] in to for to in followed_to)]
    times = [own["steps_to_learn"] for _, own in points if own["steps_to_learn"] is not None]

    def known_then(course: dict) -> float:
        known = dict(zip(course["steps"], course["probe_agreement"], strict=True))
        return statistics.fmean(known[step] for step in held)

    return {
        "n": len(points),
        **{name: over_seeds(points, itemgetter(name)) for name in TIMES},
        "first": sum((own["lead"] or 0) > 0 for _, own in points),
        "held": over_seeds(uniform if held else [], known_then),
        "n_held": len(held),
        "soonest": min(times, default=None),
        "latest": max(times, default=None),
    }


NETWORKS = ("learned", "uniform", "proxy")
SHARED_KIND, SHARED_NETWORKS = "sample", ("learned", "uniform")  # what fixed_permutation trains to copy


class Config(BaseConfig):
    """Settings; a network is a kind of sentences × (learned or uniform attention, or the proxy) × seed."""

    kind: tuple[str, ...] = KINDS  #: of sentences: ``permutation``, ``sample``, ``mixture``
    seeds: Positive = 3  #: networks with learned attention of each kind
    controls: Positive = 2  #: networks with uniform attention, and bags of words, of each kind
    length: int = 16  #: words of a sentence; the vocabularies grow with it
    width: Positive = 64  #: of embeddings and states
    steps: Positive = 200  #: updates after which networks are judged
    every: Positive = 10  #: updates between two snapshots
    #: updates of learned attention on permutations and mixtures, if more. What fails may be slow.
    followed: Positive = 200
    #: updates of the networks that copy samples, if more. With as many as
    #: :mod:`~notebooks.learn.fixed_permutation.experiment` has, these are its networks.
    sample_steps: Positive = 240

    def check(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        updates = [self.updates(kind, network) for kind in self.kind for network in NETWORKS]
        copying.check_checkpoints(self.steps, self.every, max(updates, default=self.steps))

    def updates(self, kind: str, network: str) -> int:
        """How long a network is trained: as long as it is judged, or for longer."""
        if kind == SHARED_KIND:
            return max(self.steps, self.sample_steps) if network in SHARED_NETWORKS else self.steps
        return max(self.steps, self.followed) if network == "learned" else self.steps


PROFILES = {
    "quick": Config(length=10, steps=140, followed=140, sample_steps=140),
    "paper": Config(seeds=20, controls=5, length=40, width=256, followed=500, sample_steps=300),
    "tiny": Config(seeds=2, controls=1, length=4, width=8, steps=4, every=2, followed=4, sample_steps=6),
}


def _plan(config: Config) -> tuple[Plan]:
    """The courses of all networks, by kind of sentences and network."""
    groups = {}
    for kind, network in product(config.kind, NETWORKS):
        own = settings_of(config, "length", "width", "every")
        own |= {"kind": kind, "network": network, "steps": config.updates(kind, network)}
        seeds = config.seeds if network == "learned" else config.controls
        groups[kind, network] = each_seed(seeds, RunSpec.of, "permutation_copying", **own)
    return (plan_of(groups, measure_copying),)


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The courses of all networks, and what became of them, as in :mod:`notebooks.shared.copying`.

    Values by kind are of learned attention after ``steps`` updates; ``floor``, log(length), and
    ``ignorance``, log(words), are entropies.
    """
    points = answered(*_plan(config), store)
    whole = list(by_network(points, "kind", "network"))
    values = {kind: _of_kind(kind, config, points) for kind in config.kind}
    outcomes = copying.outcome_rows(copying.judged(whole, config.steps))
    for row, (_, course) in zip(outcomes, whole, strict=True):
        row["way"] = events(course, config.length)["way"] if row["network"] == "learned" else None
    return values, {"courses": copying.course_rows(whole), "outcomes": outcomes}


def _of_kind(kind: str, config: Config, points: Points) -> dict:
    trained = {network: points.get((kind, network), []) for network in NETWORKS}
    learned, uniform, proxy = (copying.judged(points, config.steps) for points in trained.values())
    return {
        **copying.outcome(learned, config.steps),
        "turned": copying.turned_away(learned, config.length),
        "ways": knowledge_first(trained["learned"], trained["uniform"], config.length),
        "followed": copying.followed(trained["learned"], config.steps, config.updates(kind, "learned")),
        "probe_agreement": copying.last(learned, "probe_agreement"),
        "uniform": {"accuracy": copying.last(uniform, "accuracy")} | copying.probes(uniform),
        "proxy": copying.probes(proxy)
        | {name: copying.last(proxy, name) for name in ("accuracy", "above_floor")},
        "floor": math.log(config.length),
        "ignorance": math.log(words_of(kind, config.length)),
    }
