"""The exact two-way fit against dummy-coded least squares, and the laws that fix it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attnlib.decomposition import Components
from attnlib.decomposition.two_way import connected_pieces
from tests.attnlib.decomposition.component_builders import corpora, fitted


def exact_of(corpus):
    return fitted(corpus, "least_squares")


def design(corpus):
    """Dummy codes of position and of token for every valid place, and its state."""
    states, tokens, mask, n_tokens = corpus
    positions = np.eye(mask.shape[1])[np.nonzero(mask)[1]]
    return positions, np.eye(n_tokens)[tokens[mask]], states[mask]


def r_squared(codes, rows):
    """Share of variance by numpy's own least squares."""
    left = rows - codes @ np.linalg.lstsq(codes, rows, rcond=None)[0]
    return 1 - (left**2).sum() / ((rows - rows.mean(0)) ** 2).sum()


@settings(max_examples=80)
@given(corpora())
def test_it_is_dummy_coded_least_squares_with_the_free_constants_chosen(corpus):
    positions, words, rows = design(corpus)
    codes, counts, scale = np.hstack([positions, words]), words.sum(0), np.abs(rows).max()
    fit = codes @ np.linalg.lstsq(codes, rows, rcond=None)[0]
    components = exact_of(corpus)
    solution = np.vstack([components.temporal.numpy(), components.input.numpy()])
    assert np.abs(codes @ solution - fit).max() <= 1e-9 * scale
    # the normal equations: what is left has no mean at any position and none on any token
    assert np.abs(codes.T @ (rows - codes @ solution)).max() <= 1e-9 * np.abs(rows).sum()

    # the weighted sum of chi is zero, and numpy's least-norm solution among those with it zero is the same
    assert np.abs(counts @ components.input.numpy()).max() <= 1e-9 * scale * counts.sum()
    constraint = np.concatenate([np.zeros(positions.shape[1]), counts])[None, :]
    expected = np.linalg.lstsq(np.vstack([codes, constraint]), np.vstack([fit, 0 * fit[:1]]), rcond=None)[0]
    assert np.abs(solution - expected).max() <= 1e-8 * scale

    found = components.variance_explained()
    if len(rows) == 1:
        assert np.isnan(found.temporal)
        return
    both, by_position, by_token = (r_squared(own, rows) for own in (codes, positions, words))
    shares = by_position, both, both - by_token, both - by_position
    names = "temporal", "additive", "temporal_unique", "input_unique"
    assert [getattr(found, name) for name in names] == pytest.approx(shares, abs=1e-7)


def test_hand_worked_unbalanced_words():
    """h = t + 10 w without noise: averages give part of position to the words, the exact fit does not."""
    tokens = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 1]])
    states = (torch.arange(2) + 10.0 * tokens)[:, :, None]
    mask = torch.ones(4, 2, dtype=torch.bool)
    exact = Components(2, 2, 1, method="least_squares").update(states, tokens, mask)
    assert exact.temporal.flatten().tolist() == pytest.approx([5, 6])
    assert exact.input.flatten().tolist() == pytest.approx([-5, 5])
    assert exact.split(states, tokens, mask).residual.abs().max() < 1e-6
    means = Components(2, 2, 1).update(states, tokens, mask)
    assert means.temporal.flatten().tolist() == pytest.approx([2.5, 8.5])
    shares = exact.variance_explained()
    assert shares.additive == pytest.approx(1)
    # 0 0 0 10 at position 0, 11 11 1 11 at 1: squares around 5.5 sum to 222, those of the means to 8 * 9
    assert shares.temporal == pytest.approx(72 / 222)


def test_pieces_of_positions_that_no_token_connects():
    """Position 0 has the mark alone; 1 and 2 share a word; 3 was never seen."""
    counts = torch.tensor([[5, 0, 0, 0], [0, 2, 1, 0], [0, 0, 4, 0], [0, 0, 0, 0]])
    assert connected_pieces(counts).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]


def test_large_mean_small_spread_in_single_precision():
    """Sums of squares cancel: with a mean of 300 spreads the shares must still be right."""
    rng = np.random.default_rng(1)
    states = (300 + rng.normal(size=(64, 5, 3))).astype(np.float32)
    corpus = states, rng.integers(0, 6, size=(64, 5)), np.ones((64, 5), dtype=bool), 6
    positions, words, rows = design(corpus)
    expected = r_squared(np.hstack([positions, words]), rows.astype(float))
    assert exact_of(corpus).variance_explained().additive == pytest.approx(expected, rel=1e-6)


def test_states_that_do_not_vary_have_no_shares():
    corpus = np.full((3, 2, 2), 7.0), np.zeros((3, 2), dtype=int), np.ones((3, 2), dtype=bool), 1
    assert np.isnan(exact_of(corpus).variance_explained().additive)
