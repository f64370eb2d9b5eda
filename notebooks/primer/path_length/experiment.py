"""Path length: how far a gradient gets back into the source, with one vector and with attention."""

import math
from itertools import chain, product
from typing import Annotated

import numpy as np

from companion.results.config import Field, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.store import Store
from notebooks.primer.path_length.measure import measure_gradients
from notebooks.shared.intervals import each_over_seeds, paired
from notebooks.shared.summaries import rows_of
from notebooks.shared.words import PAPER, CoursesConfig, link_distances, spec_on_words

PLACE = "Primer 1, “Benefits of attention: shorter path lengths”"
QUESTION = "How far back into the source does a gradient reach, and does attention make it farther?"
KINDS = {  # link, and whether the source is read backwards
    "one_vector": ("initial", False),
    "one_vector_reversed": ("initial", True),
    "attention": ("attention", False),
    "attention_reversed": ("attention", True),
}
STAGES = ("untrained", "trained")


class Config(CoursesConfig):
    """Settings; a network is a kind × cell × seed. The defaults are those of the chapter on reversal.

    Attributes:
        kind: ``one_vector``, ``one_vector_reversed``, ``attention``, ``attention_reversed``.
        length: words of the sentences that gradients are taken on.
        samples: number of sentences that gradients are taken on.
    """

    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = ("one_vector", "one_vector_reversed", "attention")
    length: Annotated[int, Field(ge=3)] = 12
    samples: Positive = 64


PROFILES = {"quick": Config(), "paper": Config(kind=tuple(KINDS), length=20, samples=256, **PAPER)}


def _groups(config: Config) -> dict[tuple[str, str], tuple[Measurement, ...]]:
    found = {}
    for kind, cell in product(config.kind, config.cell):
        link, reverse = KINDS[kind]
        own = {"link": link, "reverse": reverse, "cell": cell, "width": config.width, "looks": config.looks}
        specs = (spec_on_words(config, seed=seed, **own) for seed in range(config.seeds))
        found[kind, cell] = measurements_of(
            specs, measure_gradients, length=config.length, samples=config.samples
        )
    return found


def measurements(config: Config) -> tuple[Measurement, ...]:
    return tuple(chain.from_iterable(_groups(config).values()))


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Decay of the gradient with distance, and where it falls.

    A distance is the number of recurrent steps between two words if everything goes through the encoder's
    last state, for networks with attention as well: it is what they need not go.
    """
    found = {kind: answers(asked, store) for kind, asked in _groups(config).items()}
    values: dict = {}
    tables: dict[str, list[dict]] = {"matrices": [], "decay": []}
    for (kind, cell), points in found.items():
        if not points:
            continue
        reverse = KINDS[kind][1]
        values.setdefault(kind, {})[cell] = each_over_seeds(
            points, lambda m, r=reverse: _numbers(m, reverse=r)
        )
        by_distance = each_over_seeds(
            points, lambda m, r=reverse: {stage: _by_distance(m[stage], reverse=r) for stage in STAGES}
        )
        tables["decay"] += rows_of({kind: {cell: by_distance}}, "kind", "cell", "stage", "distance")
        for stage in STAGES:
            mean = np.mean([measured[stage] for _, measured in points], axis=0)
            tables["matrices"] += [
                {"kind": kind, "cell": cell, "stage": stage, "target": s + 1, "source": t + 1}
                | {"norm": float(mean[s, t] / mean.max())}
                for s, t in np.ndindex(mean.shape)
            ]
    for own in values.values():
        own["main"] = own[next(iter(own))]
    attention, one_vector = (found.get((kind, config.cell[0]), []) for kind in ("attention", "one_vector"))
    flatter = {
        stage: paired(attention, one_vector, lambda m, s=stage: decay(m[s], reverse=False))
        for stage in STAGES
    }
    return values | {"flatter": flatter}, tables


def _pairs(matrix: list[list[float]], *, reverse: bool) -> tuple[list[int], list[float]]:
    places = list(product(range(len(matrix)), repeat=2))
    norms = [math.log10(max(matrix[target][source], 1e-30)) for target, source in places]
    return link_distances(places, len(matrix), reverse=reverse), norms


def _by_distance(matrix: list[list[float]], *, reverse: bool) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for distance, norm in zip(*_pairs(matrix, reverse=reverse), strict=True):
        found.setdefault(distance, []).append(norm)
    return {distance: float(np.mean(own)) for distance, own in sorted(found.items())}


def decay(matrix: list[list[float]], *, reverse: bool) -> float:
    """Slope of log10 of the norm over distance, every pair of places counted once."""
    return float(np.polyfit(*_pairs(matrix, reverse=reverse), 1)[0])


def _numbers(measured: dict, *, reverse: bool) -> dict:
    """What the gradients of each stage show.

    ``decay`` is in decades a step; ``aligned``, the share of a row on the word at the same place; ``apart``,
    in decades, the distance reached most above the one reached least; ``first_over_last``, of the pairs of
    first and last words.
    """
    found = {}
    for stage in STAGES:
        matrix = measured[stage]
        means = _by_distance(matrix, reverse=reverse).values()
        found[stage] = {
            "decay": decay(matrix, reverse=reverse),
            "aligned": measured[f"aligned_{stage}"],
            "apart": max(means) - min(means),
            "first_over_last": math.log10(max(matrix[0][0], 1e-30) / max(matrix[-1][-1], 1e-30)),
        }
    return found
