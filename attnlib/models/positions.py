"""Position codes for networks without recurrence."""

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoidal_positions(length: int, width: int) -> Float[Tensor, "length width"]:
    """Sines on even, cosines on odd columns, wavelengths 2π to 10000·2π (Vaswani et al. 2017, section 3.5).

    >>> sinusoidal_positions(1, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    column = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** (
        column / width
    )  # (length, width / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
