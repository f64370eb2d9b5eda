"""What forms the attention of a Transformer that others trained, judged by predictions made beforehand."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from companion.results.config import BaseConfig, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.others_model.published import REPORTED, SOURCES, measure_published_heads
from notebooks.shared.intervals import hierarchical_bootstrap
from notebooks.shared.spearman import spearman_of_points

SEED = 20_261_125  # of the bootstrap: any fixed number
EVEN = 0.99  # a head so close to even attention has scores that hardly vary, and shares of noise


class Config(BaseConfig):
    #: annalog, the published ones, or drawn, a stand-in drawn at random
    weights: Annotated[str, OneOf(SOURCES)] = "drawn"
    molecules: Positive = 240  #: that go through the network, at most
    batch_size: Positive = 16  #: how many at once


PROFILES = {"quick": Config(), "paper": Config(weights="annalog", molecules=2_000, batch_size=32)}
TINY = {"molecules": 96}


def measurements(config: Config) -> tuple[Measurement, ...]:
    spec = RunSpec.of("published", weights=config.weights, molecules=config.molecules)
    return measurements_of([spec], measure_published_heads, batch_size=config.batch_size)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Rank correlations over heads, and how layers differ; intervals take heads as drawn within layers.

    ``typical`` and ``copies``: of a head's typicality, and of its attention on the symbol due, with its
    shares. Heads that attend evenly are left out.
    """
    measured = next((found for _, found in answers(measurements(config), store)), None)
    if measured is None:
        return {}, {"heads": []}
    heads = measured["heads"]
    varied = [row for row in heads if row["uniform"] < EVEN]
    last = max(row["layer"] for row in heads)
    ends = [row for row in varied if row["layer"] in (0, last)]

    def last_less_first(points: np.ndarray) -> float:
        layers, shares = points.T
        return float(shares[layers == last].mean() - shares[layers == 0].mean())

    return {
        "typical": {part: _over_heads(varied, "near_typicality", f"{part}_share") for part in REPORTED},
        "copies": {part: _over_heads(varied, "copies", f"{part}_share") for part in REPORTED},
        "residual": {"last_less_first": _over_heads(ends, "layer", "residual_share", last_less_first)},
        "layers": {
            f"layer_{layer + 1}": {
                part: float(np.mean([row[f"{part}_share"] for row in heads if row["layer"] == layer]))
                for part in REPORTED
            }
            for layer in range(last + 1)
        },
        "quality": measured["quality"],
        "heads": {"all": len(heads), "varied": len(varied)},
        "molecules": {"fitted": measured["fitted"], "judged": measured["judged"]},
    }, {"heads": heads}


def _over_heads(
    rows: list[dict], first: str, second: str, statistic: Callable = spearman_of_points
) -> dict[str, float | int]:
    groups: dict[int, list[tuple[float, float]]] = {}
    for row in rows:
        groups.setdefault(row["layer"], []).append((row[first], row[second]))
    if len(groups) < 2:
        return {"value": None, "low": None, "high": None, "n": len(rows)}
    draw = np.random.default_rng(SEED)
    return hierarchical_bootstrap(groups, draw, statistic=statistic, nested=False).as_dict()
