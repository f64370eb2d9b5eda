"""Gradients against finite differences, slopes by hand, and the experiment on tiny networks."""

from itertools import product

import numpy as np
import pytest
import torch

from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from attnlib.training.corpus import Corpus, collate
from notebooks.primer.path_length.experiment import decay
from notebooks.primer.path_length.measure import gradient_norms

BATCH = collate(Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6]], [[4, 5], [6, 7, 4, 4]]), [0, 1])


@pytest.mark.parametrize("kind", [*NAMED, "plain"])
def test_norms_are_those_of_finite_differences(kind):
    config = SequenceConfig(9, 8, width=5, **NAMED.get(kind, {}))
    network = SequenceToSequence(config, torch.Generator().manual_seed(0)).double()
    found = gradient_norms(network, BATCH)
    inputs, step = network.embedding_source(BATCH.source).detach(), 1e-5

    def outputs(moved):
        logits = network.decode(BATCH, *network.encode_inputs(moved, BATCH.source_mask)).logits
        right = logits.gather(-1, BATCH.target_output[..., None])[..., 0]
        return (right - logits.mean(-1)).detach()

    for t in range(inputs.shape[1]):
        slopes = []
        for direction in range(5):
            nudge = torch.zeros_like(inputs)
            nudge[:, t, direction] = step
            slopes.append((outputs(inputs + nudge) - outputs(inputs - nudge)) / (2 * step))
        expected = torch.stack(slopes, -1).norm(dim=-1)
        torch.testing.assert_close(found[:, :, t], expected, rtol=1e-4, atol=1e-8)


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
    corpus = Corpus.from_ids(*2 * [[[4 + (3 * i + j * j) % 10 for j in range(12)] for i in range(16)]])
    batch, rates = collate(corpus, range(16)), []
    for cell, width in product(("gru", "lstm"), (16, 64, 256)):
        network = SequenceToSequence(
            SequenceConfig(14, 14, link="initial", cell=cell, width=width), torch.Generator().manual_seed(0)
        )
        rates.append(decay(gradient_norms(network, batch)[:, :12, :12].mean(0).tolist(), reverse=False))
    assert max(rates) < 0.9 * np.mean(rates) < 0
    assert min(rates) > 1.1 * np.mean(rates)
