"""Position codes for networks without recurrence, added to the embeddings of both sides.

==============  =========================================================================================
``sinusoidal``  sines and cosines; nearby positions have nearby codes, any length has one
``shuffled``    the same codes dealt to positions at random, once for all: each position still has a code of
                its own, but which are neighbours cannot be read off it
``learned``     a trained table for each side
``none``        nothing: the states of a token are the same at every position
==============  =========================================================================================
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput

TABLE_ROWS = 128  # of learned and shuffled codes
_SHUFFLE_SEED = 0  # any fixed number: both sides and all networks meet the same codes


def sinusoidal_positions(length: int, width: int, first: int = 0) -> Float[Tensor, "length width"]:
    """Sines on even, cosines on odd columns, wavelengths 2π to 10000·2π (Vaswani et al. 2017, section 3.5).

    >>> sinusoidal_positions(1, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    column = torch.arange(0, width, 2, dtype=torch.float64)
    place = torch.arange(first, first + length, dtype=torch.float64)
    angle = place[:, None] / 10_000 ** (column / width)  # (length, width / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def shuffled_positions(length: int, width: int, first: int = 0) -> Float[Tensor, "length width"]:
    """Rows ``first … first + length - 1`` of the sinusoidal table in an order drawn once for all.

    Raises:
        BadInput: a position beyond the table's 128 rows.
    """
    check_table(first + length)
    order = torch.randperm(TABLE_ROWS, generator=torch.Generator().manual_seed(_SHUFFLE_SEED))
    return sinusoidal_positions(TABLE_ROWS, width)[order[first : first + length]]


def check_table(end: int) -> None:
    """Raises BadInput where positions below ``end`` need more rows than a table has."""
    if end > TABLE_ROWS:
        raise BadInput(
            f"position {end - 1} is beyond the {TABLE_ROWS} rows of the table; use sinusoidal positions"
        )
