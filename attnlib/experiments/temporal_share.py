"""Temporal share against typicality: the first paper's headline, a point a task × architecture × seed."""

import math
from typing import TYPE_CHECKING

import numpy as np

from attnlib.experiments.aggregate import Point, by_kind, kind, over_seeds
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.ladder import PROFILES, LadderConfig, model_specs
from attnlib.experiments.measure import measure
from attnlib.statistics.bootstrap import hierarchical_bootstrap
from attnlib.statistics.spearman import spearman_of_points
from attnlib.training.spec import ModelSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Aitken et al. 2021, contribution 2 (temporal and input components by task)"
QUESTION = "Do temporal components carry more of the attention where the average matrix is more typical?"
Config = LadderConfig
BOOTSTRAP_SEED = 20_211_015  # any fixed number: the interval is then a function of the points

__all__ = ["PLACE", "PROFILES", "QUESTION", "Config", "asks", "compute", "models"]


def models(config: LadderConfig) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs."""
    return specs_of(asks(config))


def asks(config: LadderConfig) -> tuple[Ask, ...]:
    """What it asks of each."""
    return ask(model_specs(config), measure, fit_samples=config.fit_samples)


def compute(config: LadderConfig, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Spearman correlations between typicality and the shares, tasks and then seeds resampled.

    Temporal share is the covariance share of temporal × temporal, input share that of input × input. The
    similarity that each of the two alone reaches in the substitution test stands beside them, since shares
    mislead when terms cancel.

    Returns:
        values ``spearman.<x>`` and ``by_architecture.<architecture>.spearman.<x>`` with x one of
        ``temporal_share, input_share, temporal_only, input_only``, and ``by_task.<task>.<architecture>.…``,
        all as intervals; table ``points``.
    """
    points = answers(asks(config), store)
    rows = [name | {"kind": kind(name)} | _coordinates(m) for name, m in points]
    architectures = list(dict.fromkeys(str(row["kind"]) for row in rows))
    values = {
        "spearman": _correlations(rows),
        "by_architecture": {
            label: {"spearman": _correlations([row for row in rows if row["kind"] == label])}
            for label in architectures
        },
        "by_task": by_kind(points, _summary),
        "tasks": len({row["task"] for row in rows}),
    }
    return values, {"points": rows}


def _coordinates(m: dict) -> dict[str, float | None]:
    return {
        "typicality": m["typicality"]["value"],
        "temporal_share": m["covariance_share"]["temporal_temporal"],
        "input_share": m["covariance_share"]["input_input"],
        "temporal_only": m["substitution"]["temporal_only"]["similarity"],
        "input_only": m["substitution"]["input_only"]["similarity"],
        "uniform": m["substitution"]["uniform"]["similarity"],
        "token_accuracy": m["quality"]["token_accuracy"],
        "coverage": m["typicality"]["coverage"],
    }


def _summary(group: list[Point]) -> dict:
    names = _coordinates(group[0][1])
    return {name: over_seeds(group, lambda m, n=name: _coordinates(m)[n]) for name in names}


def _correlations(rows: list[dict]) -> dict[str, dict]:
    return {
        name: _spearman(rows, name)
        for name in ("temporal_share", "input_share", "temporal_only", "input_only")
    }


def _spearman(rows: list[dict], name: str) -> dict[str, float | int | None]:
    """Correlation of typicality with a column; None where fewer than three points have both."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["typicality"] is not None and row[name] is not None:
            groups.setdefault(str(row["task"]), []).append((row["typicality"], row[name]))
    n = sum(len(group) for group in groups.values())
    if n < 3:
        return {"value": None, "low": None, "high": None, "n": n}
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    found = hierarchical_bootstrap(groups, generator, statistic=spearman_of_points).as_dict()
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value for key, value in found.items()
    }
