"""Agreement with ties of the probe broken at random, and how many rows have a tie at their top.

Equation 10 of Snell et al. 2021 counts only what is larger, so that where several positions of v share the
largest value each of them agrees (:mod:`attnlib.probes.agreement`). log β of a translator is a difference of
logits in single precision, and comes out as 0 at every position from which a word is all but certain. Here
such a tie does not help: it is broken at random, and what comes of that on average is computed, not drawn.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.probes.agreement import agreement, places


def agreement_with_ties_broken(
    first: Float[Tensor, "*#rows length"],
    second: Float[Tensor, "*#rows length"],
    mask: Bool[Tensor, "*#rows length"] | None = None,
    *,
    percent: int = 5,
) -> Float[Tensor, "*rows"]:
    """The expectation of 𝒜(first, second) over orders in which the ties of ``second`` may be broken.

    Where m positions share a value of ``second`` and k of the places at its top are left for them, each of
    them has one with probability k / m. So a position drawn at random agrees with probability ⌈5 % L⌉ / L,
    whatever is tied. Ties of ``first`` are as in :func:`~attnlib.probes.agreement.agreement`: the first of
    the tied positions is looked up.

    Args, returns, raises: as :func:`~attnlib.probes.agreement.agreement`.

    >>> attention, probe = torch.tensor([[0.7, 0.1, 0.2]]), torch.tensor([[1.0, 1.0, 0.5]])
    >>> agreement(attention, probe).tolist(), agreement_with_ties_broken(attention, probe).tolist()
    ([1.0], [0.5])
    """
    undefined = agreement(first, second, mask, percent=percent).isnan()
    mask = torch.ones_like(second, dtype=torch.bool) if mask is None else mask
    first, second, mask = torch.broadcast_tensors(first, second, mask)
    hidden = second.masked_fill(~mask, -torch.inf).contiguous()
    top = _at_top(first, mask).to(torch.uint8).argmax(-1, keepdim=True)
    looked_up = hidden.gather(-1, top)
    larger = (hidden > looked_up).sum(-1)
    tied = (mask & (hidden == looked_up)).sum(-1)
    left = (places(mask.sum(-1), percent) - larger).clamp(min=0)
    return (left.double() / tied.clamp(min=1)).clamp(max=1).masked_fill(undefined, torch.nan)


def tied_at_top(
    values: Float[Tensor, "*#rows length"], mask: Bool[Tensor, "*#rows length"]
) -> Bool[Tensor, "*rows"]:
    """Rows whose largest value stands at more than one valid position.

    >>> tied_at_top(torch.tensor([[1.0, 1.0], [1.0, 0.5]]), torch.ones(2, 2, dtype=torch.bool)).tolist()
    [True, False]
    """
    return _at_top(*torch.broadcast_tensors(values, mask)).sum(-1) > 1


def _at_top(values: Tensor, mask: Tensor) -> Tensor:
    hidden = values.masked_fill(~mask, -torch.inf)
    return mask & (hidden == hidden.amax(-1, keepdim=True))
