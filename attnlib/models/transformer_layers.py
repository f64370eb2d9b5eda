"""The layers of a Transformer, in matrix products that leave every intermediate to be looked at.

A head of width d compares what asks, x, with what answers, y, and hands over a mean of values:

==============  ==========================================  ============================================
queries         q_s = (W_q x_s + b_q) / √d                  Vaswani et al. 2017, section 3.2.2
keys, values    k_t = W_k y_t + b_k, v_t = W_v y_t + b_v    the same
scores          a_st = q_s · k_t                            equation 1; its factor 1/√d is in the query
attention       α_st: softmax of a_st over the allowed t    equation 1; allowed: section 3.2.3
context         c_s = Σ_t α_st v_t                          equation 1
all heads       W_o [c_s of head 1 ; … ; of head H] + b_o   section 3.2.2, "MultiHead"
feed-forward    W_2 max(0, W_1 x + b_1) + b_2               equation 2
==============  ==========================================  ============================================

The paper's projections have no bias; most implementations give them one, and so do we. That of the keys
adds the same number to all scores of a query and leaves the attention as it is.

Each layer adds f(LayerNorm(states)) to its states, f an attention or the feed-forward network. That is
pre-norm (Xiong et al. 2020, table 1); Vaswani et al. 2017, section 3.1, normalise after the sum.
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
class Prefix:
    """Source and decoder between two words; rows are samples, layers stand in the second axis.

    Attributes:
        source: keys and values of the cross-attentions.
        past: keys and values of the decoder's self-attentions for the words read so far.
    """

    source_mask: Bool[Tensor, "batch source"]
    source: KeyValues
    past: KeyValues


@dataclass(frozen=True)
class Attended:
    """One attention at work; the symbols are those of the module.

    Attributes:
        query_inputs: x, after the layer norm.
        scores: before the mask.
    """

    query_inputs: Float[Tensor, "batch target width"]
    queries: Float[Tensor, "batch heads target head_width"]
    source: KeyValues
    scores: Float[Tensor, "batch heads target source"]
    attention: Float[Tensor, "batch heads target source"]
    context: Float[Tensor, "batch heads target head_width"]


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

    def answer(self, inputs: Float[Tensor, "batch source width"]) -> KeyValues:
        """Keys and values of a sequence, after the layer norm."""
        return KeyValues(self._by_head(self.key_map(inputs)), self._by_head(self.value_map(inputs)))

    def forward(
        self,
        inputs: Float[Tensor, "batch target width"],
        source: KeyValues,
        allowed: Bool[Tensor, "batch #target source"],
    ) -> tuple[Float[Tensor, "batch target width"], Attended]:
        """What the attention adds to the states, and how it came about."""
        queries = self._by_head(self.query_map(inputs) * self.scale)
        scores = queries @ source.keys.transpose(2, 3)
        attention = scores.masked_fill(~allowed[:, None], -torch.inf).softmax(dim=-1)
        context = attention @ source.values
        joined = context.transpose(1, 2).flatten(2)  # (batch, target, heads · d)
        return self.output_map(joined), Attended(inputs, queries, source, scores, attention, context)

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


class FeedForward(nn.Module):
    """The network that each position goes through on its own."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.widen = nn.Linear(config.width, config.hidden_width)
        self.narrow = nn.Linear(config.hidden_width, config.width)

    def forward(self, inputs: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        return self.narrow(torch.relu(self.widen(inputs)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.self_norm, self.feed_norm = (nn.LayerNorm(config.width) for _ in range(2))
        self.self_attention, self.feed_forward = MultiHeadAttention(config), FeedForward(config)

    def forward(
        self, states: Float[Tensor, "batch source width"], allowed: Bool[Tensor, "batch #source source"]
    ) -> tuple[Float[Tensor, "batch source width"], Attended]:
        inputs = self.self_norm(states)
        added, own = self.self_attention(inputs, self.self_attention.answer(inputs), allowed)
        states = states + added
        return states + self.feed_forward(self.feed_norm(states)), own


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, then the feed-forward network."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.self_norm, self.cross_norm, self.feed_norm = (nn.LayerNorm(config.width) for _ in range(3))
        self.self_attention, self.cross_attention = MultiHeadAttention(config), MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)

    def forward(
        self,
        states: Float[Tensor, "batch steps width"],
        past: KeyValues | None,
        source: KeyValues,
        read: Bool[Tensor, "batch steps past_and_steps"],
        source_allowed: Bool[Tensor, "batch 1 source"],
    ) -> tuple[Float[Tensor, "batch steps width"], Attended, Attended]:
        """Some steps on; the keys and values of all steps so far are in the self-attention's source.

        Args:
            past: keys and values of the steps before these; None where these are the first.
            source: keys and values that the cross-attention makes of the encoder's output.
            read: what each step may look at, of all steps so far.
        """
        inputs = self.self_norm(states)
        present = self.self_attention.answer(inputs)
        present = present if past is None else past.followed_by(present)
        added, own = self.self_attention(inputs, present, read)
        states = states + added
        added, cross = self.cross_attention(self.cross_norm(states), source, source_allowed)
        states = states + added
        return states + self.feed_forward(self.feed_norm(states)), own, cross
