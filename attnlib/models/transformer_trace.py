"""What a pass of a Transformer leaves to be looked at: every attention as a trace, by layer and head."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.models.multi_head_attention import Attended
from attnlib.models.trace import Trace

AttentionKind = Literal["encoder_self", "decoder_self", "cross"]


@dataclass(frozen=True)
class HeadTrace(Trace):
    """One head of one attention as a trace; source is the side that answers, target the side that asks.

    ``decoder_states`` are the head's queries and ``encoder_states`` its keys, of the width of a head, both
    turned where positions are rotary, so that scores = decoder_states · encoder_states, and with relative
    positions ``position_bias`` is added. ``context`` is made of the values. In self-attention both sides
    are one sequence, and in the decoder's, a step looks at itself and those before it: its ``attention`` is
    zero at later ones, its ``scores`` are not.

    Attributes:
        logits: of the network. None in the encoder's self-attention, where nothing is predicted and the
            target's outputs are the words themselves.
        query_inputs, key_inputs: what queries and keys are projected from, after the layer norm; the same for
            all heads. See :meth:`~attnlib.models.transformer.Transformer.projections`.
        values: what ``context`` is a mean of.
        position_bias: of the scores, by distance; None but for relative positions.
    """

    logits: Float[Tensor, "batch target words"] | None
    query_inputs: Float[Tensor, "batch target model_width"]
    key_inputs: Float[Tensor, "batch source model_width"]
    values: Float[Tensor, "batch source width"]
    position_bias: Float[Tensor, "target source"] | None = None

    def to(self, device: str) -> "HeadTrace":
        """The same trace with every tensor on ``device``."""
        moved = (getattr(self, field.name) for field in fields(self))
        return HeadTrace(*(None if value is None else value.to(device) for value in moved))


@dataclass(frozen=True)
class TransformerTrace:
    """A teacher-forced pass over a batch; ``trace.cross[layer][head]`` and the like are made when asked for.

    Tokens, masks and logits are those of :class:`~attnlib.models.trace.Trace`. Heads are views: nothing is
    copied.

    Attributes:
        encoder_states, decoder_states: h^E and h^D, after the last layer norm of their side.
        attended: each attention of each layer, all its heads together.
    """

    source_tokens: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_tokens: Int[Tensor, "batch target"]
    target_outputs: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    encoder_states: Float[Tensor, "batch source width"]
    decoder_states: Float[Tensor, "batch target width"]
    logits: Float[Tensor, "batch target words"]
    attended: dict[AttentionKind, tuple[Attended, ...]]

    @cached_property
    def encoder_self(self) -> tuple[tuple[HeadTrace, ...], ...]:
        """By layer and head: words of the source ask words of the source."""
        return self._by_head("encoder_self")

    @cached_property
    def decoder_self(self) -> tuple[tuple[HeadTrace, ...], ...]:
        """By layer and head: steps of the decoder ask the steps so far."""
        return self._by_head("decoder_self")

    @cached_property
    def cross(self) -> tuple[tuple[HeadTrace, ...], ...]:
        """By layer and head: steps of the decoder ask words of the source."""
        return self._by_head("cross")

    def _by_head(self, kind: AttentionKind) -> tuple[tuple[HeadTrace, ...], ...]:
        source = self.source_tokens, self.source_tokens, self.source_mask
        target = self.target_tokens, self.target_outputs, self.target_mask
        asking = source if kind == "encoder_self" else target
        answering = target if kind == "decoder_self" else source
        return tuple(
            tuple(
                HeadTrace(
                    source_tokens=answering[0],
                    source_mask=answering[2],
                    target_tokens=asking[0],
                    target_outputs=asking[1],
                    target_mask=asking[2],
                    encoder_states=layer.source.keys[:, head],
                    decoder_states=layer.queries[:, head],
                    scores=layer.scores[:, head],
                    attention=layer.attention[:, head],
                    context=layer.context[:, head],
                    logits=None if kind == "encoder_self" else self.logits,
                    query_inputs=layer.query_inputs,
                    key_inputs=self.encoder_states if kind == "cross" else layer.query_inputs,
                    values=layer.source.values[:, head],
                    position_bias=None if layer.position_bias is None else layer.position_bias[head],
                )
                for head in range(layer.queries.shape[1])
            )
            for layer in self.attended[kind]
        )
