"""What a position by itself says of the right label: the lexical probe of classifiers, and polarity.

A classifier whose readout is linear gives log odds of label 1 to every position. Turned towards the right
label y (equation 9 of Snell et al. 2021; γ in equation 22),

    log polarity_l = (2y − 1) · log odds_l;     β_l = σ(log polarity_l);     polarity_l = β_l / (1 − β_l)

Polarity is the score s_l of Sun and Lu (2020). All three put positions into one order; far from zero β and
polarity run into the ends of floating point, where different positions become equal. Log polarity does not.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def log_polarity(
    log_odds: Float[Tensor, "batch length"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, "batch length"]:
    """Log odds turned towards the right label of each text.

    >>> log_polarity(torch.tensor([[2.0, -1.0], [2.0, -1.0]]), torch.tensor([1, 0])).tolist()
    [[2.0, -1.0], [-2.0, 1.0]]
    """
    return log_odds * (2 * labels[:, None] - 1)


def lexical_probe(log_polarity: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """β: the probability of the right label if the network attended to the position alone (equation 9).

    >>> lexical_probe(torch.tensor([0.0])).tolist()
    [0.5]
    """
    return torch.sigmoid(log_polarity)


def polarity(log_polarity: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """β / (1 − β), between 0 and infinity, 1 where a position speaks for neither label.

    Computed without β, whose rounding it would magnify.

    >>> polarity(torch.tensor([0.0])).tolist()
    [1.0]
    """
    return torch.exp(log_polarity)
