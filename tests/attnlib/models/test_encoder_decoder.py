"""VED, AED and AO: attention, positions and recurrence by their formulas; what tells them apart."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.models.encoder_decoder import TABLE_ROWS, shuffled_positions, sinusoidal_positions
from attnlib.models.recurrence import FUSED, fused_layer, unroll
from tests.attnlib.models.model_builders import RECURRENT, batch_of, encoder_decoder, generator

BATCH = batch_of()


@pytest.mark.parametrize("kind", RECURRENT)
def test_loop_and_fused_give_the_same_trace(kind):
    model = encoder_decoder(kind)
    fused, loop = model(BATCH), model(BATCH, implementation="loop")
    torch.testing.assert_close(loop.logits, fused.logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_attention_is_the_softmax_of_dot_products_and_the_context_its_mean(kind):
    trace = encoder_decoder(kind)(BATCH)
    for i, s in np.ndindex(trace.decoder_states.shape[:2]):
        keys = trace.encoder_states[i, trace.source_mask[i]]
        scores = torch.stack([trace.decoder_states[i, s] @ key for key in keys])
        torch.testing.assert_close(trace.scores[i, s, : len(keys)], scores)
        torch.testing.assert_close(trace.attention[i, s, : len(keys)], scores.softmax(0))
        torch.testing.assert_close(trace.context[i, s], scores.softmax(0) @ keys)
        assert not trace.attention[i, s, len(keys) :].any()


def test_attention_without_feedback_leaves_decoder_states_to_the_recurrence():
    """AED's decoder states are VED's: the context never enters the recurrence."""
    with_attention, without = encoder_decoder("AED"), encoder_decoder("VED")
    shared = {name: value for name, value in with_attention.state_dict().items() if "readout" not in name}
    without.load_state_dict(shared, strict=False)
    assert torch.equal(with_attention(BATCH).decoder_states, without(BATCH).decoder_states)


def test_attention_only_knows_order_from_positions_alone():
    turned = replace(BATCH, source=BATCH.source.flip(1), source_mask=BATCH.source_mask.flip(1))
    for positions, same in (("none", True), ("sinusoidal", False)):
        model = encoder_decoder("AO", positions=positions)
        assert torch.allclose(model(turned).logits, model(BATCH).logits) == same


def test_sinusoidal_positions_by_their_formula():
    table = sinusoidal_positions(7, 6)
    for t, i in np.ndindex(7, 3):
        angle = t / 10_000 ** (2 * i / 6)
        assert table[t, 2 * i].item() == pytest.approx(np.sin(angle), abs=1e-6)
        assert table[t, 2 * i + 1].item() == pytest.approx(np.cos(angle), abs=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "shuffled"])
def test_a_later_first_position_is_the_end_of_a_longer_sentence(positions):
    model = encoder_decoder("AO", positions=positions)
    inputs = torch.randn(2, 5, 6, generator=generator(1)).double()
    whole, _ = model.encode_inputs(inputs)
    end, _ = model.encode_inputs(inputs[:, 2:], first_position=2)
    torch.testing.assert_close(end, whole[:, 2:])
    assert not torch.allclose(model.encode_inputs(inputs[:, 2:])[0], end)


def test_shuffled_codes_are_the_same_codes_in_another_order():
    shuffled, plain = shuffled_positions(TABLE_ROWS, 6), sinusoidal_positions(TABLE_ROWS, 6)
    assert sorted(map(tuple, shuffled.tolist())) == sorted(map(tuple, plain.tolist()))
    assert not torch.equal(shuffled, plain)


@pytest.mark.parametrize("cell", FUSED)
@pytest.mark.parametrize("implementation", ["fused", "loop"])
@torch.no_grad()
def test_the_state_handed_on_is_that_of_the_last_valid_step(cell, implementation):
    inputs, layer = torch.randn(1, 5, 6, generator=generator(2)).double(), fused_layer(cell, 6).double()
    draw = generator()
    for parameter in layer.parameters():
        parameter.uniform_(-0.7, 0.7, generator=draw)
    _, short = unroll(layer, inputs[:, :3], implementation=implementation)
    lengths = torch.tensor([3, 5])
    states, last = unroll(layer, inputs.repeat(2, 1, 1), lengths=lengths, implementation=implementation)
    both = zip(last, short, strict=True) if isinstance(last, tuple) else [(last, short)]
    for found, expected in both:
        torch.testing.assert_close(found.narrow(-2, 0, 1), expected)
    assert torch.all(states[0, 3:] == 0)


@torch.no_grad()
def test_a_vanilla_step_by_hand():
    layer = fused_layer("vanilla", 1)
    for parameter, value in zip(layer.parameters(), (2.0, -1.0, 0.5, 0.25), strict=True):
        parameter.fill_(value)
    states, _ = unroll(layer, torch.tensor([[[1.0], [0.0]]]), implementation="loop")
    first = math.tanh(2.75)
    assert states.flatten().tolist() == pytest.approx([first, math.tanh(-first + 0.75)])


@torch.no_grad()
def test_an_update_gate_step_by_hand():
    layer = fused_layer("ugrnn", 1)
    # The gate and the candidate: from the input, from the state, and two biases.
    for parameter, values in zip(layer.parameters(), ((2, 0.5), (-1, 1), (0.75, -0.25), (0, 0)), strict=True):
        parameter.copy_(torch.tensor(values).view_as(parameter))
    states, _ = unroll(layer, torch.tensor([[[1.0], [0.0]]]))
    first = (1 - logistic(2.75)) * math.tanh(0.25)
    keep = logistic(0.75 - first)
    second = keep * first + (1 - keep) * math.tanh(first - 0.25)
    assert states.flatten().tolist() == pytest.approx([first, second])


def logistic(x):
    return 1 / (1 + math.exp(-x))
