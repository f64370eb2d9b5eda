"""Attention of several heads, in matrix products that leave every intermediate to be looked at.

A head of width d compares what asks, x, with what answers, y, and hands over a mean of values:

==============  ==========================================  ============================================
queries         q_s = (W_q x_s + b_q) / √d                  Vaswani et al. 2017, section 3.2.2
keys, values    k_t = W_k y_t + b_k, v_t = W_v y_t + b_v    the same
scores          a_st = q_s · k_t                            equation 1; its factor 1/√d is in the query
attention       α_st: softmax of a_st over the allowed t    equation 1; allowed: section 3.2.3
context         c_s = Σ_t α_st v_t                          equation 1
all heads       W_o [c_s of head 1 ; … ; of head H] + b_o   section 3.2.2, "MultiHead"
==============  ==========================================  ============================================

The paper's projections have no bias; most implementations give them one, and so do we. That of the keys
adds the same number to all scores of a query and leaves the attention as it is.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.errors import BadInput, UnknownName

# What defines a Transformer, as one frozen value.

Positions = Literal["sinusoidal", "learned", "relative", "rotary", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """Size and kind of a :class:`~attnlib.models.transformer.Transformer`.

    Attributes:
        source_size, target_size: number of words of the two vocabularies, marks included.
        width: of embeddings and states; all heads of an attention share it equally.
        heads: of every attention.
        layers: of encoder and of decoder.
        hidden: width of the hidden layer in the feed-forward networks; None is four times ``width``, as in
            Vaswani et al. 2017, section 3.3.
        positions: what is added to the embeddings, see :mod:`attnlib.models.encoder_decoder`; or,
            ``relative`` and ``rotary``, what self-attention does with distances, see
            :mod:`attnlib.models.multi_head_attention`. With ``none`` the encoder sees its words as a set; the
            decoder still knows order from what each step may look at.
        embedding_scale: standard deviation of the embeddings at the start, learned positions included. With 1
            they weigh about as much as sinusoidal positions, whose root mean square is 0.71; this is in place
            of the factor √width (Vaswani et al. 2017, section 3.4).

    Raises:
        UnknownName: positions that do not exist. BadInput: a size below 1, or a width that the heads do not
            divide, or an odd one with sinusoidal positions.

    >>> TransformerConfig(source_size=7, target_size=9, width=32, heads=4).head_width
    8
    """

    source_size: int
    target_size: int
    width: int = 128
    heads: int = 4
    layers: int = 2
    hidden: int | None = None
    positions: Positions = "sinusoidal"
    embedding_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.positions not in get_args(Positions):
            raise UnknownName("positions", str(self.positions), get_args(Positions))
        for name in ("source_size", "target_size", "width", "heads", "layers", "hidden"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise BadInput(f"{name} is {size}; it must be at least 1")
        if self.width % self.heads:
            raise BadInput(
                f"width is {self.width}, which {self.heads} heads do not divide; "
                f"take a multiple such as {-(-self.width // self.heads) * self.heads}"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise BadInput(
                f"width is {self.width}; sinusoidal positions need an even one, half sines, half cosines"
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise BadInput(
                f"heads of width {self.head_width}; rotary positions turn pairs of coordinates, and it must "
                "be even"
            )
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")

    @property
    def head_width(self) -> int:
        """Of the queries, keys and values of one head."""
        return self.width // self.heads

    @property
    def hidden_width(self) -> int:
        """Of the hidden layer in the feed-forward networks."""
        return 4 * self.width if self.hidden is None else self.hidden


@dataclass(frozen=True)
class KeyValues:
    """What a sequence answers with in every head. Where layers are stacked, they are the second axis."""

    keys: Float[Tensor, "batch *layers heads source head_width"]
    values: Float[Tensor, "batch *layers heads source head_width"]

    @classmethod
    def stacked(cls, layers: "list[KeyValues]") -> "KeyValues":
        """The layers as one; :meth:`layers` takes them apart."""
        return cls(
            torch.stack([one.keys for one in layers], 1), torch.stack([one.values for one in layers], 1)
        )

    def layers(self) -> "list[KeyValues]":
        return [KeyValues(*one) for one in zip(self.keys.unbind(1), self.values.unbind(1), strict=True)]

    def followed_by(self, more: "KeyValues") -> "KeyValues":
        """Those of one layer with later positions of the same sequence."""
        return KeyValues(
            torch.cat([self.keys, more.keys], dim=2), torch.cat([self.values, more.values], dim=2)
        )


@dataclass(frozen=True)
class Attended:
    """One attention at work; the symbols are those of the module.

    Attributes:
        query_inputs: x, after the layer norm.
        scores: before the mask.
        position_bias: what was added to the products of queries and keys, where something was.
    """

    query_inputs: Float[Tensor, "batch target width"]
    queries: Float[Tensor, "batch heads target head_width"]
    source: KeyValues
    scores: Float[Tensor, "batch heads target source"]
    attention: Float[Tensor, "batch heads target source"]
    context: Float[Tensor, "batch heads target head_width"]
    position_bias: Float[Tensor, "heads target source"] | None = None


@dataclass(frozen=True)
class Projection:
    """Queries or keys of one head from what they are projected from; queries with their factor 1/√d.

    >>> projection = Projection(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0]))
    >>> projection(torch.tensor([[10.0, 1.0]])).tolist()
    [[15.0]]
    """

    weight: Float[Tensor, "head_width width"]
    bias: Float[Tensor, " head_width"]

    def __call__(self, inputs: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows head_width"]:
        return inputs @ self.weight.T + self.bias


class MultiHeadAttention(nn.Module):
    """Several heads on the same inputs; head h has rows h·d to (h+1)·d of the three maps."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.head_width, self.scale = config.head_width, config.head_width**-0.5
        self.query_map, self.key_map, self.value_map, self.output_map = (
            nn.Linear(config.width, config.width) for _ in range(4)
        )

    def answer(self, inputs: Float[Tensor, "batch source width"], first: int = 0) -> KeyValues:
        """Keys and values of a sequence, after the layer norm, that stands at the positions from first on."""
        keys = self.placed(self._by_head(self.key_map(inputs)), first)
        return KeyValues(keys, self._by_head(self.value_map(inputs)))

    def placed(self, rows: Float[Tensor, "batch heads length head_width"], first: int) -> Tensor:
        """Queries or keys as their positions, from ``first`` on, make them: here as they are."""
        return rows

    def position_bias(
        self, first: int, target: int, source: int
    ) -> Float[Tensor, "heads target source"] | None:
        """What is added to the scores of the queries from position ``first`` on: here nothing."""
        return None

    def forward(
        self,
        inputs: Float[Tensor, "batch target width"],
        source: KeyValues,
        allowed: Bool[Tensor, "batch #target source"],
        first: int = 0,
    ) -> tuple[Float[Tensor, "batch target width"], Attended]:
        """What the attention adds to the states, and how it came about; queries stand from first on."""
        queries = self.placed(self._by_head(self.query_map(inputs) * self.scale), first)
        scores = queries @ source.keys.transpose(2, 3)
        bias = self.position_bias(first, inputs.shape[1], source.keys.shape[2])
        scores = scores if bias is None else scores + bias
        attention = scores.masked_fill(~allowed[:, None], -torch.inf).softmax(dim=-1)
        context = attention @ source.values
        joined = context.transpose(1, 2).flatten(2)  # (batch, target, heads · d)
        seen = Attended(inputs, queries, source, scores, attention, context, bias)
        return self.output_map(joined), seen

    def _by_head(self, rows: Float[Tensor, "batch length width"]) -> Tensor:
        return rows.unflatten(2, (-1, self.head_width)).transpose(1, 2)  # (batch, heads, length, d)

    def projections(self, head: int) -> tuple[Projection, Projection]:
        """Of the queries and of the keys of one head."""
        rows = slice(head * self.head_width, (head + 1) * self.head_width)
        query, key = self.query_map, self.key_map
        return (
            Projection(query.weight[rows] * self.scale, query.bias[rows] * self.scale),
            Projection(key.weight[rows], key.bias[rows]),
        )


# Self-attention that knows where its words stand, where nothing was added to their embeddings.
#
# ============  ===========================================================================================
# ``relative``  a number for each head and each distance t − s is added to the score: Raffel et al. 2020,
#               section 2.1, one number in place of the vectors of Shaw et al. 2018. Distances beyond
#               :data:`REACH` share the number of the farthest; there each layer has a table of its own
# ``rotary``    queries and keys are turned, pair of coordinates by pair, by angles that grow with the
#               position: Su et al. 2021, equation 34. A score then depends on the distance alone
# ============  ===========================================================================================
#
# Cross-attention is left as it is: what it knows of positions it reads from the states, as in T5.

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
