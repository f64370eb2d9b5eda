"""What forms the attention of a Transformer that others trained, judged by predictions made beforehand."""

from typing import Annotated

import numpy as np

from companion.results.config import BaseConfig, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.others_model.published import REPORTED, SOURCES, measure_published_heads
from notebooks.shared.intervals import correlated, interval_of

SEED = 20_261_125  # of the bootstrap: any fixed number
EVEN = 0.99  # a head so close to even attention has scores that hardly vary, and shares of noise


class Config(BaseConfig):
    #: annalog, the published ones, or drawn, a stand-in drawn at random
    weights: Annotated[str, OneOf(SOURCES)] = "drawn"
    molecules: Positive = 240  #: that go through the network, at most
    batch_size: Positive = 16  #: how many at once


PROFILES = {
    "quick": Config(),
    "paper": Config(weights="annalog", molecules=2_000, batch_size=32),
    "tiny": Config(molecules=96),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    spec = RunSpec.of("published", weights=config.weights, molecules=config.molecules)
    return measurements_of([spec], measure_published_heads, batch_size=config.batch_size)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``typical`` and ``copies``: of a head's typicality, and of its attention on the symbol due, with its
    shares. Intervals take heads as drawn within layers; heads that attend evenly are left out."""
    measured = next((found for _, found in answers(measurements(config), store)), None)
    if measured is None:
        return {}, {"heads": []}
    heads = measured["heads"]
    varied = [row for row in heads if row["uniform"] < EVEN]
    last = max(row["layer"] for row in heads)
    ends = [row for row in varied if row["layer"] in (0, last)]

    def apart(points: np.ndarray) -> float:
        layers, shares = points.T
        return float(shares[layers == last].mean() - shares[layers == 0].mean())

    def of_layer(layer: int, part: str) -> list[float]:
        return [row[f"{part}_share"] for row in heads if row["layer"] == layer]

    return {
        "typical": {part: _over_heads(varied, "near_typicality", f"{part}_share") for part in REPORTED},
        "copies": {part: _over_heads(varied, "copies", f"{part}_share") for part in REPORTED},
        "residual": {"last_less_first": _over_heads(ends, "layer", "residual_share", statistic=apart)},
        "layers": {
            f"layer_{layer + 1}": {part: float(np.mean(of_layer(layer, part))) for part in REPORTED}
            for layer in range(last + 1)
        },
        "quality": measured["quality"],
        "heads": {"all": len(heads), "varied": len(varied)},
        "molecules": {"fitted": measured["fitted"], "judged": measured["judged"]},
    }, {"heads": heads}


def _over_heads(rows: list[dict], *columns: str, **how: object) -> dict[str, float | int]:
    if len({row["layer"] for row in rows}) < 2:
        return interval_of() | {"n": len(rows)}
    return correlated(rows, *columns, by="layer", nested=False, seed=SEED, **how)
