"""What `Components` asks of a batch, with errors that name the place."""

import numpy as np
from jaxtyping import Bool
from torch import Tensor
from torch import bool as torch_bool

from attnlib.errors import BadInput


def checked_mask(
    states: Tensor, tokens: Tensor, mask: Tensor, *, n_tokens: int, n_positions: int, width: int
) -> Bool[np.ndarray, "batch length"]:
    """The mask as a numpy array, or BadInput for what does not fit the tables."""
    if states.dim() != 3 or states.shape[2] != width:
        raise BadInput(f"States of shape {tuple(states.shape)}: expected (batch, length, {width}).")
    if not states.is_floating_point():
        raise BadInput(f"States of {states.dtype}: expected a floating-point tensor.")
    for name, tensor in (("Tokens", tokens), ("Mask", mask)):
        if tensor.shape != states.shape[:2]:
            raise BadInput(
                f"{name} of shape {tuple(tensor.shape)} with states of shape {tuple(states.shape)}: "
                f"expected {tuple(states.shape[:2])}, that is (batch, length)."
            )
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch_bool:
        raise BadInput(f"Tokens of {tokens.dtype}: expected integers, the ids of the vocabulary.")
    if mask.dtype != torch_bool:
        raise BadInput(f"Mask of {mask.dtype}: expected torch.bool, True at valid positions.")

    valid = mask.cpu().numpy()
    if not valid.any(1).all():
        row = int(np.argmin(valid.any(1)))
        raise BadInput(f"Row {row} of the mask is all padding: leave such samples out.")
    if valid[:, n_positions:].any():
        last = int(np.flatnonzero(valid.any(0))[-1])
        raise BadInput(
            f"Position {last} is valid but the table holds {n_positions} positions (0 to {n_positions - 1}): "
            f"make Components with n_positions={last + 1} or more."
        )
    ids = tokens.cpu().numpy()
    outside = valid & ((ids < 0) | (ids >= n_tokens))
    if outside.any():
        sample, position = np.argwhere(outside)[0]
        raise BadInput(
            f"Token {ids[sample, position]} at sample {sample}, position {position} is outside the "
            f"vocabulary of {n_tokens} (0 to {n_tokens - 1}): give Components its length."
        )
    return valid


def refuse_not_finite(states: Tensor, valid: Bool[np.ndarray, "batch length"]) -> None:
    """Raises BadInput, naming the first valid place that is not finite if there is one."""
    places = np.argwhere((~states.isfinite().all(-1)).cpu().numpy() & valid)
    found = (
        f"first at sample {places[0][0]}, position {places[0][1]}" if len(places) else "their sum overflows"
    )
    raise BadInput(f"States that are not finite ({found}): nothing was added. Has the training diverged?")
