"""Kendall's τ-b between two ways of weighing the positions of a sentence, for many rows at once.

Kendall 1945, "The treatment of ties in ranking problems"; Snell et al. 2021, appendix A.4, Table 3. Over the
n(n − 1)/2 pairs of valid positions of a row, with C and D the numbers of concordant and discordant pairs and
T_u, T_v those tied in u and in v (pairs tied in both count in both),

    τ-b(u, v) = (C − D) / sqrt((n(n − 1)/2 − T_u) (n(n − 1)/2 − T_v))

It is undefined, NaN here, where either side is constant over the valid positions, as a row of one position
always is. The paper does not say what becomes of such rows; its authors' program leaves out what is NaN.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.arrays import RowMask, Rows, aligned_rows, takes_arrays


@takes_arrays
def kendall(first: Rows, second: Rows, mask: RowMask = None) -> Float[Tensor, "*rows"]:
    """τ-b of each row over its valid positions, in float64, between −1 and 1.

    Every pair is looked at, a diagonal of the square of pairs at a time: length² / 2 comparisons a row, in
    memory that grows with the length alone.

    >>> rows = torch.tensor([[1.0, 2.0, 3.0]])
    >>> kendall(rows, torch.tensor([[10.0, 30.0, 20.0]])).round(decimals=4).tolist()  # 2 of 3 pairs agree
    [0.3333]
    >>> kendall(rows, torch.ones(1, 3)).tolist()
    [nan]

    Args:
        first, second: the two sides. Leading dimensions broadcast.
        mask: true at valid positions; all of them by default. What stands elsewhere is not looked at.

    Returns:
        NaN where either side is constant over the valid positions, or has a NaN there;
        :class:`~attnlib.probes.agreement.RowMean` counts those.

    Raises:
        BadInput: lengths that differ, or leading axes that do not broadcast.
    """
    first, second, mask = aligned_rows(first, second, mask)
    length = first.shape[-1]
    rows = mask.shape[:-1]
    net = torch.zeros(rows, dtype=torch.int64, device=mask.device)  # concordant less discordant pairs
    differ_first = torch.zeros_like(net)  # pairs that are not tied
    differ_second = torch.zeros_like(net)
    for shift in range(1, length):
        both_valid = mask[..., shift:] & mask[..., :-shift]
        order_first = _order(first[..., shift:], first[..., :-shift]) * both_valid
        order_second = _order(second[..., shift:], second[..., :-shift]) * both_valid
        net = net + (order_first * order_second).sum(-1)
        differ_first = differ_first + (order_first != 0).sum(-1)
        differ_second = differ_second + (order_second != 0).sum(-1)
    # Two square roots in place of one of the product: the product of counts may pass 2^53.
    tau = net / differ_first.double().sqrt() / differ_second.double().sqrt()
    is_nan = first.isnan() | second.isnan()
    undefined = (mask & is_nan).any(-1)
    return tau.clamp(-1, 1).masked_fill(undefined, torch.nan)


def _order(later: Float[Tensor, "*rows pairs"], earlier: Float[Tensor, "*rows pairs"]) -> Tensor:
    """1, 0 or −1; unlike the sign of a difference it is right for infinities."""
    return (later > earlier).to(torch.int8) - (later < earlier).to(torch.int8)
