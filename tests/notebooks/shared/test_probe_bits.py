"""The softmax probe: bits of what is there, and of nothing else."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from notebooks.shared.measure import probe_bits
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused


def drawn(samples, seed, beside=0):
    """Words at three places; the vector has the first as it is, the second in noise, nothing of the third.

    ``beside`` is the number of coordinates that are noise alone.
    """
    draw = generator(seed)
    words = torch.randint(4, (samples, 3), generator=draw)
    shown = torch.nn.functional.one_hot(words, 4).double()
    noise, more = (torch.randn(samples, width, generator=draw).double() for width in (4, beside))
    return torch.cat([shown[:, 0], shown[:, 1] + noise, more], dim=1), words


def test_bits_measure_how_much_is_there():
    fitted, judged = drawn(3_000, 0), drawn(2_000, 1)
    whole, part, none = probe_bits(*fitted, *judged, words=4).tolist()
    assert whole == pytest.approx(2, abs=0.05)
    assert 0.2 < part < 1
    assert none == pytest.approx(0, abs=0.02)


def test_it_is_the_softmax_regression_that_scipy_finds():
    (vectors, words), (others, right) = drawn(400, 2), drawn(300, 3)
    mean, spread, penalty = vectors.mean(0), vectors.std(0, correction=0), 1e-2
    inputs, judged = (((part - mean) / spread).numpy() for part in (vectors, others))

    def logs(flat, rows):
        weight, bias = flat[:32].reshape(8, 4), flat[32:]
        return log_softmax(rows @ weight + bias, axis=1)

    def loss(flat):
        log_likelihood = logs(flat, inputs)[np.arange(400), words[:, 1].numpy()].mean()
        return -log_likelihood + penalty / 2 * (flat[:32] ** 2).sum()

    best = minimize(loss, np.zeros(36), method="BFGS", options={"gtol": 1e-7}).x
    bits = 2 + logs(best, judged)[np.arange(300), right[:, 1].numpy()].mean() / math.log(2)
    probed = probe_bits(vectors, words, others, right, words=4, penalties=(penalty,))
    assert probed[1].item() == pytest.approx(bits, abs=1e-3)


def test_each_place_has_the_penalty_that_is_best_for_it():
    """Of all places at once the probe reads what it does with the better penalty for each."""
    fitted, judged = drawn(150, 6, beside=56), drawn(1_000, 7, beside=56)
    stiff, light = (probe_bits(*fitted, *judged, words=4, penalties=(p,)) for p in (1.0, 1e-2))
    both = probe_bits(*fitted, *judged, words=4, penalties=(1.0, 1e-2))
    assert light[0] > stiff[0]
    assert (light[1:] < stiff[1:]).all()
    torch.testing.assert_close(both, torch.cat([light[:1], stiff[1:]]), atol=0.01, rtol=0)


def test_a_fifth_is_left_out_for_the_choice_alone():
    """With one penalty nothing is chosen; with the same one twice the fit is the same, all samples in it."""
    fitted, judged = drawn(100, 8), drawn(1_000, 9)
    once, twice = (
        probe_bits(*fitted, *judged, words=4, penalties=given) for given in ((0.01,), (0.01, 0.01))
    )
    torch.testing.assert_close(once, twice, atol=3e-3, rtol=0)


VECTORS = torch.tensor([[0.0], [0.0]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {
                "fitted": VECTORS,
                "fitted_words": torch.tensor([[3], [3]]),
                "judged": VECTORS,
                "judged_words": torch.tensor([[0], [0]]),
                "words": 3,
            },
            "expected 0 … 2",
            id="word beyond the vocabulary",
        )
    ],
)
def test_probe_bits_refuses(given, message):
    assert_refused(partial(probe_bits, **given), message)
