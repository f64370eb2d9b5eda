"""Path length: how far a gradient gets back into the source, with one vector and with attention."""

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, get_args

import numpy as np

from attnlib.errors import BadInput, UnknownName
from attnlib.models.sequence_to_sequence import SequenceCell
from companion.results.aggregate import Point, over_seeds, paired
from companion.results.asks import Ask, answers, ask, specs_of
from companion.runs.recipe import RecipeSpec
from notebooks.primer.path_length.measure import measure_gradients
from notebooks.shared.words import link_distances, spec_on_words

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Primer 1, “Benefits of attention: shorter path lengths”"
QUESTION = "How far back into the source does a gradient reach, and does attention make it farther?"
KINDS = {  # link, and whether the source is read backwards
    "one_vector": ("initial", False),
    "one_vector_reversed": ("initial", True),
    "attention": ("attention", False),
    "attention_reversed": ("attention", True),
}
STAGES = ("untrained", "trained")


@dataclass(frozen=True)
class Config:
    """Settings; a network is a kind × cell × seed. The defaults are those of the chapter on reversal.

    Attributes:
        kind: of :data:`KINDS`.
        cell: ``gru``, ``lstm``.
        seeds: networks of each kind.
        words: of the vocabulary; shortest, longest: words of a sentence.
        n_train: sentences to train on; judged: held-out ones.
        width: of states and embeddings; steps: updates; looks: at the network on its way.
        learning_rate: of Adam.
        length: words of the sentences that gradients are taken on; samples: of those.
    """

    kind: tuple[str, ...] = ("one_vector", "one_vector_reversed", "attention")
    cell: tuple[str, ...] = ("gru",)
    seeds: int = 3
    words: int = 10
    shortest: int = 4
    longest: int = 12
    n_train: int = 8_000
    judged: int = 360
    width: int = 64
    steps: int = 160
    looks: int = 5
    learning_rate: float = 4e-3
    length: int = 12
    samples: int = 64

    def __post_init__(self) -> None:
        for field, known in (("kind", KINDS), ("cell", get_args(SequenceCell))):
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownName(field, name, known)
        for name in ("seeds", "n_train", "judged", "width", "steps", "looks", "samples"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 3 <= self.shortest <= self.longest or self.length < 3:
            raise BadInput(
                f"lengths from {self.shortest} to {self.longest}, gradients at {self.length}; expected "
                "3 ≤ shortest ≤ longest and a length of at least 3"
            )


PROFILES = {
    "quick": Config(),
    "paper": Config(
        kind=tuple(KINDS),
        cell=("gru", "lstm"),
        seeds=5,
        longest=20,
        n_train=40_000,
        judged=1_700,
        width=128,
        steps=2_000,
        looks=20,
        learning_rate=2e-3,
        length=20,
        samples=256,
    ),
}


def _groups(config: Config) -> dict[tuple[str, str], tuple[RecipeSpec, ...]]:
    found = {}
    for kind, cell in product(config.kind, config.cell):
        link, reverse = KINDS[kind]
        own = {"link": link, "reverse": reverse, "cell": cell, "width": config.width, "looks": config.looks}
        found[kind, cell] = tuple(spec_on_words(config, seed=seed, **own) for seed in range(config.seeds))
    return found


def _ask(config: Config, specs: tuple[RecipeSpec, ...]) -> tuple[Ask, ...]:
    return ask(specs, measure_gradients, length=config.length, samples=config.samples)


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network: its gradients."""
    return tuple(asked for specs in _groups(config).values() for asked in _ask(config, specs))


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Decay of the gradient with distance, and where it falls.

    A distance is the number of recurrent steps between two words if everything goes through the encoder's
    last state (:func:`~notebooks.shared.words.link_distances`), for networks with attention as well: it is
    what they need not go.

    Returns:
        values ``<kind>.<cell>.{untrained, trained}.``: ``decay``, the slope of log10 of the mean norm over
        distance (decades a step: 0 where distance does not matter); ``aligned``, the share of a row that
        falls on the source word at the same place; ``apart``, by how many decades the distance that is
        reached most is above the one reached least; ``first_over_last``, log10 of the norm for the pair of
        first words over that for the pair of last words; the first cell's again as ``<kind>.main``; intervals
        over seeds. ``flatter.{untrained, trained}``: decay with attention less that with one vector, paired
        by seed. Tables ``matrices`` (a row a kind, stage and pair of places: mean norm over the largest of
        the matrix) and ``decay`` (a row a kind, stage and distance).
    """
    found = {kind: answers(_ask(config, specs), store) for kind, specs in _groups(config).items()}
    found = {kind: points for kind, points in found.items() if points}
    values: dict = {}
    for (kind, cell), points in found.items():
        values.setdefault(kind, {})[cell] = {
            stage: _summary(points, stage, reverse=KINDS[kind][1]) for stage in STAGES
        }
    for own in values.values():
        own["main"] = own[next(iter(own))]
    flatter = {stage: _flatter(found, config.cell[0], stage) for stage in STAGES}
    tables: dict[str, list[dict]] = {"matrices": [], "decay": []}
    for (kind, cell), points in found.items():
        for stage in STAGES:
            named = {"kind": kind, "cell": cell, "stage": stage}
            tables["matrices"] += _matrix(named, points)
            tables["decay"] += _decay(named, points, reverse=KINDS[kind][1])
    return values | {"flatter": flatter}, tables


def _by_distance(matrix: list[list[float]], *, reverse: bool) -> dict[int, float]:
    """Mean of log10 of the norms, by distance."""
    found: dict[int, list[float]] = {}
    length = len(matrix)
    for target, source in product(range(length), repeat=2):
        (distance,) = link_distances([(target, source)], length, reverse=reverse)
        found.setdefault(distance, []).append(math.log10(max(matrix[target][source], 1e-30)))
    return {distance: float(np.mean(own)) for distance, own in sorted(found.items())}


def decay(matrix: list[list[float]], *, reverse: bool) -> float:
    """Slope of log10 of the norm over distance, every pair of places counted once."""
    length = len(matrix)
    pairs = list(product(range(length), repeat=2))
    distances = link_distances(pairs, length, reverse=reverse)
    norms = [math.log10(max(matrix[target][source], 1e-30)) for target, source in pairs]
    return float(np.polyfit(distances, norms, 1)[0])


def _apart(matrix: list[list[float]], *, reverse: bool) -> float:
    by_distance = _by_distance(matrix, reverse=reverse).values()
    return max(by_distance) - min(by_distance)


def _summary(points: list[Point], stage: str, *, reverse: bool) -> dict:
    return {
        "decay": over_seeds(points, lambda m: decay(m[stage], reverse=reverse)),
        "aligned": over_seeds(points, lambda m: m[f"aligned_{stage}"]),
        "apart": over_seeds(points, lambda m: _apart(m[stage], reverse=reverse)),
        "first_over_last": over_seeds(
            points, lambda m: math.log10(max(m[stage][0][0], 1e-30) / max(m[stage][-1][-1], 1e-30))
        ),
    }


def _flatter(found: dict, cell: str, stage: str) -> dict:
    both = (found.get((kind, cell), []) for kind in ("attention", "one_vector"))
    return paired(*both, lambda m: decay(m[stage], reverse=False))


def _matrix(named: dict, points: list[Point]) -> list[dict]:
    mean = np.mean([measured[named["stage"]] for _, measured in points], axis=0)
    return [
        named | {"target": s + 1, "source": t + 1, "norm": float(mean[s, t] / mean.max())}
        for s, t in np.ndindex(mean.shape)
    ]


def _decay(named: dict, points: list[Point], *, reverse: bool) -> list[dict]:
    by_seed = [({}, _by_distance(measured[named["stage"]], reverse=reverse)) for _, measured in points]
    return [
        named | {"distance": distance} | over_seeds(by_seed, lambda m, d=distance: m[d])
        for distance in by_seed[0][1]
    ]
