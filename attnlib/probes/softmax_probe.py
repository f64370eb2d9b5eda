"""How many bits of a sequence a linear softmax reads off one vector: a lower bound on what is kept there."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from attnlib.errors import BadInput

_ITERATIONS = 100


def probe_bits(
    fitted: Float[Tensor, "samples width"],
    fitted_words: Int[Tensor, "samples length"],
    judged: Float[Tensor, "others width"],
    judged_words: Int[Tensor, "others length"],
    *,
    words: int,
    penalty: float = 1e-3,
) -> Float[Tensor, " length"]:
    """Bits about the word at each position that a softmax regression finds in a vector.

    At each position a map of its own from the vector to the words is fitted, and judged on other samples:
    log2(words) less its cross-entropy in bits. Where words are drawn evenly and independently, a sum over
    positions is a lower bound on the mutual information of vector and sequence (Barber and Agakov 2003), so
    on what the vector keeps. A probe worse than guessing gives a negative number.

    Args:
        fitted, judged: vectors of samples that the probe is fitted on, and of others; standardised by the
            first.
        words: of the vocabulary; ids count from 0.
        penalty: above 0; half of it times the squared weights is added to the mean loss of a position.

    Returns:
        bits, by position.

    Raises:
        BadInput: no samples, or a word beyond the vocabulary.
    """
    if not len(fitted) or not len(judged):
        raise BadInput(f"{len(fitted)} samples to fit on and {len(judged)} to judge on; give some of each")
    for ids in (fitted_words, judged_words):
        if int(ids.min()) < 0 or int(ids.max()) >= words:
            raise BadInput(f"word ids from {int(ids.min())} to {int(ids.max())}; expected 0 … {words - 1}")
    mean, spread = fitted.double().mean(0), fitted.double().std(0, correction=0).clamp(min=1e-6)
    inputs, others = (_with_one((part.double() - mean) / spread) for part in (fitted, judged))
    weights = _fitted_weights(inputs, fitted_words, words, penalty)
    log_probability = (others @ weights).unflatten(-1, (-1, words)).log_softmax(-1)
    found = log_probability.gather(-1, judged_words[..., None].long())[..., 0]  # nats: (others, length)
    return (math.log(words) + found.mean(0)) / math.log(2)


def _with_one(vectors: Tensor) -> Tensor:
    return torch.cat([vectors, vectors.new_ones(len(vectors), 1)], dim=1)


def _fitted_weights(
    inputs: Float[Tensor, "samples inputs"], ids: Int[Tensor, "samples length"], words: int, penalty: float
) -> Float[Tensor, "inputs length*words"]:
    """The maps of all positions beside each other; the last input is the one that a bias stands on.

    Every step goes to the minimum of a quadratic that lies above the loss: the Hessian of a softmax's
    cross-entropy is nowhere above ½ XᵀX / n for each word (Böhning 1992), one matrix for all positions and
    steps. Nesterov's momentum speeds it up, and starts again where it points uphill (O'Donoghue and Candès
    2015). A hundred steps leave a position within some thousandths of a bit of the optimum.
    """
    samples, width = inputs.shape
    held = penalty * (torch.arange(width) < width - 1).double()[:, None]  # the bias is free
    bound = torch.linalg.cholesky(inputs.T @ inputs / (2 * samples) + held.flatten().diag())
    target = one_hot(ids.long(), words).double().flatten(1)
    weights = ahead = inputs.new_zeros(width, target.shape[1])
    pace = 1.0
    for _ in range(_ITERATIONS):
        probability = (inputs @ ahead).unflatten(-1, (-1, words)).softmax(-1).flatten(1)
        slope = inputs.T @ (probability - target) / samples + held * ahead
        reached = ahead - torch.cholesky_solve(slope, bound)
        uphill = bool(((ahead - reached) * (reached - weights)).sum() > 0)
        following = 1.0 if uphill else (1 + math.sqrt(1 + 4 * pace**2)) / 2
        ahead = reached if uphill else reached + (pace - 1) / following * (reached - weights)
        weights, pace = reached, following
    return weights
