"""The Transformer against torch's own layers, each head as a trace, and positions by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from attnlib.models.encoder_decoder import sinusoidal_positions
from attnlib.models.transformer import (
    REACH,
    MultiHeadAttention,
    RelativeAttention,
    RotaryAttention,
    Transformer,
    TransformerConfig,
    rotation_tables,
)
from attnlib.training.vocabulary import EOS
from tests.attnlib.models.model_builders import POSITIONS, SMALL, batch_of, generator, transformer

BATCH = batch_of()


def torchs_state(attention, name):
    three = [attention.query_map, attention.key_map, attention.value_map]
    return {
        f"{name}.in_proj_weight": torch.cat([one.weight for one in three]),
        f"{name}.in_proj_bias": torch.cat([one.bias for one in three]),
        f"{name}.out_proj.weight": attention.output_map.weight,
        f"{name}.out_proj.bias": attention.output_map.bias,
    }


def torchs_stack(kind, stack, norms):
    """torch's encoder or decoder with the weights of ours: every weight of either has its place."""
    sizes = {"dim_feedforward": SMALL.hidden, "dropout": 0.0, "batch_first": True, "norm_first": True}
    one = getattr(nn, f"Transformer{kind}Layer")(SMALL.width, SMALL.heads, **sizes, device="meta")
    unnested = {"enable_nested_tensor": False} if kind == "Encoder" else {}
    layers = getattr(nn, f"Transformer{kind}")(one, SMALL.layers, **unnested)
    layers = layers.double().to_empty(device="cpu").eval()
    for theirs, ours in zip(layers.layers, stack, strict=True):
        state = torchs_state(ours.self_attention, "self_attn")
        if kind == "Decoder":
            state |= torchs_state(ours.cross_attention, "multihead_attn")
        named = {"linear1": ours.feed_forward.widen, "linear2": ours.feed_forward.narrow}
        named |= {f"norm{number}": getattr(ours, norm) for number, norm in enumerate(norms, 1)}
        for name, module in named.items():
            state |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        theirs.load_state_dict(state)
        assert sum(value.numel() for value in state.values()) == sum(p.numel() for p in ours.parameters())
    return layers


def test_one_attention_by_hand():
    # Two heads of width 1. The values are four times the inputs, the output map swaps the heads. A query of
    # log 3 gives 3 times the weight to a key that is greater by 1.
    attention = MultiHeadAttention(TransformerConfig(5, 5, width=2, heads=2))
    with torch.no_grad():
        for module in attention.children():
            module.weight.copy_(torch.eye(2))
            module.bias.zero_()
        attention.value_map.weight.mul_(4)
        attention.output_map.weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    keys = torch.tensor([[[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]]])
    queries = torch.tensor([[[0.0, math.log(3)], [math.log(3), 0.0]]])
    seen = torch.tensor([[[True, True, False]]])
    output, attended = attention(queries, attention.answer(keys), seen)
    expected = torch.tensor([[[0.5, 0.5, 0], [0.25, 0.75, 0]], [[0.25, 0.75, 0], [0.5, 0.5, 0]]])
    torch.testing.assert_close(attended.attention, expected[None])
    torch.testing.assert_close(output, torch.tensor([[[3.0, 2.0], [2.0, 3.0]]]))


def test_the_network_is_that_of_torchs_layers():
    model = transformer()
    encoder = torchs_stack("Encoder", model.encoder, ["self_norm", "feed_norm"])
    decoder = torchs_stack("Decoder", model.decoder, ["self_norm", "cross_norm", "feed_norm"])
    words = model.embedding_source(BATCH.source), model.embedding_target(BATCH.target_input)
    source, target = (own + sinusoidal_positions(own.shape[1], SMALL.width) for own in words)
    memory = model.encoder_norm(encoder(source, src_key_padding_mask=~BATCH.source_mask))
    steps = BATCH.target_mask.shape[1]
    padding = {"tgt_key_padding_mask": ~BATCH.target_mask, "memory_key_padding_mask": ~BATCH.source_mask}
    states = decoder(target, memory, tgt_mask=torch.ones(steps, steps).triu(1).bool(), **padding)
    logits, trace = model.readout(model.decoder_norm(states)), model(BATCH)
    torch.testing.assert_close(trace.encoder_states[BATCH.source_mask], memory[BATCH.source_mask])
    torch.testing.assert_close(trace.logits[BATCH.target_mask], logits[BATCH.target_mask])


SIDES = {"encoder_self": "ss", "decoder_self": "tt", "cross": "ts"}  # of the queries and of the keys


@pytest.mark.parametrize("kind", SIDES)
def test_each_head_is_torchs_attention_on_the_inputs_that_are_kept(kind):
    model = transformer()
    asking, answering = ({"s": BATCH.source_mask, "t": BATCH.target_mask}[side] for side in SIDES[kind])
    allowed = answering[:, None].repeat(1, asking.shape[1], 1)
    allowed = allowed.tril() if kind == "decoder_self" else allowed
    side = model.encoder if kind == "encoder_self" else model.decoder
    for layer, heads in enumerate(getattr(model(BATCH), kind)):
        attention = side[layer].cross_attention if kind == "cross" else side[layer].self_attention
        for number, head in enumerate(heads):
            rows = slice(number * SMALL.head_width, (number + 1) * SMALL.head_width)
            maps = attention.query_map, attention.key_map, attention.value_map
            inputs = head.query_inputs, head.key_inputs, head.key_inputs
            queries, keys, values = (own(x)[..., rows] for own, x in zip(maps, inputs, strict=True))
            identity = torch.eye(keys.shape[1], dtype=keys.dtype).expand(3, -1, -1)
            for found, own in ((head.attention, identity), (head.context, values)):
                expected = scaled_dot_product_attention(queries, keys, own, attn_mask=allowed)
                torch.testing.assert_close(found, expected)
            torch.testing.assert_close(head.values, values)
            query, key = model.projections(kind, layer, number)
            torch.testing.assert_close(head.decoder_states, head.query_inputs @ query.weight.T + query.bias)
            torch.testing.assert_close(head.encoder_states, key(head.key_inputs))
            products = head.decoder_states @ head.encoder_states.mT
            torch.testing.assert_close(head.scores, products, rtol=0, atol=1e-14)
            assert torch.isfinite(head.scores).all()


def test_a_head_has_the_words_of_its_two_sides():
    trace = transformer()(BATCH)
    words = {
        "s": (BATCH.source, BATCH.source, BATCH.source_mask),
        "t": (BATCH.target_input, BATCH.target_output, BATCH.target_mask),
    }
    names = ("target_tokens", "target_outputs", "target_mask", "source_tokens", "source_mask")
    for kind, (asking, answering) in SIDES.items():
        head = getattr(trace, kind)[1][2]
        expected = *words[asking], *words[answering][::2]
        assert all(getattr(head, name) is own for name, own in zip(names, expected, strict=True))
        assert head.logits is (None if kind == "encoder_self" else trace.logits)
    assert trace.cross[1][2].key_inputs is trace.encoder_states


def test_the_order_of_the_source_is_known_from_positions_alone():
    source, mask = torch.tensor([[4, 5, 6, EOS]]), torch.ones(1, 4, dtype=torch.bool)
    turned = source[:, [2, 0, 1, 3]]
    for positions in POSITIONS:
        model = transformer(positions=positions)
        (states, _), (states_turned, _) = model.encode(source, mask), model.encode(turned, mask)
        assert torch.allclose(states[:, [2, 0, 1, 3]], states_turned) == (positions == "none")
        if positions in ("relative", "rotary"):  # cross-attention is left as it is
            assert all(type(layer.cross_attention) is MultiHeadAttention for layer in model.decoder)


def test_turned_by_their_positions_the_same_words_further_on_have_the_same_scores():
    attention = RotaryAttention(replace(SMALL, positions="rotary")).requires_grad_(False)
    pair = torch.randn(1, 2, SMALL.width, generator=generator())
    everywhere = torch.ones(1, 1, 2, dtype=torch.bool)
    found = [attention(pair, attention.answer(pair, first), everywhere, first)[1].scores for first in (0, 3)]
    torch.testing.assert_close(*found)


def test_a_bias_is_looked_up_by_its_distance_and_starts_at_zero():
    attention = RelativeAttention(replace(SMALL, positions="relative")).requires_grad_(False)
    attention.distance_bias.copy_(torch.arange(-REACH, REACH + 1).expand(3, -1))
    found = attention.position_bias(first=2, target=2, source=4)
    assert found[0].tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
    far = attention.position_bias(first=0, target=1, source=REACH + 5)
    assert far[1, 0, -1] == REACH
    untrained = Transformer(replace(SMALL, positions="relative"), generator())
    assert not untrained.encoder[1].self_attention.distance_bias.any()


def test_a_pair_of_coordinates_turns_by_its_angle():
    attention = RotaryAttention(TransformerConfig(9, 8, width=16, heads=2, positions="rotary"))
    rows = torch.zeros(1, 2, 1, 8)
    rows[..., 1] = 1.0  # with coordinate 5 it turns by position · 10000^(-1/4) = position / 10
    turned = attention.placed(rows, first=3)[0, 0, 0]
    expected = torch.zeros(8)
    expected[1], expected[5] = torch.tensor(0.3).cos(), torch.tensor(0.3).sin()
    torch.testing.assert_close(turned, expected)
    cos, sin = rotation_tables(4, 8)
    assert torch.equal(cos[:, :4], cos[:, 4:])
    torch.testing.assert_close(cos.square() + sin.square(), torch.ones(4, 8))
