"""The fused layers and the plain loop compute the same, whatever the padding."""

import pytest
import torch

from attnlib.models.recurrence import FUSED, fused_layer, unroll

CELLS = list(FUSED)


def random_layer(cell, width=6, seed=0):
    layer = fused_layer(cell, width).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-0.7, 0.7, generator=generator)
    return layer


def hidden_and_memory(state):
    return torch.cat(state, dim=-1) if isinstance(state, tuple) else state


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lengths", [None, [5, 5, 5, 5], [1, 5, 3, 2]])
def test_loop_agrees_with_fused(cell, lengths):
    inputs = torch.randn(4, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    lengths = None if lengths is None else torch.tensor(lengths)
    layer = random_layer(cell)
    states, last = unroll(layer, inputs, lengths=lengths)
    loop_states, loop_last = unroll(layer, inputs, lengths=lengths, implementation="loop")
    torch.testing.assert_close(loop_states, states, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(hidden_and_memory(loop_last), hidden_and_memory(last), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
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
