"""The layers of a Transformer.

==============  ==========================================  ============================================
attention       :mod:`attnlib.models.multi_head_attention`  Vaswani et al. 2017, section 3.2
feed-forward    W_2 max(0, W_1 x + b_1) + b_2               equation 2
==============  ==========================================  ============================================

Each layer adds f(LayerNorm(states)) to its states, f an attention or the feed-forward network. That is
pre-norm (Xiong et al. 2020, table 1); Vaswani et al. 2017, section 3.1, normalise after the sum.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.models.multi_head_attention import Attended, KeyValues, MultiHeadAttention
from attnlib.models.self_positions import new_self_attention
from attnlib.models.transformer_config import TransformerConfig


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
        self.self_attention, self.feed_forward = new_self_attention(config), FeedForward(config)

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
        self.self_attention, self.cross_attention = new_self_attention(config), MultiHeadAttention(config)
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
        first = 0 if past is None else past.keys.shape[2]
        present = self.self_attention.answer(inputs, first)
        present = present if past is None else past.followed_by(present)
        added, own = self.self_attention(inputs, present, read, first)
        states = states + added
        added, cross = self.cross_attention(self.cross_norm(states), source, source_allowed)
        states = states + added
        return states + self.feed_forward(self.feed_norm(states)), own, cross
