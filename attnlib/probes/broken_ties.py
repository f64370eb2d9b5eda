"""Agreement with ties broken at random, and how many rows have a tie at their top.

Equation 10 of Snell et al. 2021 counts only what is larger, so that where several positions of v share the
largest value each of them agrees (:mod:`attnlib.probes.agreement`). A lexical probe in single precision is
tied at 1 where a word is all but certain from several positions. Here such a tie does not help: it is broken
at random, and what comes of that on average is computed rather than drawn.
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
    """The expectation of 𝒜(first, second) over orders in which the ties of either side may be broken.

    Where m positions share a value of ``second`` and k of the places at its top are left for them, each of
    them has one with probability k / m. Any position of ``first`` then agrees with probability ⌈5 % L⌉ / L
    on average, whatever is tied.

    Args, returns, raises: as :func:`~attnlib.probes.agreement.agreement`.

    >>> attention, probe = torch.tensor([[0.7, 0.1, 0.2]]), torch.tensor([[1.0, 1.0, 0.5]])
    >>> agreement(attention, probe).tolist(), agreement_with_ties_broken(attention, probe).tolist()
    ([1.0], [0.5])
    """
    undefined = agreement(first, second, mask, percent=percent).isnan()
    mask = torch.ones_like(second, dtype=torch.bool) if mask is None else mask
    first, second, mask = torch.broadcast_tensors(first, second, mask)
    top = _at_top(first, mask)
    hidden = second.masked_fill(~mask, -torch.inf).contiguous()
    ordered = hidden.sort(-1).values
    upto, below = (torch.searchsorted(ordered, hidden, right=right) for right in (True, False))
    # Padding stands at -inf, where a valid position may stand, too.
    padding = (~mask).sum(-1, keepdim=True) * (hidden == -torch.inf)
    larger, tied = hidden.shape[-1] - upto, upto - below - padding
    left = (places(mask.sum(-1), percent)[..., None] - larger).clamp(min=0)
    share = (left / tied.clamp(min=1)).clamp(max=1)
    found = (share * top).sum(-1).double() / top.sum(-1).clamp(min=1)
    return found.masked_fill(undefined, torch.nan)


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
