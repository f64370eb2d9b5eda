"""Variance explained and pictures: against plain loops and known answers, on tiny models."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attnlib.decomposition import Components
from attnlib.decomposition.two_way import connected_pieces
from notebooks.attend.state_components import experiment
from tests.attnlib.decomposition.component_builders import corpora
from tests.attnlib.decomposition.component_builders import fitted as fitted_on


def batch(seed, samples=50, length=6, n_tokens=5, width=3):
    rng = np.random.default_rng(seed)
    tokens = np.minimum(rng.geometric(0.4, size=(samples, length)), n_tokens - 1)
    tokens[:, 0] = 0
    states = rng.normal(size=(samples, length, width)) + tokens[:, :, None] + np.arange(length)[:, None]
    mask = np.arange(length) < rng.integers(2, length + 1, size=(samples, 1))
    return torch.from_numpy(states), torch.from_numpy(tokens), torch.from_numpy(mask)


def fitted(parts):
    return [
        Components(3, n_tokens=5, n_positions=6, method=method).update(*parts)
        for method in ("least_squares", "means")
    ]


def test_held_out_shares_agree_with_a_loop():
    (states, tokens, mask), held_out = batch(0), batch(1)
    exact, averages = fitted((states, tokens, mask))
    shares = experiment.HeldOutVariance(exact).update(*held_out).result()
    rows = held_out[0][held_out[2]]
    total = float((rows - rows.mean(0)).square().sum())
    predicted = {
        "temporal": lambda t, w: states[mask[:, t], t].mean(0),
        "input": lambda t, w: states[mask & (tokens == w)].mean(0),
        "additive": lambda t, w: exact.temporal[t] + exact.input[w],
        "averages": lambda t, w: averages.temporal[t] + averages.input[w],
    }
    for name, of in predicted.items():
        guessed = [of(t, int(held_out[1][sample, t])) for sample, t in held_out[2].nonzero().tolist()]
        assert shares[name] == pytest.approx(1 - float((rows - torch.stack(guessed)).square().sum()) / total)
    assert shares["input_unique"] == pytest.approx(shares["additive"] - shares["temporal"])
    assert shares["temporal_unique"] == pytest.approx(shares["additive"] - shares["input"])


def test_distance_of_the_two_fits_agrees_with_a_loop():
    states, tokens, mask = batch(2)
    exact, averages = fitted((states, tokens, mask))
    rows = states[mask]
    gaps = [
        exact.temporal[t] + exact.input[w] - averages.temporal[t] - averages.input[w]
        for t, w in zip(mask.nonzero()[:, 1].tolist(), tokens[mask].tolist(), strict=True)
    ]
    expected = torch.stack(gaps).square().sum() / (rows - rows.mean(0)).square().sum()
    assert experiment.difference(exact)["fit"] == pytest.approx(float(expected.sqrt()))
    assert experiment.difference(exact)["temporal"] > 0


def test_axes_of_components_in_a_known_plane():
    """mu along the first axis, chi along the second: one space of each part is that axis."""
    tokens = torch.tensor([[0, 1], [1, 0]])
    states = torch.zeros(2, 2, 3)
    states[:, :, 0] = torch.tensor([-2.0, 2.0])
    states[:, :, 1] = tokens * 2.0 - 1
    components = Components(3, n_tokens=2, n_positions=2, method="least_squares").update(
        states + 7, tokens, tokens >= 0
    )
    drawn = experiment.Drawn.of(components)
    assert torch.allclose(drawn.temporal[:, 0], torch.tensor([-2.0, 2.0]).double())
    temporal = experiment.space_of([drawn], ("temporal",))
    assert torch.allclose(temporal.axes[0].abs(), torch.tensor([1.0, 0, 0]).double())
    assert temporal.explained.tolist() == pytest.approx([1, 0, 0], abs=1e-12)
    together = experiment.space_of([drawn], ("temporal", "input"))
    assert together.explained.tolist() == pytest.approx([0.8, 0.2, 0], abs=1e-12)
    assert together.project(drawn.input)[:, 1].abs().tolist() == pytest.approx([1, 1])


def centred(components):
    return experiment.centred_by_piece(components.temporal, components.input, components.pair_counts)


def scale_of(corpus):
    states, _, mask, _ = corpus
    return np.abs(states[mask]).max()


@settings(max_examples=40)
@given(corpora())
def test_centred_by_piece_is_the_same_fit(corpus):
    _, tokens, mask, _ = corpus
    tokens, positions = tokens[mask], np.nonzero(mask)[1]
    exact = fitted_on(corpus, "least_squares")
    before, after = (
        mu[positions] + chi[tokens] for mu, chi in ((exact.temporal, exact.input), centred(exact))
    )
    assert float((after - before).abs().max()) <= 1e-9 * scale_of(corpus)


@settings(max_examples=40)
@given(corpora())
def test_centred_by_piece_words_of_a_piece_have_mean_zero(corpus):
    exact = fitted_on(corpus, "least_squares")
    _, chi = centred(exact)
    for piece in connected_pieces(exact.pair_counts):
        of_token = exact.pair_counts.double() @ piece
        assert float((of_token @ chi).abs().max()) <= 1e-9 * scale_of(corpus) * float(of_token.sum())


@settings(max_examples=40)
@given(corpora())
def test_centring_by_piece_leaves_averages_alone(corpus):
    means = fitted_on(corpus, "means")
    for part, expected in zip(centred(means), (means.temporal, means.input), strict=True):
        assert torch.allclose(part, expected, rtol=0, atol=1e-9 * scale_of(corpus))
