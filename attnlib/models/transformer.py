"""A Transformer that translates: encoder and decoder of attention alone (Vaswani et al. 2017), pre-norm.

====================  ====================================================================================
what is embedded      words and positions, added (sections 3.4 and 3.5; see ``embedding_scale`` of the config)
encoder layer         self-attention over all words of the source, feed-forward (section 3.1)
decoder layer         self-attention over the words read so far, cross-attention on the encoder states,
                      feed-forward (section 3.1; who may look at what: section 3.2.3)
encoder states h^E    LayerNorm of the last encoder layer's states: what every cross-attention reads
decoder states h^D    LayerNorm of the last decoder layer's states
logits                W h^D + b
====================  ====================================================================================

The formulas are in :mod:`attnlib.models.multi_head_attention`, those of positions that are not added to the
embeddings in :mod:`attnlib.models.self_positions`. Norms stand before each part of a
layer and once after the last (Xiong et al. 2020, table 1), not after each sum. No dropout. The embeddings of
both sides and the output layer have a matrix each, which the paper shares (section 3.4).
"""

from collections.abc import Sequence
from typing import get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput, UnknownName
from attnlib.models.initialise import draw_parameters
from attnlib.models.multi_head_attention import Attended, KeyValues, Projection
from attnlib.models.positions import TABLE_ROWS, check_table, sinusoidal_positions
from attnlib.models.self_positions import RelativeAttention
from attnlib.models.transformer_config import TransformerConfig
from attnlib.models.transformer_layers import DecoderLayer, EncoderLayer, Prefix
from attnlib.models.transformer_trace import AttentionKind, TransformerTrace
from attnlib.models.undrawn import undrawn_embedding
from attnlib.tasks.corpus import Batch


class Transformer(nn.Module):
    """A network whose parameters are drawn from ``generator`` alone.

    >>> config = TransformerConfig(source_size=7, target_size=9, width=8, heads=2)
    >>> model = Transformer(config, torch.Generator().manual_seed(0))
    >>> model.readout.weight.shape
    torch.Size([9, 8])
    """

    def __init__(self, config: TransformerConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding_source = undrawn_embedding(config.source_size, config.width)
            self.embedding_target = undrawn_embedding(config.target_size, config.width)
            if config.positions == "learned":
                self.positions_source = undrawn_embedding(TABLE_ROWS, config.width)
                self.positions_target = undrawn_embedding(TABLE_ROWS, config.width)
            self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
            self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
            self.encoder_norm, self.decoder_norm = (nn.LayerNorm(config.width) for _ in range(2))
            self.readout = nn.Linear(config.width, config.target_size)
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        """Embeddings N(0, scale²); norms one and zero; all else uniform in ±1/√inputs, as in torch."""
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.weight.normal_(0, self.config.embedding_scale, generator=generator)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()  # draws nothing
            elif isinstance(module, nn.Linear):
                draw_parameters(module, generator)
            elif isinstance(module, RelativeAttention):
                module.distance_bias.zero_()

    def _embed(self, side: str, words: Int[Tensor, "batch length"], first: int = 0) -> Tensor:
        """Embedded words that stand at the positions from ``first`` on."""
        length = words.shape[1]
        embedded = self.get_submodule(f"embedding_{side}")(words)
        if self.config.positions == "learned":
            check_table(first + length)
            return embedded + self.get_submodule(f"positions_{side}").weight[first : first + length]
        if self.config.positions == "sinusoidal":
            return embedded + sinusoidal_positions(length, self.config.width, first).to(embedded)
        return embedded

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Float[Tensor, "batch source width"], tuple[Attended, ...]]:
        """Encoder states h^E, and the attention of each layer.

        Raises:
            BadInput: a row of ``mask`` begins with padding, or a position has no code.
        """
        _check_beginnings("source", mask)
        states, attended = self._embed("source", source), []
        for layer in self.encoder:
            states, own = layer(states, mask[:, None])
            attended.append(own)
        return self.encoder_norm(states), tuple(attended)

    def _answer(self, encoder_states: Float[Tensor, "batch source width"]) -> list[KeyValues]:
        """Keys and values of each layer's cross-attention."""
        return [layer.cross_attention.answer(encoder_states) for layer in self.decoder]

    def _advance(
        self,
        states: Float[Tensor, "batch steps width"],
        pasts: Sequence[KeyValues | None],
        sources: Sequence[KeyValues],
        read: Bool[Tensor, "batch steps past_and_steps"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> tuple[Float[Tensor, "batch steps width"], tuple[Attended, ...], tuple[Attended, ...]]:
        """Embedded steps through the decoder: h^D, and both attentions of each layer."""
        attended = []
        for layer, past, source in zip(self.decoder, pasts, sources, strict=True):
            states, *both = layer(states, past, source, read, source_mask[:, None])
            attended.append(both)
        return self.decoder_norm(states), *zip(*attended, strict=True)

    def forward(self, batch: Batch) -> TransformerTrace:
        """One teacher-forced pass.

        Raises:
            BadInput: a sequence begins with padding, or a position has no code.
        """
        _check_beginnings("target", batch.target_mask)
        encoder_states, encoder_self = self.encode(batch.source, batch.source_mask)
        steps = batch.target_mask.shape[1]
        read = batch.target_mask.new_ones(steps, steps).tril() & batch.target_mask[:, None]
        decoder_states, decoder_self, cross = self._advance(
            self._embed("target", batch.target_input),
            [None] * self.config.layers,
            self._answer(encoder_states),
            read,
            batch.source_mask,
        )
        return TransformerTrace(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.target_input,
            target_outputs=batch.target_output,
            target_mask=batch.target_mask,
            encoder_states=encoder_states,
            decoder_states=decoder_states,
            logits=self.readout(decoder_states),
            attended={"encoder_self": encoder_self, "decoder_self": decoder_self, "cross": cross},
        )

    def begin(self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]) -> Prefix:
        """What is known before the first word, for :mod:`attnlib.models.search`."""
        encoder_states, _ = self.encode(source, mask)
        answers = KeyValues.stacked(self._answer(encoder_states))
        return Prefix(mask, answers, KeyValues(answers.keys[..., :0, :], answers.values[..., :0, :]))

    def write(
        self, words: Int[Tensor, " batch"], prefix: Prefix
    ) -> tuple[Float[Tensor, "batch words"], Prefix]:
        """Logits of the next word after one more was read."""
        words = words[:, None]
        first = prefix.past.keys.shape[3]
        read = prefix.source_mask.new_ones(len(words), 1, first + 1)
        states, own, _ = self._advance(
            self._embed("target", words, first),
            prefix.past.layers(),
            prefix.source.layers(),
            read,
            prefix.source_mask,
        )
        past = KeyValues.stacked([layer.source for layer in own])
        return self.readout(states)[:, 0], Prefix(prefix.source_mask, prefix.source, past)

    def projections(self, kind: AttentionKind, layer: int, head: int) -> tuple[Projection, Projection]:
        """Query and key projection of one head, the query's with its factor 1/√d.

        For ``trace = model(batch)`` and ``one = trace.cross[layer][head]``, the head's queries
        ``one.decoder_states`` are ``one.query_inputs @ query.weight.T + query.bias``, its keys
        ``one.encoder_states`` are ``one.key_inputs @ key.weight.T + key.bias``. Whatever sums to the inputs,
        such as components of them, is mapped by the weight alone, and the bias is one more component. With
        rotary positions, both are then turned in self-attention.

        Raises:
            UnknownName: no such kind. BadInput: no such layer or head.

        >>> model = Transformer(TransformerConfig(7, 9, width=8, heads=2), torch.Generator().manual_seed(0))
        >>> query, key = model.projections("cross", layer=1, head=0)
        >>> query.weight.shape, key.bias.shape
        (torch.Size([4, 8]), torch.Size([4]))
        """
        if kind not in get_args(AttentionKind):
            raise UnknownName("kind of attention", kind, get_args(AttentionKind))
        for name, place, size in (("layer", layer, self.config.layers), ("head", head, self.config.heads)):
            if not 0 <= place < size:
                raise BadInput(f"{name} is {place}; this network's go from 0 to {size - 1}")
        side = self.encoder if kind == "encoder_self" else self.decoder
        attention = side[layer].cross_attention if kind == "cross" else side[layer].self_attention
        return attention.projections(head)


def _check_beginnings(side: str, mask: Bool[Tensor, "batch length"]) -> None:
    """Words stand at the left of a row: where none does, a softmax over them does not exist."""
    empty = (~mask[:, 0]).nonzero().flatten().tolist()
    if empty:
        raise BadInput(f"{side} rows {empty[:5]} begin with padding; pad at the end, drop what has no word")
