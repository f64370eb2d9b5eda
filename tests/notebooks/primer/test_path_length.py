"""Gradients against finite differences, slopes by hand, and the experiment on tiny networks."""

from itertools import product

import numpy as np
import pytest
import torch

from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from notebooks.primer.path_length.experiment import decay, gradient_norms
from tests.attnlib.models.model_builders import batch_of, generator, sequence_network


@pytest.mark.parametrize("kind", [*NAMED, "plain"])
def test_norms_are_those_of_finite_differences(kind):
    network, batch = sequence_network(kind), batch_of(0, 1)
    found = gradient_norms(network, batch)
    inputs, step = network.embedding_source(batch.source).detach(), 1e-5

    def outputs(moved):
        logits = network.decode(batch, *network.encode_inputs(moved, batch.source_mask)).logits
        right = logits.gather(-1, batch.target_output[..., None])[..., 0]
        return (right - logits.mean(-1)).detach()

    nudges = step * torch.eye(inputs[0].numel(), dtype=torch.float64).view(-1, *inputs.shape[1:])
    slopes = [(outputs(inputs + nudge) - outputs(inputs - nudge)) / (2 * step) for nudge in nudges]
    expected = torch.stack(slopes, -1).unflatten(-1, inputs.shape[1:]).norm(dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("reverse", [False, True])
def test_decay_is_the_slope_over_distance(reverse):
    """Norms that fall by a factor of 10^0.3 a step, and norms that are all the same."""
    n = 6
    distance = [[(t + 1 if reverse else n - t) + s + 1 for t in range(n)] for s in range(n)]
    falling = [[10 ** (-0.3 * d) for d in row] for row in distance]
    assert decay(falling, reverse=reverse) == pytest.approx(-0.3)
    assert decay(falling, reverse=not reverse) == pytest.approx(0, abs=1e-9)
    assert decay([[0.7] * n] * n, reverse=reverse) == pytest.approx(0)


def test_before_training_neither_cell_nor_width_changes_the_rate_much():
    """As the page says: all within a tenth of each other."""
    texts = [[4 + (3 * i + j * j) % 10 for j in range(12)] for i in range(16)]
    batch, rates = batch_of(pairs=[(text, text) for text in texts]), []
    for cell, width in product(("gru", "lstm"), (16, 64, 256)):
        config = SequenceConfig(14, 14, link="initial", cell=cell, width=width)
        network = SequenceToSequence(config, generator())
        rates.append(decay(gradient_norms(network, batch)[:, :12, :12].mean(0).tolist(), reverse=False))
    assert max(rates) < 0.9 * np.mean(rates) < 0
    assert min(rates) > 1.1 * np.mean(rates)
