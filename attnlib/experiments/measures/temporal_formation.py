"""How one model forms its temporal components: without words, shifted in time, at lengths it never saw."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attnlib.decomposition.parts import PART_NAMES
from attnlib.decomposition.shares import ShareSums
from attnlib.decomposition.terms import alignment_terms
from attnlib.experiments.fitting import Fitted, fit_components
from attnlib.experiments.measures.longer import expected_places, measure_longer, near_place
from attnlib.experiments.measures.offsets import measure_offsets
from attnlib.experiments.measures.wordless import INPUTS, Curves, compared, plane, wordless_states
from attnlib.models.trace import Trace
from attnlib.tasks.corpus import Corpus, evaluation_batches

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

SIDES = ("encoder", "decoder")
JUDGED = 300  # held-out samples: rates over some thousand rows are known to a percent


def measure_temporal_formation(trained: "TrainedModel", fit_samples: int) -> dict:
    """Everything this chapter asks of one model with attention, judged on held-out samples.

    Returns:
        plain JSON: ``quality``; ``attention`` (see :func:`_attention`); ``wordless.<side>.<input>`` (see
        :func:`compared`); ``rebuilt`` (see :func:`_rebuilt`); ``offsets`` (see :func:`measure_offsets`);
        ``longer`` (see :func:`measure_longer`, or None); ``state_share.<side>.<part>`` (covariance shares of
        the variance of the states); ``temporal_variance.<side>.{all, words}`` (share of the variance of μ_t
        in that of the states, also with marks left out); ``courses``: coordinates of μ_t and of the states
        without words in the plane of μ's two main directions.
    """
    fitted = fit_components(trained, fit_samples)
    corpus = trained.task.held_out.subset(np.arange(min(JUDGED, len(trained.task.held_out))))
    curves = {kind: wordless_states(trained, fitted, kind) for kind in INPUTS}
    wordless = {
        side: {
            kind: compared(curve[i].cpu(), own.temporal.cpu(), own.position_counts.cpu())
            for kind, curve in curves.items()
        }
        for i, (side, own) in enumerate(_by_side(fitted).items())
    }
    return _rounded(
        {
            "quality": trained.history["held_out"],
            "attention": _attention(trained, fitted, corpus),
            "wordless": wordless,
            "rebuilt": _rebuilt(trained, fitted, curves, corpus),
            "offsets": measure_offsets(trained.model, fitted, corpus),
            "longer": measure_longer(trained, fitted),
            **_variances(trained, fitted, corpus),
            "courses": {
                side: _courses(i, own, curves) for i, (side, own) in enumerate(_by_side(fitted).items())
            },
        }
    )


def _by_side(fitted: Fitted) -> dict:
    return {"encoder": fitted.encoder, "decoder": fitted.decoder}


def _courses(i: int, own, curves: dict[str, Curves]) -> dict[str, list]:
    directions, centre = plane(own.temporal.cpu(), own.position_counts.cpu())
    seen = (own.position_counts > 0).cpu()
    courses = {"temporal": own.temporal} | {kind: curve[i] for kind, curve in curves.items()}
    return {
        name: ((course.cpu().double() - centre) @ directions)[seen].tolist()
        for name, course in courses.items()
    }


def _traces(trained: "TrainedModel", corpus: Corpus) -> Iterator[tuple]:
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, 256):
            batch = batch.to(trained.model.readout.weight.device)
            yield batch, trained.model(batch)


def _attention(trained: "TrainedModel", fitted: Fitted, corpus: Corpus) -> dict[str, float | None]:
    """``in_place``: attention mass within one position of the place that the word to be said comes from,
    where the task has such places; covariance shares of the scores: ``temporal_share`` (μ·μ),
    ``input_share`` (χ·χ), ``residual_share`` (all five terms with a residual).
    """
    shares, mass, words = ShareSums(), 0.0, 0
    fixed = trained.task.gold is not None or bool((corpus.source_lengths == corpus.target_lengths).all())
    for batch, trace in _traces(trained, corpus):
        shares.update(alignment_terms(*fitted.split(trace)), trace.target_mask, trace.source_mask)
        if fixed:
            places = expected_places(
                trained.task, batch
            )  # `corpus` is the first held-out samples: same indices
            mass += float(near_place(trace.attention.cpu(), places).sum())
            words += int((places >= 0).sum())
    found = shares.result().covariance
    return {
        "in_place": mass / words if words else None,
        "temporal_share": float(found[0, 0]),
        "input_share": float(found[1, 1]),
        "residual_share": float(found[2].sum() + found[:2, 2].sum()),
    }


def _rebuilt(trained: "TrainedModel", fitted: Fitted, curves: dict[str, Curves], corpus: Corpus) -> dict:
    """The attention with the temporal components replaced by something else, against the model's own.

    ``<input>.<both | encoder | decoder>``: h_t − μ_t + ĥ_t on these sides, with χ and Δ as they are; the
    input ``constant`` puts the mean of μ_t in its place. ``<input>.alone``: attention from ĥ on both sides
    and nothing else, where ``temporal`` is μ itself and ``constant`` uniform attention. Each has
    ``similarity`` (1 − total variation), ``argmax_agreement`` and ``accuracy`` (of the words predicted).
    """
    means = [own.temporal for own in _by_side(fitted).values()]
    weights = [own.position_counts.double() / own.position_counts.sum() for own in _by_side(fitted).values()]
    constant = [(w @ mean).expand_as(mean) for w, mean in zip(weights, means, strict=True)]
    courses = {"temporal": means, **curves, "constant": constant}
    sums: dict[tuple[str, str], Tensor] = {}
    for batch, full in _traces(trained, corpus):
        states = [full.encoder_states, full.decoder_states]
        for kind, course in courses.items():
            there = [c[: h.shape[1]].to(h) for c, h in zip(course, states, strict=True)]
            moved = [
                h + new - mean[: h.shape[1]].to(h) for h, new, mean in zip(states, there, means, strict=True)
            ]
            ways = {"alone": [new.expand_as(h) for new, h in zip(there, states, strict=True)]}
            if kind != "temporal":
                ways |= {"both": moved, "encoder": [moved[0], states[1]], "decoder": [states[0], moved[1]]}
            for way, (encoder, decoder) in ways.items():
                agreed = _agreement(trained.model.attend(batch, encoder, decoder), full)
                sums[kind, way] = sums.get((kind, way), torch.zeros(4, dtype=torch.float64)) + agreed
    found: dict[str, dict] = {}
    for (kind, way), (*values, rows) in sums.items():
        names = ("similarity", "argmax_agreement", "accuracy")
        found.setdefault(kind, {})[way] = {
            name: float(value / rows) for name, value in zip(names, values, strict=True)
        }
    return found


def _agreement(rebuilt: Trace, full: Trace) -> Tensor:
    """Sums over valid rows of similarity, agreement of the largest weight, and right words; and the rows."""
    rows = full.target_mask
    similar = 1 - 0.5 * (rebuilt.attention - full.attention).abs().sum(-1)
    agree = rebuilt.attention.argmax(-1) == full.attention.argmax(-1)
    right = rebuilt.logits.argmax(-1) == full.target_outputs
    return torch.stack(
        [x[rows].double().sum() for x in (similar, agree, right, torch.ones_like(similar))]
    ).cpu()


def _variances(trained: "TrainedModel", fitted: Fitted, corpus: Corpus) -> dict:
    """Shares of the variance of the states: of each part, and of the mean at each position."""
    shares: dict[str, dict] = {}
    temporal: dict[str, dict] = {}
    gathered: dict[str, list] = {side: [] for side in SIDES}
    for _, trace in _traces(trained, corpus):
        for side, parts, tokens in zip(
            reversed(SIDES), fitted.split(trace), (trace.target_tokens, trace.source_tokens), strict=True
        ):
            place = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
            keep = parts.mask
            gathered[side].append(
                (parts.stack()[:, keep].double().cpu(), place[keep].cpu(), tokens[keep].cpu())
            )
    for side, batches in gathered.items():
        parts = torch.cat([batch[0] for batch in batches], dim=1)  # (3, rows, width)
        places, tokens = (torch.cat([batch[i] for batch in batches]) for i in (1, 2))
        centred = parts - parts.mean(1, keepdim=True)
        total = centred.sum(0)
        products = (centred * total).sum((1, 2))
        shares[side] = dict(zip(PART_NAMES, (products / products.sum()).tolist(), strict=True))
        states, words = parts.sum(0), tokens >= 3  # ids below are padding and the two marks
        temporal[side] = {
            "all": _between(states, places),
            "words": _between(states[words], places[words]),
        }
    return {"state_share": shares, "temporal_variance": temporal}


def _between(states: Tensor, places: Tensor) -> float | None:
    """Variance of the means at each position over that of the states; None where nothing varies."""
    own = states - states.mean(0)
    counts = torch.bincount(places)
    means = torch.zeros(len(counts), own.shape[1], dtype=own.dtype).index_add_(0, places, own)
    between = (means.square().sum(1) / counts.clamp(min=1)).sum()
    total = own.square().sum()
    return float(between / total) if float(total) else None


def _rounded(content):
    """The same JSON with floats to six digits after the point."""
    if isinstance(content, float):
        return None if content != content else round(content, 6)
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    return [_rounded(value) for value in content] if isinstance(content, list) else content
