"""Learning to copy: where source words say nothing of target words, attention fails or comes late."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput
from attnlib.experiments.aggregate import Point
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.copying_courses import (
    check_looks,
    course_rows,
    followed,
    judged,
    last,
    outcome,
    outcome_rows,
    probes,
)
from attnlib.experiments.knowledge_first import knowledge_first, way
from attnlib.experiments.measures.copying import measure_copying
from attnlib.experiments.turned_away import turned_away
from attnlib.recipes.recipe import RecipeSpec
from companion.data.synthetic import KINDS, words_of

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
        steps: updates after which networks are judged; every: updates between two looks.
        followed: updates of the networks with learned attention on permutations and mixtures, if that is
            more: what fails after ``steps`` may be slow.
        sample_steps: updates of the networks that copy samples, if that is more. At least as many are needed
            in :mod:`~attnlib.experiments.fixed_permutation`, so these are its networks where the sizes are
            the same.
    """

    kind: tuple[str, ...] = KINDS
    seeds: int = 3
    controls: int = 2
    length: int = 16
    width: int = 64
    steps: int = 200
    every: int = 10
    followed: int = 200
    sample_steps: int = 240

    def __post_init__(self) -> None:
        for kind in self.kind:
            words_of(kind, self.length)
        for name in ("seeds", "controls", "width", "steps", "every", "followed", "sample_steps"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        updates = [self.updates(kind, network) for kind in self.kind for network in NETWORKS]
        check_looks(self.steps, self.every, max(updates, default=self.steps))

    def updates(self, kind: str, network: str) -> int:
        """How long a network is trained: as long as it is judged, or for longer."""
        if kind == SHARED_KIND:
            return max(self.steps, self.sample_steps) if network in SHARED_NETWORKS else self.steps
        return max(self.steps, self.followed) if network == "learned" else self.steps


PROFILES = {
    "quick": Config(),
    "paper": Config(seeds=20, controls=5, length=40, width=256, followed=500, sample_steps=300),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network."""
    return ask(_planned(config), measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The courses of all networks, and what became of them.

    Returns:
        values ``<kind>.{n, failed, lowest_accuracy, steps_to_learn, …}`` of learned attention after ``steps``
        updates, see :func:`~attnlib.experiments.copying_courses.outcome`; ``<kind>.followed.…``, what became
        of the same networks in the end, see :func:`~attnlib.experiments.copying_courses.followed`;
        ``<kind>.turned.…``, which way those use attention that failed, see
        :func:`~attnlib.experiments.turned_away.turned_away`; ``<kind>.ways.…``, whether words are known when
        attention leaves uniform attention, see
        :func:`~attnlib.experiments.knowledge_first.knowledge_first`;
        ``<kind>.uniform.{accuracy, loss, probe_…}`` and ``<kind>.proxy.{accuracy, loss, above_floor,
        probe_…}`` after ``steps`` updates, see :func:`~attnlib.experiments.copying_courses.probes`;
        ``<kind>.floor``, the entropy log(length) of a word drawn from a set that is known, and
        ``<kind>.ignorance``, log(words);
        tables ``courses`` (a row a network and checkpoint, to the end of its training) and ``outcomes`` (a
        row a network, after ``steps`` updates, and which ``way`` its attention goes).
    """
    whole = [
        ({name: columns[name] for name in ("kind", "network", "seed")}, course)
        for columns, course in answers(asks(config), store)
    ]
    values = {kind: _of_kind(kind, config, whole) for kind in config.kind}
    outcomes = outcome_rows(judged(whole, config.steps))
    for row, (columns, course) in zip(outcomes, whole, strict=True):
        row["way"] = way(course, config.length) if columns["network"] == "learned" else None
    return values, {"courses": course_rows(whole), "outcomes": outcomes}


def _planned(config: Config) -> Iterator[RecipeSpec]:
    settings = {name: getattr(config, name) for name in ("length", "width", "every")}
    for kind in config.kind:
        for network in NETWORKS:
            steps = config.updates(kind, network)
            for seed in range(config.seeds if network == "learned" else config.controls):
                yield RecipeSpec.of(
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
