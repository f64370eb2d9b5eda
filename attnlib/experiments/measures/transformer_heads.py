"""Every attention of a Transformer, head by head: which terms form it, and what its states are made of."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlib.adapters import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.results import head_rows, term_rows
from attnlib.analysis.judge import NINE
from attnlib.decomposition.components import Components
from attnlib.experiments.measures.by_length import exact_matches
from attnlib.experiments.measures.task_patterns import STATES, network_of
from attnlib.models.transformer import Transformer
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.tasks.corpus import Corpus, evaluation_batches

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

NUMBERS = (
    "temporal_share",
    "input_share",
    "mixed_share",
    "residual_share",
    "position_bias_share",
    "content_share",
    "temporal_rebuilds",
    "input_rebuilds",
    "position_rebuilds",
    "no_residual_rebuilds",
    "uniform",
    "typicality",
    "typicality_coverage",
    "spread",
)
MIXED = ("temporal·input", "input·temporal")
CONTENT = tuple(name for name in NINE if "temporal" not in name)
VARIANCE = ("temporal_unique", "input_unique", "shared", "residual")
_BATCH = 256


@torch.no_grad()
def measure_heads(recording: "Recording", *, fit_samples: int) -> dict:
    """Terms of every head of every attention, judged on held-out samples, and the variance of its inputs.

    Args:
        fit_samples: training samples, at most, that components and average attention are taken from.

    Returns:
        ``trained``, ``untrained``: ``heads``, a row a head (``kind``, ``layer``, ``head`` from 0, and
        :data:`NUMBERS`), and ``states``, a row for each of the states that attentions read, see
        :func:`state_rows`; ``terms``, a row a term and head of the trained network's cross-attention, with
        its covariance ``share``; ``token_accuracy`` by look, ``steps``, ``exact_match`` of what the network
        writes by itself; ``parameters``. What is not defined is None.
    """
    settings = recording.spec.resolved
    train, judged = load_task(settings).train, judged_samples(settings)
    fitted = train.subset(range(min(fit_samples, len(train))))
    found: dict = {}
    for state in STATES:
        network = network_of(recording, state)
        fit, states = _fitted(network, fitted)
        judgement = Judgement(fit)
        for batch in evaluation_batches(judged, _BATCH):
            judgement.update(transformer_pass(network, batch))
        found[state] = {"heads": numbers_of_heads(judgement), "states": state_rows(states)}
        if state == "trained":
            found["terms"] = [
                {name: row[name] for name in ("layer", "head", "term")}
                | {"share": _or_none(row["covariance_share"])}
                for row in term_rows(judgement)
                if row["kind"] == "cross"
            ]
    valid = int(judged.target_lengths.sum()) + len(judged)  # words and end marks
    return found | {
        "steps": recording["steps"].tolist(),
        "token_accuracy": (recording["right"].double().sum((1, 2)) / valid).tolist(),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "parameters": sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network.")),
    }


def numbers_of_heads(judgement: Judgement) -> list[dict]:
    """A row a head: :func:`~attnlib.analysis.results.head_rows` and what it leaves to be added.

    ``mixed_share`` is the covariance share of temporal·input and input·temporal together, so that the shares
    of temporal, input, mixed, residual and position bias sum to one. ``content_share`` is that of the four
    terms without a temporal component on either side: words, and what states say of other words, compared
    with each other. ``position_rebuilds`` is what temporal terms and the position bias rebuild together;
    without a bias, that is ``temporal_rebuilds``.
    """
    rows = []
    for row in head_rows(judgement):
        shares = judgement.heads[f"{row['kind']}.{row['layer']}", row["head"]].terms.result()
        row["mixed_share"] = sum(shares.covariance[name] for name in MIXED)
        row["content_share"] = sum(shares.covariance[name] for name in CONTENT)
        both = shares.similarity.get("temporal and position bias", row["temporal_rebuilds"])
        row["position_rebuilds"] = both
        named = {name: row[name] for name in ("kind", "layer", "head")}
        rows.append(named | {name: _or_none(row[name]) for name in NUMBERS})
    return rows


def state_rows(states: dict[str, Components]) -> list[dict]:
    """Of the variance of states: what position and word explain, as shares.

    Returns:
        rows of ``site``, ``temporal_unique`` (what positions add to the best fit of words alone),
        ``input_unique`` (what words add to that of positions), ``shared`` (what either would explain) and
        ``residual`` (what the best sum of both leaves). The four sum to one.
    """
    rows = []
    for site, components in states.items():
        found = components.variance_explained()
        unique = found.temporal_unique + found.input_unique
        shares = (found.temporal_unique, found.input_unique, found.additive - unique, 1 - found.additive)
        rows.append({"site": site} | dict(zip(VARIANCE, map(_or_none, shares), strict=True)))
    return rows


def _fitted(network: Transformer, corpus: Corpus) -> tuple[Fit, dict[str, Components]]:
    """The first pass over the corpus, and the two-way fit of all states: what is embedded and what attentions read."""
    fit, states = Fit(), {}
    places = int(max(corpus.source_lengths.max(), corpus.target_lengths.max())) + 1
    words = max(network.config.source_size, network.config.target_size)
    for batch in evaluation_batches(corpus, _BATCH):
        with _embedded(network) as embedded:
            one = transformer_pass(network, batch)
        fit.update(one)
        sides = {"encoder": "source", "decoder": "target"}
        sites = {f"{half}.embedded": (sides[half], own) for half, own in embedded.items()} | one.sites()
        for site, (side, own) in sites.items():
            new = Components(words, places, own.shape[-1], method="least_squares")
            states.setdefault(site, new).update(own, one.tokens(side), one.mask(side))
    return fit, states


@contextmanager
def _embedded(network: Transformer) -> Iterator[dict[str, Tensor]]:
    """What goes into the first layer of each half, before its norm, once the network has run."""
    found: dict[str, Tensor] = {}

    def keep(half: str):
        return lambda layer, inputs: found.__setitem__(half, inputs[0])

    handles = [
        getattr(network, half)[0].register_forward_pre_hook(keep(half)) for half in ("encoder", "decoder")
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _or_none(number: float) -> float | None:
    """Nine decimals: what stands behind them is rounding, and a share that is zero is written as zero."""
    return None if math.isnan(number) else round(float(number), 9) + 0.0
