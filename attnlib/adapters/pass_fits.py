"""What a pass refuses: tokens, states and probabilities that do not fit together, or are no numbers."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.padding import order_of
from attnlib.errors import BadInput

if TYPE_CHECKING:
    from attnlib.adapters.model_pass import ModelPass

_SIDES = ("source", "target")


def require_tokens(one: "ModelPass") -> None:
    """Of one shape a side, with masks of bool, ids that are no less than 0 and as many samples on both."""
    for side in _SIDES:
        tokens, mask = one.tokens(side), one.mask(side)
        if tokens.dim() != 2 or tokens.shape != mask.shape or mask.dtype != torch.bool:
            raise BadInput(
                f"{side}_tokens of shape {tuple(tokens.shape)}, {side}_mask of {tuple(mask.shape)} and "
                f"{mask.dtype}; expected (batch, length) of both, the mask of torch.bool"
            )
        if not bool(mask.any(1).all()):
            raise BadInput(f"{side} row {int(mask.any(1).int().argmin())} is all padding: leave it out")
    if len(one.source_tokens) != len(one.target_tokens):
        raise BadInput(f"{len(one.source_tokens)} sources with {len(one.target_tokens)} targets")
    if one.target_outputs.shape != one.target_tokens.shape:
        raise BadInput(
            f"target_outputs of shape {tuple(one.target_outputs.shape)}, target_tokens of "
            f"{tuple(one.target_tokens.shape)}; expected one shape"
        )
    for name in ("source_tokens", "target_tokens", "target_outputs"):
        require_ids(name, getattr(one, name), one.mask(name.partition("_")[0]))


def require_ids(name: str, ids: Tensor, mask: Bool[Tensor, "batch length"]) -> None:
    """No id below 0 at a valid position; at padding anything may stand.

    Raises:
        BadInput: there is one, such as the -100 of labels that a loss leaves out.

    >>> require_ids("target", torch.tensor([[5, -100]]), torch.tensor([[True, False]]))
    """
    below = (ids < 0) & mask
    if bool(below.any()):
        row, place = below.nonzero()[0].tolist()
        raise BadInput(
            f"{name} hold {int(ids[row, place])} at valid position {place} of row {row}: ids start at 0; a "
            "label that does not count, such as -100, is padding: say False there in the mask"
        )


def require_padding_at_the_right(one: "ModelPass") -> None:
    """Valid positions are the first of each row."""
    for side in _SIDES:
        if order_of(one.mask(side)) is not None:
            raise BadInput(
                f"{side}_mask has padding before valid positions; make the pass by "
                "ModelPass.to_the_left(...), which takes the same and moves padding to the right"
            )


def require_states(one: "ModelPass", own: Attended) -> None:
    """Of the lengths of the tokens and the widths of the projections, finite at valid positions."""
    masks = [one.mask(side) for side in one.sides(own.kind)]
    for name, mask, linear in zip(
        ("query_inputs", "key_inputs"), masks, (own.query_map, own.key_map), strict=True
    ):
        states, expected = getattr(own, name), (*mask.shape, linear.weight.shape[-1])
        if tuple(states.shape) != expected:
            raise BadInput(f"{own.name}: states of shape {tuple(states.shape)}; expected {expected}")
        require_finite(f"{own.name}: {name}", states.isfinite().all(-1), mask)
    full = (*masks[0].shape[:1], own.heads, masks[0].shape[1], masks[1].shape[1])
    for name in ("attention", "position_bias"):
        matrix = getattr(own, name)
        if matrix is not None and tuple(matrix.shape) not in (full, (1, *full[1:])):
            raise BadInput(f"{own.name}: {name} of shape {tuple(matrix.shape)}; expected {full}")
        if matrix is not None:
            require_finite(f"{own.name}: {name}", matrix.isfinite().all(1), own.allowed(*masks))


def require_finite(name: str, finite: Bool[Tensor, "..."], valid: Bool[Tensor, "..."]) -> None:
    """A number wherever something valid stands.

    Raises:
        BadInput: NaN or infinity; the message says where.
    """
    wrong = ~finite & valid
    if bool(wrong.any()):
        sample, *places = wrong.nonzero()[0].tolist()
        at = f"sample {sample}, position {' and '.join(map(str, places))}"
        raise BadInput(
            f"{name} hold NaN or infinity at a valid position ({at}); look for weights that "
            "diverged or an overflow of float16, or mask what is padding"
        )


def require_probabilities(one: "ModelPass", probe: Tensor) -> None:
    """Of the shape (batch, target, source), between 0 and 1 at valid positions."""
    expected = (*one.target_tokens.shape, one.source_tokens.shape[1])
    if tuple(probe.shape) != expected:
        raise BadInput(f"lexical_probe of shape {tuple(probe.shape)}; expected {expected}")
    valid = probe[one.target_mask[:, :, None] & one.source_mask[:, None, :]]
    if not bool(((valid >= 0) & (valid <= 1)).all()):
        raise BadInput("lexical_probe holds what is no probability; a logarithm has to be taken back")
