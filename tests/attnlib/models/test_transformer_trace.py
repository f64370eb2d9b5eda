"""The trace of a Transformer: each head against torch's attention, its projections, words and masks."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnlib.errors import BadInput, UnknownName
from tests.attnlib.models.test_transformer import SMALL, batch_of, model_of

KINDS = ["encoder_self", "decoder_self", "cross"]


def attentions(model, kind):
    if kind == "encoder_self":
        return [layer.self_attention for layer in model.encoder]
    return [layer.cross_attention if kind == "cross" else layer.self_attention for layer in model.decoder]


def allowed(kind, batch):
    """What may be looked at, position by position."""
    asking = batch.source_mask if kind == "encoder_self" else batch.target_mask
    answering = batch.target_mask if kind == "decoder_self" else batch.source_mask
    mask = torch.zeros(len(batch), asking.shape[1], answering.shape[1], dtype=torch.bool)
    for sample, asks, answers in np.ndindex(*mask.shape):
        later = kind == "decoder_self" and answers > asks
        mask[sample, asks, answers] = answering[sample, answers] and not later
    return mask


@pytest.mark.parametrize("kind", KINDS)
def test_each_head_is_torchs_attention_on_the_inputs_that_are_kept(kind):
    model, batch = model_of(), batch_of()
    trace, width = model(batch), SMALL.head_width
    for attention, heads in zip(attentions(model, kind), getattr(trace, kind), strict=True):
        for number, head in enumerate(heads):
            rows = slice(number * width, (number + 1) * width)
            queries = attention.query_map(head.query_inputs)[..., rows]
            keys = attention.key_map(head.key_inputs)[..., rows]
            values = attention.value_map(head.key_inputs)[..., rows]
            mask = allowed(kind, batch)
            context = scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
            identity = torch.eye(keys.shape[1], dtype=keys.dtype).expand(len(batch), -1, -1)
            weights = scaled_dot_product_attention(queries, keys, identity, attn_mask=mask)
            torch.testing.assert_close(head.attention, weights)
            torch.testing.assert_close(head.context, context)
            torch.testing.assert_close(head.values, values)


@pytest.mark.parametrize("kind", KINDS)
def test_queries_and_keys_are_the_projections_of_their_inputs_and_scores_their_products(kind):
    model, batch = model_of(), batch_of()
    for layer, heads in enumerate(getattr(model(batch), kind)):
        for number, head in enumerate(heads):
            query, key = model.projections(kind, layer, number)
            assert query.weight.shape == (SMALL.head_width, SMALL.width)
            queries = head.query_inputs @ query.weight.T + query.bias
            torch.testing.assert_close(head.decoder_states, queries)
            torch.testing.assert_close(head.encoder_states, key(head.key_inputs))
            products = head.decoder_states @ head.encoder_states.transpose(1, 2)
            torch.testing.assert_close(head.scores, products, rtol=0, atol=1e-14)
            assert torch.isfinite(head.scores).all()


def test_a_head_has_the_words_of_its_two_sides():
    batch = batch_of()
    trace = model_of()(batch)
    encoder, decoder, cross = trace.encoder_self[1][2], trace.decoder_self[1][2], trace.cross[1][2]
    for head, source, mask in (
        (encoder, batch.source, batch.source_mask),
        (decoder, batch.target_input, batch.target_mask),
        (cross, batch.source, batch.source_mask),
    ):
        assert head.source_tokens is source
        assert head.source_mask is mask
        assert torch.equal(head.attention.sum(-1).float(), torch.ones(head.attention.shape[:2]))
        assert not head.attention[~mask[:, None].expand_as(head.attention)].any()
    assert encoder.target_tokens is encoder.target_outputs is batch.source
    assert encoder.logits is None
    for head in decoder, cross:
        assert head.target_tokens is batch.target_input
        assert head.target_outputs is batch.target_output
        assert head.target_mask is batch.target_mask
        assert head.logits is trace.logits
    assert cross.key_inputs is trace.encoder_states


def test_heads_are_views_made_when_asked_for():
    trace = model_of()(batch_of())
    assert not any(kind in vars(trace) for kind in KINDS)
    for kind in KINDS:
        assert getattr(trace, kind) is getattr(trace, kind)
        for layer, heads in zip(trace.attended[kind], getattr(trace, kind), strict=True):
            storage = layer.attention.untyped_storage().data_ptr()
            for head in heads:
                assert head.attention.untyped_storage().data_ptr() == storage
                assert head.decoder_states._is_view()
                assert head.encoder_states._is_view()


def test_a_head_moves_with_all_its_tensors():
    head = model_of()(batch_of()).encoder_self[0][0].to("meta")
    assert head.logits is None
    assert head.position_bias is None
    absent = ("logits", "position_bias")
    others = [getattr(head, field.name) for field in fields(head) if field.name not in absent]
    assert all(value.is_meta for value in others)


def test_no_such_projection():
    model = model_of()
    with pytest.raises(UnknownName, match="did you mean 'cross'"):
        model.projections("crosss", 0, 0)
    with pytest.raises(BadInput, match="head is 3; this network's go from 0 to 2"):
        model.projections("cross", 0, 3)
    with pytest.raises(BadInput, match="layer is -1"):
        model.projections("encoder_self", -1, 0)
