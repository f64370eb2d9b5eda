"""Agreement of two ways of weighing the positions of a sentence.

Snell et al. 2021, section 3.1, equation 10. With u and v over the L valid positions of one row,

    𝒜(u, v) = 1  if  |{j : v_j > v_argmax(u)}| < ⌈5 % · L⌉,  else 0

the position where u is largest is looked up in v, and must be among the largest 5 % there. The paper prints
"< 5 % L"; a count is a whole number, so that rounding the bound up changes nothing. The bound is at least 1:
in sentences of up to 20 positions the position must be a maximum of v, and a row of one position agrees.

Ties in v favour agreement, since only strictly larger entries count: a constant v agrees with every u. Ties
in u need a rule. The paper's is the first of the tied positions, as ``argmax`` gives it; ``ties="shared"``
takes the mean over all of them instead, which does not depend on their order (a uniform u then agrees as
often as chance does).
"""

from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput, UnknownName

Ties = Literal["first", "shared"]


def places(lengths: Int[Tensor, "*rows"], percent: int = 5) -> Int[Tensor, "*rows"]:
    """⌈percent · L / 100⌉, in whole numbers: a position with fewer larger entries than this is at the top.

    >>> places(torch.tensor([1, 20, 21, 40, 41])).tolist()
    [1, 1, 2, 2, 3]

    Raises:
        BadInput: a percentage outside 1…100.
    """
    if not 1 <= percent <= 100:
        raise BadInput(f"percent is {percent}; it must lie in 1…100")
    return (percent * lengths + 99) // 100


def agreement(
    first: Float[Tensor, "*#rows length"],
    second: Float[Tensor, "*#rows length"],
    mask: Bool[Tensor, "*#rows length"] | None = None,
    *,
    percent: int = 5,
    ties: Ties = "first",
) -> Float[Tensor, "*rows"]:
    """𝒜(first, second) of each row, in float64: is the top position of ``first`` at the top of ``second``?

    >>> attention = torch.tensor([[0.1, 0.7, 0.2]])
    >>> agreement(attention, torch.tensor([[0.3, 0.9, 0.5]])).tolist()
    [1.0]
    >>> agreement(attention, torch.tensor([[0.9, 0.3, 0.5]])).tolist()
    [0.0]

    Args:
        first, second: u and v of equation 10. Leading dimensions broadcast.
        mask: true at valid positions; all of them by default. What stands elsewhere is not looked at.
        percent: how much of the length counts as the top.
        ties: where several entries of ``first`` are largest, the ``first`` of them stands for the top, or the
            mean over them, ``shared``.

    Returns:
        1 or 0 (with shared ties also between); NaN for a row with no valid position, and for a row where
        either side has a NaN at a valid position. :class:`~attnlib.probes.row_mean.RowMean` counts those.

    Raises:
        BadInput: lengths that differ, or a percentage outside 1…100.
        UnknownName: no such rule for ties.
    """
    if ties not in get_args(Ties):
        raise UnknownName("rule for ties", ties, get_args(Ties))
    first, second, mask = _aligned(first, second, mask)
    hidden_first = first.masked_fill(~mask, -torch.inf)
    hidden_second = second.masked_fill(~mask, -torch.inf)
    allowed = places(mask.sum(-1), percent)
    # An entry of -inf at a valid position ties with the padding, and padding must not win.
    largest = mask & (hidden_first == hidden_first.amax(-1, keepdim=True))
    if ties == "first":
        looked_up = hidden_second.gather(-1, largest.to(torch.uint8).argmax(-1, keepdim=True))
        agrees = ((hidden_second > looked_up).sum(-1) < allowed).double()
    else:
        hits = (largest & _at_top(hidden_second, mask, allowed)).sum(-1)
        agrees = hits.double() / largest.sum(-1).clamp(min=1)
    return _undefined_where(agrees, mask, first, second)


def chance_agreement(
    second: Float[Tensor, "*#rows length"],
    mask: Bool[Tensor, "*#rows length"] | None = None,
    *,
    percent: int = 5,
) -> Float[Tensor, "*rows"]:
    """𝒜̂: the expectation of 𝒜(u, second) over a u whose top is equally likely to be any valid position.

    That is the share of positions at the top of ``second``: ⌈5 % L⌉ / L where its entries differ, more where
    they are tied. The paper draws one shuffle; this is what shuffles come to on average.

    Returns, raises: as :func:`agreement`.

    >>> chance_agreement(torch.tensor([[0.1, 0.4, 0.3, 0.2], [0.0, 1.0, 1.0, 0.0]])).tolist()
    [0.25, 0.5]
    """
    _, second, mask = _aligned(second, second, mask)
    valid = mask.sum(-1)
    top = _at_top(second.masked_fill(~mask, -torch.inf), mask, places(valid, percent))
    return _undefined_where(top.sum(-1).double() / valid.clamp(min=1), mask, second)


def _aligned(first: Tensor, second: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The three at one shape."""
    if mask is None:
        mask = torch.ones_like(first, dtype=torch.bool)
    lengths = {side.shape[-1] for side in (first, second, mask)}
    if len(lengths) > 1:
        raise BadInput(
            f"rows of shapes {tuple(first.shape)} and {tuple(second.shape)} with a mask of "
            f"{tuple(mask.shape)}: all must have the same length, which comes last"
        )
    return torch.broadcast_tensors(first, second, mask)


def _at_top(
    hidden: Float[Tensor, "*rows length"], mask: Bool[Tensor, "*rows length"], allowed: Int[Tensor, "*rows"]
) -> Bool[Tensor, "*rows length"]:
    """Positions with fewer strictly larger entries than allowed; padding is hidden at -inf."""
    ordered = hidden.sort(-1).values
    larger = hidden.shape[-1] - torch.searchsorted(ordered, hidden.contiguous(), right=True)
    return mask & (larger < allowed[..., None])


def _undefined_where(
    agrees: Float[Tensor, "*rows"], mask: Bool[Tensor, "*rows length"], *sides: Float[Tensor, "*rows length"]
) -> Float[Tensor, "*rows"]:
    undefined = ~mask.any(-1)
    for side in sides:
        undefined = undefined | (mask & side.isnan()).any(-1)
    return agrees.masked_fill(undefined, torch.nan)
