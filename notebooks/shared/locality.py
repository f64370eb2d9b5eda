"""Whether the lexical probe is about its own position: at a keyword, next to it, and at the ends.

Snell et al. 2021, section 6.1, equations 22-25 and Figure 7. γ_l is the log odds of the right label from
position l alone, l* where the keyword stands. If states held their own word and nothing else, then

    γ_l* ≫ mean of γ ≫ γ_L ≈ γ_{l*+1}          (hypothesis 1, equation 23)

if they knew their neighbours, γ_l* ≫ γ_{l*+1} ≫ mean of γ ≈ γ_L (hypothesis 2, equation 24); what the paper
observes after long training is γ_L ≫ γ_{l*+1} ≫ mean of γ ≈ γ_l* (equation 25). The caption of Figure 7 calls
equation 23 hypothesis 2; the text means equation 24.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput


@dataclass(frozen=True, eq=False)
class Locality:
    """γ of each sequence at five places."""

    keyword: Float[Tensor, " batch"]  #: γ_l*
    next: Float[Tensor, " batch"]  #: γ_{l*+1}
    mean: Float[Tensor, " batch"]  #: over all positions
    last: Float[Tensor, " batch"]  #: γ_L
    first: Float[Tensor, " batch"]  #: γ_1, which to an encoder of both directions is an end as well


def locality(log_odds: Float[Tensor, "batch length"], place: Int[Tensor, " batch"]) -> Locality:
    """γ at the keyword and around it, for sequences of one length.

    Raises BadInput for a keyword at an end, or just before the last position (see :func:`apart`).
    """
    if not bool(apart(place, log_odds.shape[1]).all()):
        raise BadInput(
            f"keywords at {place.tolist()[:8]} in sequences of {log_odds.shape[1]}: keyword, next, first and "
            "last position must differ; leave other sequences out (see `apart`)"
        )
    rows = torch.arange(len(place), device=place.device)
    return Locality(
        log_odds[rows, place], log_odds[rows, place + 1], log_odds.mean(1), log_odds[:, -1], log_odds[:, 0]
    )


def apart(place: Int[Tensor, " batch"], length: int) -> Tensor:
    """Where the keyword, the position after it, and both ends are four different positions."""
    return (place > 0) & (place < length - 2)


ByPosition, Rows = Float[Tensor, "*rows length"], Float[Tensor, "*rows"]


def probability_of_right_label(attention: ByPosition, probe: ByPosition) -> Rows:
    """The prediction from probe and attention alone, equation 12: σ( Σ_l α_l σ⁻¹(β_l) ).

    An identity for classifiers whose readout of the context is linear: log odds average with the attention.
    So the prediction lies between the smallest and the largest β, and is largest when all attention is there.
    """
    attended = attention > 0
    if bool((((probe <= 0) | (probe >= 1)) & attended).any()):
        raise BadInput(
            "β is 0 or 1 at an attended position; its log odds are infinite: use log odds directly"
        )
    return (attention * torch.logit(probe.where(attended, 0.5))).sum(-1).sigmoid()
