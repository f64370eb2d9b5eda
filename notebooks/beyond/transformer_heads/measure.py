"""Every attention of a Transformer, head by head: which terms form it, and what its states are made of."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import NINE, Judgement
from attnlib.analysis.results import head_rows, term_rows
from attnlib.decomposition.components import Components
from attnlib.models.transformer import Transformer
from attnlib.training.corpus import Batch, Corpus, evaluation_batches
from companion.runs.procedure import Recording
from notebooks.shared.measure import exact_matches
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.task_patterns import STATES, attention_to_source, network_of

NUMBERS = (
    "temporal_share", "input_share", "mixed_share", "residual_share", "position_bias_share", "content_share",
    "temporal_rebuilds", "input_rebuilds", "position_rebuilds", "no_residual_rebuilds", "uniform",
    "typicality", "typicality_coverage", "spread",
)  # fmt: skip
MIXED = ("temporal·input", "input·temporal")
CONTENT = tuple(name for name in NINE if "temporal" not in name)
VARIANCE = ("temporal_unique", "input_unique", "shared", "residual")
_BATCH = 256


@torch.no_grad()
def measure_heads(recording: Recording, *, fit_samples: int) -> dict:
    """Terms of every head of every attention, judged on held-out samples, and the variance of its inputs."""
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
    """A row a head; its shares of temporal, input, mixed, residual and position bias sum to one.

    ``content_share``: of the four terms without a temporal component; ``position_rebuilds``: what temporal
    terms and the position bias rebuild together.
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
    """Of the variance of states, the shares that position and word explain; the four of a site sum to one."""
    rows = []
    for site, components in states.items():
        found = components.variance_explained()
        unique = found.temporal_unique + found.input_unique
        shares = (found.temporal_unique, found.input_unique, found.additive - unique, 1 - found.additive)
        rows.append({"site": site} | dict(zip(VARIANCE, map(_or_none, shares), strict=True)))
    return rows


def _fitted(network: Transformer, corpus: Corpus) -> tuple[Fit, dict[str, Components]]:
    """The first pass over the corpus, and the two-way fit of what is embedded and what attentions read."""
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

    handles = [getattr(network, h)[0].register_forward_pre_hook(keep(h)) for h in ("encoder", "decoder")]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _or_none(number: float) -> float | None:
    """Nine decimals: what stands behind them is rounding, and a share that is zero is written as zero."""
    return None if math.isnan(number) else round(float(number), 9) + 0.0


# Whether one-to-one translation finds its place by counting or by the word that it has just read.
#
# After the word read at step s − 1 comes the one at step s. A network that looks for "what follows this word"
# is led to several places where the word occurs more than once in the source; a network that counts is not.

READ = ("once", "again")


@torch.no_grad()
def measure_repeated(recording: Recording) -> dict:
    """Attention on the aligned word, and words predicted right, by whether the word read occurs again.

    Of the steps from the second word on, means over layers and heads; of one-to-one translation alone.
    """
    settings = recording.spec.resolved
    right = recording["right"][-1].bool()
    found: dict[str, list[np.ndarray]] = {read: [] for read in READ}
    for batch, heads in attention_to_source(network_of(recording, "trained"), judged_samples(settings)):
        aligned = heads.mean((0, 1)).diagonal(dim1=1, dim2=2).double()
        hit = right[batch.indices, : aligned.shape[1]].double()
        for read, steps in zip(READ, steps_by_reading(batch), strict=True):
            found[read].append(torch.stack([aligned[steps], hit[steps]]).numpy())
    return {read: _means(np.concatenate(own, axis=1)) for read, own in found.items()}


def steps_by_reading(batch: Batch) -> tuple[Bool[Tensor, "batch target"], Bool[Tensor, "batch target"]]:
    """Steps that predict a word after reading one that the source has once, and one that it has again."""
    words = batch.source.masked_fill(~_words(batch.source_mask), -1)
    equal = words[:, :, None] == words[:, None, :]
    repeated = (equal.sum(-1) > 1)[:, :-1]
    before = torch.zeros_like(words, dtype=torch.bool)
    before[:, 1:] = repeated
    predicts = _words(batch.target_mask)
    predicts[:, 0] = False  # reads the start mark
    return predicts & ~before, predicts & before


def _words(mask: Bool[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
    places = torch.arange(mask.shape[1])
    return places < (mask.sum(1) - 1)[:, None]


def _means(rows: np.ndarray) -> dict[str, float | int | None]:
    steps = rows.shape[1]
    attention, accuracy = rows.mean(1) if steps else (None, None)
    return {
        "attention": None if attention is None else float(attention),
        "accuracy": None if accuracy is None else float(accuracy),
        "steps": steps,
    }
