"""A state as a sum over the words read: against least squares, and a recurrence whose answer is known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.errors import BadInput
from notebooks.attend.without_attention.unrolled import UnrolledComponents


@st.composite
def samples(draw):
    """(tokens, states, n_tokens), words drawn independently or one position a copy of another."""
    batch, length = draw(st.integers(2, 60)), draw(st.integers(1, 5))
    n_tokens, width = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tokens = rng.integers(0, n_tokens, size=(batch, length))
    if draw(st.booleans()):
        tokens[:, -1] = tokens[:, 0]
    states = rng.normal(size=(batch, width)) + rng.normal(size=(length, n_tokens, width))[0][tokens[:, 0]]
    return tokens, states + draw(st.sampled_from([0.0, 50.0])), n_tokens


def fitted(tokens, states, n_tokens):
    unrolled = UnrolledComponents(n_tokens, tokens.shape[1], states.shape[1])
    return unrolled.update(torch.as_tensor(tokens), torch.as_tensor(states))


def codes_of(tokens, n_tokens, kept):
    blocks = [np.eye(n_tokens)[tokens[:, t]] for t in kept]
    return np.hstack([np.ones((len(tokens), 1)), *blocks])


def fit_and_share(codes, states):
    fit = codes @ np.linalg.lstsq(codes, states, rcond=None)[0]
    return fit, 1 - ((states - fit) ** 2).sum() / ((states - states.mean(0)) ** 2).sum()


@settings(max_examples=80)
@given(samples())
def test_agrees_with_dummy_coded_least_squares(sample):
    tokens, states, n_tokens = sample
    unrolled, scale = fitted(*sample), np.abs(states).max()
    positions = list(range(tokens.shape[1]))
    fit, share = fit_and_share(codes_of(tokens, n_tokens, positions), states)
    given_tokens, given_states = torch.from_numpy(tokens), torch.from_numpy(states)
    assert np.abs(unrolled.predict(given_tokens).numpy() - fit).max() <= 1e-8 * scale
    variance = unrolled.variance_explained()
    assert variance.total == pytest.approx(share, abs=1e-8)
    assert unrolled.r_squared(given_tokens, given_states) == pytest.approx(share, abs=1e-8)
    for position in positions:
        others = [t for t in positions if t != position]
        _, without = fit_and_share(codes_of(tokens, n_tokens, others), states)
        assert variance.unique[position] == pytest.approx(share - without, abs=1e-8)

    # the mean is temporal, and every position sums to zero
    assert np.abs(unrolled.temporal.numpy() - states.mean(0)).max() <= 1e-12 * scale
    sums = (unrolled.counts[:, :, None] * unrolled.input).sum(1)
    assert float(sums.abs().max()) <= 1e-9 * scale * len(states)
    assert not unrolled.input[unrolled.counts == 0].any()
    assert unrolled.samples == len(tokens)


def test_linear_recurrence_in_closed_form():
    """h_t = A h_{t-1} + B x_t + b over all sentences: chi = A^(T-t) B (x(w) - mean x), no residual."""
    rng = np.random.default_rng(3)
    width, n_tokens, length = 4, 3, 5
    transition, inward = (torch.from_numpy(0.5 * rng.normal(size=(width, width))) for _ in "AB")
    bias = torch.from_numpy(rng.normal(size=width))
    embedding = torch.from_numpy(rng.normal(size=(n_tokens, width)))
    tokens = torch.cartesian_prod(*[torch.arange(n_tokens)] * length)  # every sentence
    state = torch.zeros(len(tokens), width, dtype=torch.float64)
    for t in range(length):
        state = state @ transition.T + embedding[tokens[:, t]] @ inward.T + bias
    unrolled = UnrolledComponents(n_tokens, length, width).update(tokens, state)
    centred = (embedding - embedding.mean(0)) @ inward.T
    for t in range(length):
        expected = centred @ torch.linalg.matrix_power(transition, length - 1 - t).T
        assert torch.allclose(unrolled.input[t], expected, atol=1e-9)
    variance = unrolled.variance_explained()
    assert variance.total == pytest.approx(1)
    assert sum(variance.of_position) == pytest.approx(1)  # independent words: variances add up
    assert variance.unique == pytest.approx(variance.of_position)


def test_hand_worked_memory_of_one_word():
    """The state is 2 at word 1 of position 0, else 0: all is position 0's."""
    tokens = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    unrolled = UnrolledComponents(2, 2, 1).update(tokens, 2.0 * tokens[:, :1])
    assert unrolled.temporal.tolist() == [1.0]
    assert torch.allclose(unrolled.input.flatten(), torch.tensor([-1.0, 1.0, 0.0, 0.0]).double())
    assert unrolled.variance_explained().of_position == pytest.approx((1.0, 0.0))
    assert unrolled.contributions(tokens)[:, 0, 0].tolist() == pytest.approx([-1, -1, 1, 1])


@settings(max_examples=20)
@given(samples(), st.data())
def test_halves_merge_to_the_whole(sample, data):
    tokens, states, n_tokens = sample
    cut = data.draw(st.integers(0, len(tokens)))
    halves = fitted(tokens[cut:], states[cut:], n_tokens) + fitted(tokens[:cut], states[:cut], n_tokens)
    whole = fitted(*sample)
    assert torch.allclose(halves.input, whole.input, rtol=0, atol=1e-7 * np.abs(states).max())
    assert halves.variance_explained().total == pytest.approx(whole.variance_explained().total, abs=1e-9)


TOKENS, STATES = torch.zeros(5, 2, dtype=torch.int64), torch.zeros(5, 4)


def test_states_that_are_not_finite_and_too_many_codes_are_refused():
    with pytest.raises(BadInput, match="not finite"):
        UnrolledComponents(3, 2, 4).update(TOKENS, STATES / 0)
    with pytest.raises(BadInput, match="at most 4,096: take shorter sentences"):
        UnrolledComponents(3_000, 20, 8)


def test_states_that_do_not_vary_have_no_shares():
    assert np.isnan(UnrolledComponents(3, 2, 4).update(TOKENS, STATES).variance_explained().total)
