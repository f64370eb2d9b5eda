"""Gradients against finite differences, slopes by hand, and the experiment on tiny networks."""

from itertools import product

import numpy as np
import pytest
import torch

from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from attnlib.training.corpus import Corpus, collate
from companion.results.asks import specs_of
from companion.runs.store import Store
from notebooks.primer.path_length.experiment import Config, asks, decay
from notebooks.primer.path_length.measure import gradient_norms, measure_gradients

BATCH = collate(Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6]], [[4, 5], [6, 7, 4, 4]]), [0, 1])
TINY = Config(seeds=2, longest=5, n_train=300, judged=60, width=8, steps=3, looks=1, length=4, samples=20)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


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


def test_padding_has_no_gradient():
    config = SequenceConfig(9, 8, width=5)
    network = SequenceToSequence(config, torch.Generator().manual_seed(0)).double()
    found = gradient_norms(network, BATCH)
    assert not found[0, :, 4:].any()
    assert (found[1, :5, :6] > 0).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_decay_is_the_slope_over_distance(reverse):
    """Norms that fall by a factor of 10^0.3 a step, and norms that are all the same."""
    n = 6
    distance = [[(t + 1 if reverse else n - t) + s + 1 for t in range(n)] for s in range(n)]
    falling = [[10 ** (-0.3 * d) for d in row] for row in distance]
    assert decay(falling, reverse=reverse) == pytest.approx(-0.3)
    assert decay(falling, reverse=not reverse) == pytest.approx(0, abs=1e-9)
    assert decay([[0.7] * n] * n, reverse=reverse) == pytest.approx(0)


def test_the_untrained_network_is_the_one_that_training_began_with(store):
    """Where attention is nearly uniform, distance does not matter; where there is none, it does."""
    found = {
        spec.settings: measure_gradients(store.recording(spec), length=4, samples=20)
        for spec in specs_of(asks(TINY))
    }
    for settings, measured in found.items():
        slope = decay(measured["untrained"], reverse=dict(settings).get("reverse", False))
        assert (slope < -0.1) == (dict(settings).get("link") == "initial")
        assert np.shape(measured["trained"]) == (4, 4)
        rows = np.asarray(measured["trained"])
        assert measured["aligned_trained"] == pytest.approx(np.mean(rows.diagonal() / rows.sum(1)))


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
