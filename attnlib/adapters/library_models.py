"""Passes of the networks of :mod:`attnlib.models`, which return all that is needed by themselves."""

from collections.abc import Collection

import torch
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap, Rotary, site_names
from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput
from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.sequence_to_sequence import SequenceToSequence
from attnlib.models.transformer import (
    AttentionKind,
    MultiHeadAttention,
    RotaryAttention,
    Transformer,
    rotation_tables,
)
from attnlib.models.translator import BilinearTranslator

Recurrent = EncoderDecoder | SequenceToSequence | BilinearTranslator
KINDS: tuple[AttentionKind, ...] = ("cross", "encoder_self", "decoder_self")


@torch.no_grad()
def encoder_decoder_pass(network: Recurrent, batch: Batch) -> ModelPass:
    """A teacher-forced pass of a recurrent network: one head, which compares the states as they are.

    >>> from attnlib.models.config import ModelConfig
    >>> from attnlib.models.corpus import Corpus, collate
    >>> config = ModelConfig("AO", source_size=9, target_size=9, width=4)
    >>> network = EncoderDecoder(config, torch.Generator().manual_seed(0)).eval()
    >>> found = encoder_decoder_pass(network, collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
    >>> [one.name for one in found.attended]
    ['cross.0']

    Raises:
        BadInput: no attention, as in VED; a score that is no product of two states.
    """
    trace = network(batch)
    if trace.attention is None:
        raise BadInput("a network without attention has no pass to analyse; look at its states instead")
    if (scoring := getattr(network.config, "scoring", "dot")) != "dot":
        raise BadInput(f"scores are {scoring!r}; only those that compare states as they are have nine terms")
    plain, queries = LinearMap.none(trace.encoder_states), getattr(trace, "queries", trace.decoder_states)
    mapped = LinearMap.of(network.query, 1) if isinstance(network, BilinearTranslator) else plain
    at = (queries, trace.encoder_states, *site_names("cross", 0))
    attended = Attended("cross", 0, *at, mapped, plain, attention=trace.attention[:, None])
    return _pass_of(batch, [attended])


@torch.no_grad()
def transformer_pass(
    network: Transformer, batch: Batch, kinds: Collection[AttentionKind] = KINDS
) -> ModelPass:
    """A teacher-forced pass of a :class:`~attnlib.models.transformer.Transformer`, all layers and heads.

    >>> from attnlib.models.transformer import TransformerConfig
    >>> from attnlib.models.corpus import Corpus, collate
    >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, layers=1, hidden=4)
    >>> network = Transformer(config, torch.Generator().manual_seed(0)).eval()
    >>> found = transformer_pass(network, collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
    >>> [one.name for one in found.attended]
    ['cross.0', 'encoder_self.0', 'decoder_self.0']
    """
    trace = network(batch)
    found = []
    for kind in kinds:
        half = "encoder" if kind == "encoder_self" else "decoder"
        for layer, seen in enumerate(trace.attended[kind]):
            block = network.get_submodule(half)[layer]
            attention: MultiHeadAttention = block.cross_attention if kind == "cross" else block.self_attention
            query_site, key_site = site_names(kind, layer)
            rotation = _rotation(seen.query_inputs, attention)
            found.append(
                Attended(
                    kind=kind,
                    layer=layer,
                    query_inputs=seen.query_inputs,
                    key_inputs=trace.encoder_states if kind == "cross" else seen.query_inputs,
                    query_site=query_site,
                    key_site=key_site,
                    query_map=LinearMap.of(attention.query_map, network.config.heads),
                    key_map=LinearMap.of(attention.key_map, network.config.heads),
                    scale=attention.scale,
                    position_bias=None if seen.position_bias is None else seen.position_bias[None],
                    query_rotation=rotation,
                    key_rotation=rotation,
                    attention=seen.attention,
                    causal=kind == "decoder_self",
                )
            )
    return _pass_of(batch, found)


def _pass_of(batch: Batch, attended: list[Attended]) -> ModelPass:
    source, target = (batch.source, batch.source_mask), (batch.target_input, batch.target_output)
    one = ModelPass(*source, *target, batch.target_mask, attended=tuple(attended))
    one.check()
    return one


def _rotation(states: Tensor, attention: MultiHeadAttention) -> Rotary | None:
    if not isinstance(attention, RotaryAttention):
        return None
    return Rotary(*(own.to(states) for own in rotation_tables(states.shape[1], attention.head_width)))
