"""VED, AED and AO: attention, positions and recurrence by their formulas; what tells them apart."""

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
    for i in range(3):
        columns = int(trace.source_mask[i].sum())
        encoder_states = trace.encoder_states[i, :columns]
        for s in range(trace.decoder_states.shape[1]):
            scores = torch.stack([trace.decoder_states[i, s] @ state for state in encoder_states])
            torch.testing.assert_close(trace.scores[i, s, :columns], scores)
            torch.testing.assert_close(trace.attention[i, s, :columns], scores.softmax(0))
            torch.testing.assert_close(trace.context[i, s], scores.softmax(0) @ encoder_states)
    assert torch.all(trace.attention[~trace.source_mask[:, None, :].expand_as(trace.attention)] == 0)


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


# Recurrent layers.


def random_layer(cell, width=6, seed=0):
    layer = fused_layer(cell, width).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-0.7, 0.7, generator=generator)
    return layer


def hidden_and_memory(state):
    return torch.cat(state, dim=-1) if isinstance(state, tuple) else state


@pytest.mark.parametrize("cell", FUSED)
@pytest.mark.parametrize("implementation", ["fused", "loop"])
def test_the_state_handed_on_is_that_of_the_last_valid_step(cell, implementation):
    inputs = torch.randn(1, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    layer = random_layer(cell)
    _, short = unroll(layer, inputs[:, :3], implementation=implementation)
    both = torch.cat([inputs, inputs])
    states, last = unroll(layer, both, lengths=torch.tensor([3, 5]), implementation=implementation)
    torch.testing.assert_close(hidden_and_memory(last)[:1], hidden_and_memory(short))
    assert torch.all(states[0, 3:] == 0)


def test_a_vanilla_step_by_hand():
    layer = fused_layer("vanilla", 1)
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), (2.0, -1.0, 0.5, 0.25), strict=True):
            parameter.fill_(value)
    states, _ = unroll(layer, torch.tensor([[[1.0], [0.0]]]), implementation="loop")
    first = torch.tanh(torch.tensor(2.75))
    torch.testing.assert_close(states.flatten(), torch.stack([first, torch.tanh(-first + 0.75)]))


def test_an_update_gate_step_by_hand():
    layer = fused_layer("ugrnn", 1)
    gate, candidate = (2.0, -1.0, 0.75), (0.5, 1.0, -0.25)  # from the input, from the state, bias
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.tensor([[gate[0]], [candidate[0]]]))
        layer.weight_hh_l0.copy_(torch.tensor([[gate[1]], [candidate[1]]]))
        layer.bias_ih_l0.copy_(torch.tensor([gate[2], candidate[2]]))
        layer.bias_hh_l0.zero_()
    states, _ = unroll(layer, torch.tensor([[[1.0], [0.0]]]))
    keep = torch.sigmoid(torch.tensor(2.75))
    first = (1 - keep) * torch.tanh(torch.tensor(0.25))
    keep = torch.sigmoid(0.75 - first)
    second = keep * first + (1 - keep) * torch.tanh(first - 0.25)
    torch.testing.assert_close(states.flatten(), torch.stack([first, second]))
