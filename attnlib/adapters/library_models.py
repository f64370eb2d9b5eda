"""Passes of the networks of :mod:`attnlib.models`, which return all that is needed by themselves."""

from collections.abc import Collection

import torch
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap, Rotary, site_names
from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.transformer import (
    AttentionKind,
    MultiHeadAttention,
    RotaryAttention,
    Transformer,
    rotation_tables,
)
from attnlib.training.corpus import Batch

KINDS: tuple[AttentionKind, ...] = ("cross", "encoder_self", "decoder_self")


@torch.no_grad()
def encoder_decoder_pass(network: EncoderDecoder, batch: Batch) -> ModelPass:
    """A teacher-forced pass of AED or AO: one head, which compares the states as they are.

    >>> from attnlib.models.config import ModelConfig
    >>> from attnlib.training.corpus import Corpus, collate
    >>> config = ModelConfig("AO", source_size=9, target_size=9, width=4)
    >>> network = EncoderDecoder(config, torch.Generator().manual_seed(0)).eval()
    >>> found = encoder_decoder_pass(network, collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
    >>> [one.name for one in found.attended]
    ['cross.0']

    Raises:
        BadInput: VED, which has no attention.
    """
    trace = network(batch)
    if trace.attention is None:
        raise BadInput("a network without attention has no pass to analyse; look at its states instead")
    query_site, key_site = site_names("cross", 0)
    attended = Attended(
        kind="cross",
        layer=0,
        query_inputs=trace.decoder_states,
        key_inputs=trace.encoder_states,
        query_site=query_site,
        key_site=key_site,
        query_map=LinearMap.none(trace.decoder_states),
        key_map=LinearMap.none(trace.encoder_states),
        attention=trace.attention[:, None],
    )
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    one = ModelPass(**{name: getattr(trace, name) for name in names}, attended=(attended,))
    one.check()
    return one


@torch.no_grad()
def transformer_pass(
    network: Transformer, batch: Batch, kinds: Collection[AttentionKind] = KINDS
) -> ModelPass:
    """A teacher-forced pass of a :class:`~attnlib.models.transformer.Transformer`, all layers and heads.

    >>> from attnlib.models.transformer import TransformerConfig
    >>> from attnlib.training.corpus import Corpus, collate
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
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    one = ModelPass(**{name: getattr(trace, name) for name in names}, attended=tuple(found))
    one.check()
    return one


def _rotation(states: Tensor, attention: MultiHeadAttention) -> Rotary | None:
    if not isinstance(attention, RotaryAttention):
        return None
    return Rotary(*(own.to(states) for own in rotation_tables(states.shape[1], attention.head_width)))
