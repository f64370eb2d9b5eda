"""The softmax of scores over allowed positions, and the log-probability of words by their logits."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def softmax_over(
    scores: Float[Tensor, "*rows source"], allowed: Bool[Tensor, "*#rows source"]
) -> Float[Tensor, "*rows source"]:
    """Return the softmax of each row of scores over its allowed positions.

    Args:
        scores: any number of axes may come before the positions.
        allowed: True at the positions that a row chooses among; it broadcasts to the scores.

    Returns:
        Weights, zero where not allowed; NaN in a row without any allowed position.

    Example:
        >>> softmax_over(torch.zeros(3), torch.tensor([True, True, False])).tolist()
        [0.5, 0.5, 0.0]
    """
    return scores.masked_fill(~allowed, -torch.inf).softmax(-1)


def log_probability_of(
    words: Int[Tensor, "*places"], logits: Float[Tensor, "*places words"]
) -> Float[Tensor, "*places"]:
    """Return the log-probability of one word at each place.

    Args:
        words: ids of the words.
        logits: of all words, at each place.

    Returns:
        Nats.

    Example:
        >>> log_probability_of(torch.tensor([1]), torch.zeros(1, 4)).exp().tolist()
        [0.25]
    """
    logit = logits.gather(-1, words[..., None])[..., 0]  # (*places,)
    return logit - logits.logsumexp(-1)
