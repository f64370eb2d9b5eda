"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput
from attnlib.experiments.aggregate import Point
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.copying_courses import last, outcome, probes, tables, until
from attnlib.experiments.measures.copying import measure_copying
from attnlib.recipes.recipe import RecipeSpec
from attnlib.tasks.copying import KINDS, words_of

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, Figure 3; section 3.3 and appendix A.3"
QUESTION = "Does attention fail to be learned where knowledge of single words cannot be learned before it?"
NETWORKS = ("learned", "uniform", "proxy")
SHARED_KIND, SHARED_NETWORKS = "sample", ("learned", "uniform")  # what fixed_permutation trains to copy


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
        sample_steps: updates of the networks that copy samples, if that is more. At least as many are needed
            in :mod:`~attnlib.experiments.fixed_permutation`, so these are its networks where the sizes are
            the same; their first ``steps`` updates are read here, no matter how many followed.
    """

    kind: tuple[str, ...] = KINDS
    seeds: int = 3
    controls: int = 2
    length: int = 16
    width: int = 64
    steps: int = 200
    every: int = 10
    sample_steps: int = 240

    def __post_init__(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        for name in ("seeds", "controls", "width", "steps", "every", "sample_steps"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")


PROFILES = {"quick": Config(), "paper": Config(seeds=20, controls=5, length=40, width=256, sample_steps=300)}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network."""
    return ask(_planned(config), measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The courses of all networks, and what became of them.

    Returns:
        values ``<kind>.{n, failed, lowest_accuracy, steps_to_learn, …}`` of learned attention, see
        :func:`~attnlib.experiments.copying_courses.outcome`; ``<kind>.uniform.{accuracy, loss, probe_…}`` and
        ``<kind>.proxy.{accuracy, loss, above_floor, probe_…}``, see
        :func:`~attnlib.experiments.copying_courses.probes`; ``<kind>.floor``, the entropy log(length) of a
        word drawn from a set that is known, and ``<kind>.ignorance``, log(words);
        tables ``courses`` (a row a network and checkpoint) and ``outcomes`` (a row a network).
    """
    found = [
        ({name: columns[name] for name in ("kind", "network", "seed")}, until(course, config.steps))
        for columns, course in answers(asks(config), store)
    ]
    return {kind: _of_kind(kind, config, found) for kind in config.kind}, tables(found)


def _planned(config: Config) -> Iterator[RecipeSpec]:
    settings = {name: getattr(config, name) for name in ("length", "width", "every")}
    for kind in config.kind:
        for network in NETWORKS:
            longer = kind == SHARED_KIND and network in SHARED_NETWORKS
            steps = max(config.steps, config.sample_steps) if longer else config.steps
            for seed in range(config.seeds if network == "learned" else config.controls):
                yield RecipeSpec.of(
                    "permutation_copying", seed=seed, kind=kind, network=network, steps=steps, **settings
                )


def _of_kind(kind: str, config: Config, found: list[Point]) -> dict:
    learned, uniform, proxy = (
        [(name, course) for name, course in found if (name["kind"], name["network"]) == (kind, network)]
        for network in NETWORKS
    )
    return {
        **outcome(learned, config.steps),
        "probe_agreement": last(learned, "probe_agreement"),
        "uniform": {"accuracy": last(uniform, "accuracy")} | probes(uniform),
        "proxy": {name: last(proxy, name) for name in ("accuracy", "above_floor")} | probes(proxy),
        "floor": math.log(config.length),
        "ignorance": math.log(words_of(kind, config.length)),
    }
