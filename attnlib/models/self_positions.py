"""Self-attention that knows where its words stand, where nothing was added to their embeddings.

============  ===========================================================================================
``relative``  a number for each head and each distance t − s is added to the score: Raffel et al. 2020,
              section 2.1, one number in place of the vectors of Shaw et al. 2018. Distances beyond
              :data:`REACH` share the number of the farthest; there each layer has a table of its own
``rotary``    queries and keys are turned, pair of coordinates by pair, by angles that grow with the
              position: Su et al. 2021, equation 34. A score then depends on the distance alone
============  ===========================================================================================

Cross-attention is left as it is: what it knows of positions it reads from the states, as in T5.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.models.multi_head_attention import MultiHeadAttention
from attnlib.models.transformer_config import TransformerConfig

REACH = 16


class RelativeAttention(MultiHeadAttention):
    """With a bias for each distance, zero before training."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.distance_bias = nn.Parameter(torch.empty(config.heads, 2 * REACH + 1))

    def position_bias(self, first: int, target: int, source: int) -> Float[Tensor, "heads target source"]:
        """The bias of each head by its distance."""
        asks = torch.arange(first, first + target, device=self.distance_bias.device)
        answers = torch.arange(source, device=self.distance_bias.device)
        distance = (answers - asks[:, None]).clamp(-REACH, REACH) + REACH
        return self.distance_bias[:, distance]


class RotaryAttention(MultiHeadAttention):
    """With queries and keys turned by their positions."""

    def placed(self, rows: Float[Tensor, "batch heads length head_width"], first: int) -> Tensor:
        """The rows, which stand at the positions from ``first`` on, turned."""
        cos, sin = rotation_tables(first + rows.shape[2], self.head_width)
        half, other = rows.chunk(2, dim=-1)
        turned = torch.cat([-other, half], dim=-1)
        return rows * cos[first:].to(rows) + turned * sin[first:].to(rows)


def rotation_tables(length: int, width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angle of each position and coordinate, (length, width) both.

    Coordinate i of the first half and of the second turn together, by position · 10000^(−2i / width).

    >>> cos, sin = rotation_tables(2, 2)
    >>> [round(float(number), 4) for number in (cos[1, 0], sin[1, 1])]
    [0.5403, 0.8415]
    """
    column = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** (column / width)
    angle = torch.cat([angle, angle], dim=1)
    return angle.cos().float(), angle.sin().float()


def new_self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """The self-attention that a network's kind of positions asks for."""
    kinds = {"relative": RelativeAttention, "rotary": RotaryAttention}
    return kinds.get(config.positions, MultiHeadAttention)(config)
