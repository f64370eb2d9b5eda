"""How many bits of a sequence a linear softmax reads off one vector: a lower bound on what is kept there."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from attnlib.errors import BadInput

PENALTIES = (1e-1, 1e-2, 1e-3)  # each fit starts where the one before it ended, so the stiffest comes first
_LEFT_OUT = 5  # every fifth sample, to choose the penalty on
_ITERATIONS = 200
_ROUGH, _FINE = 1e-4, 1e-6  # nats a position that a step promises, below which it was the last


Vectors, Ids = Float[Tensor, "samples width"], Int[Tensor, "samples length"]
Others, OtherIds = Float[Tensor, "others width"], Int[Tensor, "others length"]
Weights = Float[Tensor, "width length*words"]  # a map for each position, beside each other
ByPosition = Float[Tensor, " length"]


def probe_bits(
    fitted: Vectors, fitted_words: Ids, judged: Others, judged_words: OtherIds, *, words: int,
    penalties: Sequence[float] = PENALTIES,
) -> ByPosition:  # fmt: skip
    """Bits about the word at each position, by position, that a softmax regression finds in a vector.

    At each position a map of its own from the vector to the words is fitted, and judged on other samples:
    log2(words) less its cross-entropy in bits. Where words are drawn evenly and independently, a sum over
    positions is a lower bound on the mutual information of vector and sequence (Barber and Agakov 2003), so
    on what the vector keeps. A probe worse than guessing gives a negative number. With few samples a map
    fits what is peculiar to them, and the bound is far below what is there: more samples raise it.

    Vectors are standardised by those fitted on; ids count from 0. Half of a penalty (above 0) times the
    squared weights is added to the mean loss of a position. Of several, each position takes the one that is
    best on a fifth of the fitted samples, left out for that choice and then fitted on with the others.
    """
    for ids in (fitted_words, judged_words):
        if int(ids.min()) < 0 or int(ids.max()) >= words:
            raise BadInput(f"word ids from {int(ids.min())} to {int(ids.max())}; expected 0 … {words - 1}")
    mean, spread = fitted.double().mean(0), fitted.double().std(0, correction=0).clamp(min=1e-6)
    inputs, others = (_with_one((part.double() - mean) / spread).float() for part in (fitted, judged))
    chosen, weights = _chosen(inputs, fitted_words, words, penalties)
    for penalty in chosen.unique():
        own = chosen == penalty
        columns = own.repeat_interleave(words)
        weights[:, columns] = _fitted_weights(
            inputs, fitted_words[:, own], words, float(penalty), weights[:, columns], _FINE
        )
    return _bits(others, judged_words, words, weights)


def _with_one(vectors: Tensor) -> Tensor:
    return torch.cat([vectors, vectors.new_ones(len(vectors), 1)], dim=1)


def _bits(inputs: Vectors, ids: Ids, words: int, weights: Weights) -> ByPosition:
    log_probability = (inputs @ weights).unflatten(-1, (-1, words)).log_softmax(-1)
    found = log_probability.gather(-1, ids[..., None].long())[..., 0]  # nats: (samples, length)
    return (math.log(words) + found.double().mean(0)) / math.log(2)


def _chosen(inputs: Vectors, ids: Ids, words: int, penalties: Sequence[float]) -> tuple[ByPosition, Weights]:
    """The penalty of each position, and weights close to those that it leads to."""
    left_out = torch.arange(len(inputs)) % _LEFT_OUT == _LEFT_OUT - 1
    weights = inputs.new_zeros(inputs.shape[1], ids.shape[1] * words)
    chosen = torch.full((ids.shape[1],), float(penalties[0]), dtype=torch.float64)
    if len(penalties) == 1 or not left_out.any():
        return chosen, weights
    best, kept = torch.full_like(chosen, -torch.inf), weights.clone()
    for penalty in penalties:
        weights = _fitted_weights(inputs[~left_out], ids[~left_out], words, penalty, weights, _ROUGH)
        bits = _bits(inputs[left_out], ids[left_out], words, weights)
        better = bits > best
        best[better], chosen[better] = bits[better], penalty
        columns = better.repeat_interleave(words)
        kept[:, columns] = weights[:, columns]
    return chosen, kept


def _fitted_weights(
    inputs: Vectors, ids: Ids, words: int, penalty: float, start: Weights, enough: float
) -> Weights:
    """The maps of all positions beside each other; the last input is the one that a bias stands on.

    Every step goes to the minimum of a quadratic that lies above the loss: the Hessian of a softmax's
    cross-entropy is nowhere above ½ XᵀX / n for each word (Böhning 1992), one matrix for all positions and
    steps. Nesterov's momentum speeds it up, and starts again where it points uphill (O'Donoghue and Candès
    2015). The last step is one whose quadratic promises less than ``enough`` nats a position.
    """
    samples, width = inputs.shape
    held = penalty * (torch.arange(width) < width - 1).to(inputs.dtype)[:, None]  # the bias is free
    bound = torch.linalg.cholesky((inputs.T @ inputs / (2 * samples) + held.flatten().diag()).double())
    solved = torch.cholesky_inverse(bound).to(inputs.dtype)
    target = one_hot(ids.long(), words).to(inputs.dtype).flatten(1)
    weights = ahead = start
    pace = 1.0
    for _ in range(_ITERATIONS):
        probability = (inputs @ ahead).unflatten(-1, (-1, words)).softmax(-1).flatten(1)
        slope = inputs.T @ (probability - target) / samples + held * ahead
        move = solved @ slope
        reached = ahead - move
        if float((slope * move).sum()) / 2 < enough * ids.shape[1]:
            return reached
        uphill = bool(((ahead - reached) * (reached - weights)).sum() > 0)
        following = 1.0 if uphill else (1 + math.sqrt(1 + 4 * pace**2)) / 2
        ahead = reached if uphill else reached + (pace - 1) / following * (reached - weights)
        weights, pace = reached, following
    return weights
