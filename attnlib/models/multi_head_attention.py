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

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.models.transformer_config import TransformerConfig


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
