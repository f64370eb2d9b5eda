"""Values by position of texts of different lengths: flat as they are kept, padded as they are compared."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput


def padded(
    flat: Float[Tensor, "*leading positions"], offsets: Int[Tensor, " texts_and_one"]
) -> tuple[Float[Tensor, "*leading texts longest"], Bool[Tensor, "texts longest"]]:
    """Rows of equal length, zero where a text has ended, and the mask of what is valid.

    >>> values, mask = padded(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    >>> values.tolist(), mask.tolist()
    ([[3.0, 0.0], [1.0, 2.0]], [[True, False], [True, True]])

    Raises:
        BadInput: the offsets do not end where the values do.
    """
    if int(offsets[-1]) != flat.shape[-1]:
        raise BadInput(f"{flat.shape[-1]} positions, but the offsets end at {int(offsets[-1])}")
    lengths = offsets.diff()
    mask = torch.arange(int(lengths.max()), device=flat.device) < lengths[:, None]
    values = flat.new_zeros(*flat.shape[:-1], *mask.shape)
    values[..., mask] = flat
    return values, mask
