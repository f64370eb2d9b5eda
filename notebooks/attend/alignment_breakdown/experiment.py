"""Alignment breakdown: which of the nine terms form the attention, by two shares and by substitution."""

from typing import TYPE_CHECKING

from companion.results.aggregate import by_kind, kind, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.runs.spec import ModelSpec
from notebooks.shared.ladder import PROFILES, LadderConfig, model_specs
from notebooks.shared.measure import measure_alignment_terms

if TYPE_CHECKING:
    from companion.runs.store import Store

PLACE = "Aitken et al. 2021, contribution 1 (decomposition of the alignment)"
QUESTION = "Which products of temporal, input and residual components form the attention matrix?"
Config = LadderConfig
SHARES = ("covariance_share", "mean_absolute_share")

__all__ = ["PLACE", "PROFILES", "QUESTION", "Config", "asks", "compute", "models"]


def models(config: LadderConfig) -> tuple[ModelSpec, ...]:
    """The trained models that the experiment needs."""
    return specs_of(asks(config))


def asks(config: LadderConfig) -> tuple[Ask, ...]:
    """What it asks of each."""
    return ask(model_specs(config), measure_alignment_terms, fit_samples=config.fit_samples)


def compute(config: LadderConfig, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the nine alignment terms and the substitution test, judged on held-out samples.

    Returns:
        values ``<task>.<architecture>.{covariance_share, mean_absolute_share}.<decoder part>_<encoder
        part>`` and ``<task>.<architecture>.substitution.<subset>.{similarity, argmax_agreement}`` as
        intervals over seeds, and ``unseen.{encoder, decoder}``; tables ``shares`` and ``substitution``, a
        row a model and term or subset.
    """
    points = answers(asks(config), store)
    values = by_kind(points, _summary)
    shares = [
        name
        | {"kind": kind(name), "decoder": decoder, "encoder": encoder}
        | {share: m[share][f"{decoder}_{encoder}"] for share in SHARES}
        for name, m in points
        for decoder, encoder in (pair.split("_") for pair in m["covariance_share"])
    ]
    substitution = [
        name | {"kind": kind(name), "subset": subset} | outcome
        for name, m in points
        for subset, outcome in m["substitution"].items()
    ]
    return values, {"shares": shares, "substitution": substitution}


def _summary(group: list[tuple[dict, dict]]) -> dict:
    first = group[0][1]
    summary: dict = {
        share: {pair: over_seeds(group, lambda m, s=share, p=pair: m[s][p]) for pair in first[share]}
        for share in SHARES
    }
    summary["substitution"] = {
        subset: {
            measure: over_seeds(group, lambda m, s=subset, k=measure: m["substitution"][s][k])
            for measure in outcome
        }
        for subset, outcome in first["substitution"].items()
    }
    summary["unseen"] = first["unseen"]
    summary["fitted_on"] = first["fitted_on"]
    return summary
