"""Passes of the networks of :mod:`attnlib.models`, which return all that is needed by themselves."""

from collections.abc import Collection

import torch
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap, Rotary, site_names
from attnlib.adapters.model_pass import ModelPass
from attnlib.models.trace import Trace
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
    return _checked(trace, tuple(found))


def pass_of_trace(trace: Trace, scale: float = 1.0) -> ModelPass:
    """The pass of a network with one attention whose score is a dot product of states.

    Raises:
        BadInput: the attention of the trace is not that of such a score.
    """
    queries = getattr(trace, "queries", None)
    queries = trace.decoder_states if queries is None else queries
    attended = Attended(
        kind="cross",
        layer=0,
        query_inputs=queries,
        key_inputs=trace.encoder_states,
        query_site="decoder",
        key_site="encoder",
        query_map=LinearMap.none(queries),
        key_map=LinearMap.none(trace.encoder_states),
        scale=scale,
        attention=trace.attention[:, None],
    )
    return _checked(trace, (attended,))


def _checked(trace: object, attended: tuple[Attended, ...]) -> ModelPass:
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    found = ModelPass(**{name: getattr(trace, name) for name in names}, attended=attended)
    found.check()
    return found


def _rotation(states: Tensor, attention: MultiHeadAttention) -> Rotary | None:
    if not isinstance(attention, RotaryAttention):
        return None
    return Rotary(*(own.to(states) for own in rotation_tables(states.shape[1], attention.head_width)))
