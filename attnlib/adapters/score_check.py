"""Whether the attention that a model returned is the softmax of the scores made of what was caught.

Of a row of attention α the logarithm gives its scores back, log α_st = a_st + constant. So the differences
log α_st - log α_sr, r the largest weight of the row, are held against a_st - a_sr of the projections. In
logarithms an error of the scores keeps its size where they are large, while rounding grows with them alone.

What rounding does. A model that computes in a precision of unit u (half the distance from 1 to the next
number) makes of each number n a number n (1 + ε), ε within ±u, with signs of ε as good as independent.
By first order the error of a score a = Σ_d q_d k_d + b is then Σ_n ε_n n over

    q_d k_d, once for the rounding of q_d and once for that of k_d; Σ_d q_d k_d; a; the weight itself (log α
    is moved by ε alone, n = 1),

with q the query with its scale. q_d is a sum as well, so that what is before the rounding may be larger than
it is: the squares of its terms stand in for it, q_d² → max(q_d², Σ_i W_di² x_i² + b_d²). With V_st the sum of
squares of these n, an error above c u √V has a probability below 2 exp(-c²/2) (Hoeffding 1963, theorem 2, for
sums of bounded independent errors), and its mean square is below u² V / 3, an error within ±u being spread
over that range at the most evenly. The unit errors z = gap / (u √(V_st + V_sr)) of a head are therefore

    all below 8 (probability 2e-14 each), and in mean square below 1.25 + 64 / (how many there are).

The mean leaves room for a machine that sums in pieces and rounds each: with 16 pieces it reaches 1.

The first bound notices what is wrong in one place; the second what is wrong a little everywhere, such as a
bias that was left out. Units of float32 and float64 are those of the sums, whose order differs.

No force is where nothing is known: weights below the least normal number of the precision say that they are
small and no more; in a row of one weight, or of even ones to within rounding, every scale is right.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap, Rotation
from attnlib.errors import BadInput

UNIT = {torch.float64: 1e-11, torch.float32: 2.5e-6, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
WORST, MEAN = 8.0, 1.25


def require_own_attention(
    one: Attended, asks: Bool[Tensor, "batch target"], answers: Bool[Tensor, "batch source"]
) -> None:
    """Compare the attention returned with the scores, at valid places of both sides.

    Raises:
        BadInput: they differ: projections, scale, bias or mask are not what the model computes with; an
            attention that is no floating type, or is on what is masked, or does not sum to one.
    """
    dtypes = {one.attention.dtype, one.scores.dtype, one.precision or one.scores.dtype}
    for dtype in dtypes - UNIT.keys():
        raise BadInput(f"{one.name}: attention is of {dtype}; expected a floating type")
    unit, least = max(UNIT[dtype] for dtype in dtypes), max(torch.finfo(dtype).tiny for dtype in dtypes)
    allowed = one.allowed(asks, answers).expand(len(one.attention), -1, -1)
    sizes = squared_sizes(one)
    for head in range(one.heads):
        at = f"{one.name}, head {head}"
        own = one.attention[:, head].detach().to(one.scores.dtype)
        _require_rows(at, own, asks, allowed, WORST * unit)
        error = unit_errors(own, one.scores[:, head], sizes(head), allowed, unit, least).detach()
        worst, spread = float(error.max()), float(error.square().mean())
        if not (worst <= WORST and spread <= MEAN + WORST**2 / len(error)):  # also where it is not a number
            raise BadInput(
                f"{at}: attention from the caught projections is up to {worst:.2g} times rounding away from "
                f"the model's own ({WORST:.0f} would be rounding), {spread**0.5:.2g} in the mean; the scores "
                "hold more than scale · query · key + position bias, or were computed in a coarser precision "
                f"than {_said(dtypes)}"
            )


def unit_errors(
    own: Float[Tensor, "batch target source"],
    scores: Float[Tensor, "batch target source"],
    squares: Float[Tensor, "batch target source"],
    allowed: Bool[Tensor, "batch target source"],
    unit: float,
    least: float,
) -> Float[Tensor, " pairs"]:
    """z of every allowed place beside the largest weight of its row, which itself is left out.

    Two weights, 0.8 and 0.2, of scores that differ by 1 and not by log 4 ≈ 1.386:

    >>> own, scores = torch.tensor([[[0.8, 0.2]]]), torch.tensor([[[1.0, 0.0]]])
    >>> yes = torch.ones(1, 1, 2, dtype=torch.bool)
    >>> round(float(unit_errors(own, scores, torch.tensor([[[0.5, 0.5]]]), yes, 0.1, 1e-9)[0]), 2)
    3.86
    """
    own = own.masked_fill(~allowed, 0).clamp(min=least).log()
    largest, at = own.max(-1, keepdim=True)
    beside = scores - scores.gather(-1, at)
    floor = math.log(least) - largest  # less than this weight is as good as nothing
    gap = (own - largest - beside.clamp(min=floor)).abs()
    rounding = unit * (squares + squares.gather(-1, at)).sqrt()
    known = (own > math.log(least)) | (beside > floor)
    found = (gap / rounding)[(known & allowed).scatter(-1, at, False)]
    return found if len(found) else found.new_zeros(1)


def squared_sizes(one: Attended) -> Callable[[int], Float[Tensor, "batch target source"]]:
    """V of one head after the other: the sum of squares of all that a model rounds on the way to a weight."""
    asks = _squares(one.query_map, one.query_inputs, one.query_rotation, one.queries, one.scale**2)
    answers = _squares(one.key_map, one.key_inputs, one.key_rotation, one.keys, 1.0)

    def of(head: int) -> Tensor:
        scores = one.scores[:, head]
        product = scores if one.position_bias is None else scores - one.position_bias[:, head]
        return 2 * asks[:, head] @ answers[:, head].mT + product.square() + scores.square() + 1

    return of


def _squares(
    own: LinearMap, states: Tensor, rotation: Rotation | None, made: Tensor, factor: float
) -> Float[Tensor, "batch heads length head_width"]:
    """Squares of what a projection makes, or of the terms that it sums where these are larger."""
    squared = LinearMap(own.weight.square(), None if own.bias is None else own.bias.square())
    terms = squared(states.square()) * factor
    if rotation is not None:  # it deals them out among the coordinates
        terms = terms.mean(-1, keepdim=True)
    return torch.maximum(made.square(), terms)


def _require_rows(at: str, own: Tensor, asks: Tensor, allowed: Tensor, tolerance: float) -> None:
    rows = own[asks]
    beyond = float(rows.masked_fill(allowed[asks], 0).sum(-1).max())
    if not beyond <= tolerance:
        raise BadInput(
            f"{at}: {beyond:.2g} of a row's attention is on what is masked here; give the masks that the "
            "model was given, and the kind that it is (decoder_self sees no later words)"
        )
    total = float((rows.sum(-1) - 1).abs().max())
    if not total <= tolerance:
        raise BadInput(
            f"{at}: a row of attention is {total:.2g} away from a sum of one; give what the softmax returns"
        )


def _said(dtypes: set[torch.dtype]) -> str:
    return " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
