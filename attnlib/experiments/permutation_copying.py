"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.asks import Ask, ask, specs_of
from attnlib.experiments.measures.copying import measure_copying
from attnlib.recipes.recipe import RecipeSpec
from attnlib.statistics.proportion import share_interval
from attnlib.tasks.copying import KINDS, words_of

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, Figure 3; section 3.3 and appendix A.3"
QUESTION = "Does attention fail to be learned where knowledge of single words cannot be learned before it?"
NETWORKS = ("learned", "uniform", "proxy")
LEARNED = 0.95  # accuracy from which a network has learned to copy: that of a good head, section 5.2
COLUMNS = ("steps", "loss", "accuracy", "attention_accuracy", "probe_right", "probe_elsewhere")
PROBES = ("probe_right", "probe_elsewhere", "probe_agreement")


@dataclass(frozen=True)
class Config:
    """Settings; a network is a kind of sentences × (learned or uniform attention, or the proxy) × seed.

    Attributes:
        kind: ``permutation``, ``sample``, ``mixture``.
        seeds: networks with learned attention of each kind.
        controls: networks with uniform attention, and proxies, of each kind.
        length: words of a sentence; the vocabularies grow with it.
        width: of embeddings and states.
        steps: updates; every: updates between two looks.
    """

    kind: tuple[str, ...] = KINDS
    seeds: int = 4
    controls: int = 3
    length: int = 20
    width: int = 64
    steps: int = 200
    every: int = 10

    def __post_init__(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        for name in ("seeds", "controls", "width", "steps", "every"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")


PROFILES = {"quick": Config(), "paper": Config(seeds=20, controls=5, length=40, width=256)}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network."""
    return ask((spec for *_, spec in _planned(config)), measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The courses of all networks, and what became of them.

    A network *fails* when its accuracy on held-out sentences is below 0.95 after the last update. Time to
    95 % is the first checkpoint at or above it; one that never gets there counts as the number of updates of
    the whole course, so its mean is a lower bound where some fail.

    Returns:
        values ``<kind>.{failed, steps_to_learn, accuracy, attention_accuracy, probe_agreement}`` as intervals
        over seeds (of ``failed`` Wilson's), ``<kind>.lowest_accuracy`` and ``<kind>.n``;
        ``<kind>.uniform.{accuracy, loss, probe_…}`` and ``<kind>.proxy.{loss, above_floor, probe_…}``, at the
        last checkpoint, with ``probe_gain`` = probe_right / probe_elsewhere; ``<kind>.floor``, the entropy
        log(length) of a word drawn from a set that is known, and ``<kind>.ignorance``, log(words);
        tables ``courses`` (a row a network and checkpoint) and ``outcomes`` (a row a network).
    """
    found = list(_measured(config, store))
    values = {kind: _of_kind(kind, config, found) for kind in config.kind}
    courses = [
        name | {column: measured[column][place] if column in measured else None for column in COLUMNS}
        for name, measured in found
        for place in range(len(measured["steps"]))
    ]
    outcomes = [
        name
        | {"steps_to_learn": _steps_to_learn(measured)}
        | {end: measured[end][-1] for end in ("accuracy", "attention_accuracy") if end in measured}
        for name, measured in found
    ]
    return values, {"courses": courses, "outcomes": outcomes}


def _planned(config: Config) -> Iterator[tuple[str, str, int, RecipeSpec]]:
    settings = {name: getattr(config, name) for name in ("length", "width", "steps", "every")}
    for kind in config.kind:
        for network in NETWORKS:
            for seed in range(config.seeds if network == "learned" else config.controls):
                spec = RecipeSpec.of("permutation_copying", seed=seed, kind=kind, network=network, **settings)
                yield kind, network, seed, spec


def _measured(config: Config, store: "Store") -> Iterator[Point]:
    """(kind, network and seed, course) of every network that the store knows or may train."""
    for kind, network, seed, spec in _planned(config):
        try:
            (asked,) = ask([spec], measure_copying)
            yield {"kind": kind, "network": network, "seed": seed}, asked.answer(store)
        except NotMeasured:
            continue


def _of_kind(kind: str, config: Config, found: list[Point]) -> dict:
    learned, uniform, proxy = (
        [(name, course) for name, course in found if (name["kind"], name["network"]) == (kind, network)]
        for network in NETWORKS
    )
    accuracies = [course["accuracy"][-1] for _, course in learned]
    return {
        "n": len(learned),
        "failed": _share([accuracy < LEARNED for accuracy in accuracies]),
        "lowest_accuracy": min(accuracies, default=None),
        "steps_to_learn": over_seeds(learned, lambda c: _steps_to_learn(c) or config.steps),
        **{name: _last(learned, name) for name in ("accuracy", "attention_accuracy", "probe_agreement")},
        "uniform": {name: _last(uniform, name) for name in ("accuracy", "loss", *PROBES)} | _gain(uniform),
        "proxy": {name: _last(proxy, name) for name in ("accuracy", "loss", *PROBES)}
        | _gain(proxy)
        | {"above_floor": _last(proxy, "above_floor")},
        "floor": math.log(config.length),
        "ignorance": math.log(words_of(kind, config.length)),
    }


def _share(outcomes: list[bool]) -> dict[str, float | int | None]:
    if not outcomes:
        return {"value": None, "low": None, "high": None, "n": 0}
    return share_interval(sum(outcomes), len(outcomes)).as_dict()


def _last(points: list[Point], name: str) -> dict:
    return over_seeds(points, lambda course: course[name][-1])


def _gain(points: list[Point]) -> dict[str, dict]:
    return {"probe_gain": over_seeds(points, lambda c: c["probe_right"][-1] / c["probe_elsewhere"][-1])}


def _steps_to_learn(course: dict) -> int | None:
    """The first checkpoint from which the accuracy is high enough; None where there is none."""
    pairs = zip(course["steps"], course["accuracy"], strict=True)
    return next((step for step, accuracy in pairs if accuracy >= LEARNED), None)
