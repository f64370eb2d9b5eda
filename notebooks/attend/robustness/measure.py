"""Free-running states beside teacher-forced ones, and what the residuals of a network remember.

The residual Δ_t = h_t − μ_t − χ(w_t) is what position and present word do not tell; in a recurrent network
the words read before are the first candidate. By least squares, Δ_t ≈ Σ_{k = 1 … LAGS} B_k(w_{t−k}), judged
on other samples. Both sides of one-to-one read the same words in the same order, so that two memories can be
matched: the share of the term of the two predictions says how much of residual times residual is that.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition import PART_NAMES, AttentionCells, ShareSums, alignment_terms
from attnlib.decomposition.components import Components
from attnlib.decomposition.substitution import SubstitutionSums, centred, valid_rows
from attnlib.models.trace import Trace
from attnlib.training.corpus import Corpus, evaluation_batches
from attnlib.training.evaluate import traces
from companion.runs.store import TrainedModel
from notebooks.shared.measure import LAGS, Fitted, lagged_words, plain
from notebooks.shared.translators import greedy

BATCH = 256
EITHER = ("teacher_forced", "free_running")


def measure_robustness(trained: TrainedModel, samples: int) -> dict:
    """One model under teacher forcing and running free, and the memory in its residuals.

    Either way of running is judged by components of its own states. ``same_words``: share of held-out samples
    that the free-running network writes without a fault; ``variance``: shares of the three parts.
    """
    task, model = trained.task, trained.model
    corpora = [part.subset(np.arange(min(samples, len(part)))) for part in (task.train, task.held_out)]
    longest = [
        int(max(getattr(part, f"{side}_lengths").max() for part in (task.train, task.held_out))) + 1
        for side in ("source", "target")
    ]
    found: dict = {}
    for way in EITHER:
        fit, held_out = (
            list(traces(model, corpus) if way == "teacher_forced" else _free(trained, corpus, longest[1]))
            for corpus in corpora
        )
        sides = _fitted(trained, fit, longest)
        found[way] = _judged(sides, held_out)
        if way == "teacher_forced":
            found["variance"], found["memory"] = _variances(sides, held_out), memory(sides, fit, held_out)
        else:
            found["same_words"] = _same_words(held_out, list(evaluation_batches(corpora[1], BATCH)))
    return found


def _free(trained: TrainedModel, corpus: Corpus, max_steps: int) -> Iterator[Trace]:
    device = trained.model.readout.weight.device
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, BATCH):
            yield trained.model(greedy(trained.model, batch.to(device), max_steps))


def _fitted(trained: TrainedModel, fit: Sequence[Trace], longest: Sequence[int]) -> Fitted:
    width, task = trained.model.config.width, trained.task
    encoder = Components(len(task.source_vocabulary), longest[0], width)
    decoder = Components(len(task.target_vocabulary), longest[1], width)
    for trace in fit:
        encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
        decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
    return Fitted(encoder, decoder, sum(len(trace.source_tokens) for trace in fit))


def _judged(sides: Fitted, held_out: list[Trace]) -> dict:
    shares, substitution, cells = ShareSums(), SubstitutionSums(), AttentionCells()
    for trace in held_out:
        terms = alignment_terms(*sides.split(trace))
        shares.update(terms, trace.target_mask, trace.source_mask)
        substitution.update(terms, trace.target_mask, trace.source_mask)
        cells.update(trace.attention, trace.target_mask, trace.source_mask)
    judged = [cells.judge(trace.attention, trace.target_mask, trace.source_mask) for trace in held_out]
    covariance = shares.result().covariance
    pairs = [(i, j) for i in range(3) for j in range(3)]
    return {
        "covariance_share": {f"{PART_NAMES[i]}_{PART_NAMES[j]}": plain(covariance[i, j]) for i, j in pairs},
        "substitution": {name: plain(outcome.similarity) for name, outcome in substitution.result().items()},
        "typicality": plain(cells.result(torch.cat(judged)).value),
    }


def _same_words(free: list[Trace], batches: list) -> float:
    right = samples = 0
    for trace, batch in zip(free, batches, strict=True):
        length = max(trace.target_outputs.shape[1], batch.target_output.shape[1])
        written, wanted = (_widened(t, length) for t in (trace.target_outputs.cpu(), batch.target_output))
        right += int((written == wanted).all(1).sum())
        samples += len(wanted)
    return plain(right / samples)


def _widened(tokens: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(tokens, (0, length - tokens.shape[1]))


def _variances(sides: Fitted, held_out: list[Trace]) -> dict[str, dict[str, float]]:
    sums: dict[str, Tensor] = {side: torch.zeros(3, dtype=torch.float64) for side in ("decoder", "encoder")}
    for trace in held_out:
        for side, parts in zip(sums, sides.split(trace), strict=True):
            components: Components = getattr(sides, side)
            counts = components.position_counts.double()
            mean = (counts @ components.temporal / counts.sum()).to(parts.temporal)
            pieces = (parts.temporal - mean, parts.input, parts.residual)
            sums[side] += torch.stack([p[parts.mask].double().square().sum() for p in pieces]).cpu()
    return {
        side: dict(zip(PART_NAMES, map(plain, total / total.sum()), strict=True))
        for side, total in sums.items()
    }


def memory(sides: Fitted, fit: list[Trace], held_out: list[Trace]) -> dict[str, float | None]:
    """How much of the residuals the words read before predict, and of the score the two predictions make."""
    weights = {
        "decoder": _regressed(fit, sides, 0, sides.decoder.input.shape[0]),
        "encoder": _regressed(fit, sides, 1, sides.encoder.input.shape[0]),
    }
    missed, present = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
    product = total_square = 0.0
    for trace in held_out:
        predicted = {}
        for (side, weight), parts, tokens in zip(
            weights.items(), sides.split(trace), (trace.target_tokens, trace.source_tokens), strict=True
        ):
            guess = torch.zeros_like(parts.residual)
            design = lagged_words(tokens, parts.mask, weight.shape[0] // LAGS)
            guess[parts.mask] = (design @ weight.to(design)).to(guess)
            missed[side] += float((parts.residual - guess).double().square().sum())
            present[side] += float(parts.residual.double().square().sum())
            predicted[side] = guess
        term = predicted["decoder"] @ predicted["encoder"].transpose(1, 2)
        rows, valid = valid_rows(
            torch.stack([term, trace.scores]), trace.target_mask, trace.source_mask, at_least=2
        )
        part, score = centred(rows, valid)
        product += float((part * score).sum())
        total_square += float(score.square().sum())
    found = {side: plain(1 - missed[side] / present[side]) if present[side] else None for side in weights}
    return found | {"share": plain(product / total_square) if total_square else None}


def _regressed(fit: list[Trace], sides: Fitted, side: int, words: int) -> Float[Tensor, "lags_words width"]:
    square = torch.zeros(LAGS * words, LAGS * words, dtype=torch.float64)
    product = None
    for trace in fit:
        parts = sides.split(trace)[side]
        tokens = (trace.target_tokens, trace.source_tokens)[side]
        design = lagged_words(tokens, parts.mask, words).cpu()
        right = design.T.double() @ parts.residual[parts.mask].double().cpu()
        square += (design.T @ design).double()  # counts: exact in float32 below 2^24
        product = right if product is None else product + right
    return torch.linalg.pinv(square, hermitian=True) @ product
