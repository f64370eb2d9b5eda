"""Optimal attention: the optimum meets its conditions, no rival is better, and hard rows harm no other."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize, special

from attnlib.errors import BadInput
from notebooks.learn.optimal_attention.optimal_attention import _factor, kkt_residual, optimal_attention
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import refused

SAMPLES, TARGET, SOURCE, WORDS = 4, 5, 9, 30


def random_problem(seed: int, scale: float, words: int = WORDS):
    draw = generator(seed)
    encoder = scale * torch.randn(SAMPLES, SOURCE, words, generator=draw, dtype=torch.float64)
    decoder = scale * torch.randn(SAMPLES, TARGET, words, generator=draw, dtype=torch.float64)
    right = torch.randint(words, (SAMPLES, TARGET), generator=draw)
    source_mask = torch.arange(SOURCE) < torch.tensor([SOURCE, SOURCE // 2 + 1, 2, 1])[:, None]
    target_mask = torch.arange(TARGET) < torch.tensor([TARGET, 3, 2, 4])[:, None]
    return encoder, decoder, right, source_mask, target_mask


def rows(problem, solution):
    """Each real row alone: log p, attention, γ over valid positions, γ_s, the right word."""
    encoder, decoder, right, source_mask, target_mask = problem
    for at in target_mask.nonzero().tolist():
        valid = source_mask[at[0]]
        tensors = solution.attention[*at][valid], encoder[at[0]][valid], decoder[*at]
        yield solution.log_likelihood[*at].item(), *(tensor.numpy() for tensor in tensors), int(right[*at])


def loss_and_slopes(attention, encoder, decoder, word):
    log_p = special.log_softmax(attention @ encoder + decoder)
    return -log_p[word], encoder @ np.exp(log_p) - encoder[:, word]


def solved_alone(encoder):
    """One row, no say of the decoder, the first word right."""
    masks = torch.ones(encoder.shape[:2], dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
    return optimal_attention(encoder, torch.zeros(1, 1, 3), torch.zeros(1, 1, dtype=torch.long), *masks)


def test_the_papers_counterexample():
    """A.1: the position with the largest β gets no attention; the optimum is half on each of the others."""
    encoder = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]], dtype=torch.float64)
    solution = solved_alone(encoder)
    assert solution.attention[0, 0].tolist() == pytest.approx([0, 0.5, 0.5], abs=1e-8)
    # Halves of equation 30 leave logits (0, -2.5, -2.5).
    assert solution.log_likelihood.exp().item() == pytest.approx(1 / (1 + 2 * math.exp(-2.5)))
    probe = encoder[0].softmax(-1)[:, 0]
    assert probe[0].item() == pytest.approx(1 / 3)  # equation 31
    assert probe[1:].tolist() == pytest.approx([1 / (1 + math.exp(5) + math.exp(-10))] * 2)
    assert probe[1] == pytest.approx(math.exp(-5), rel=0.01)
    assert probe.argmax() == 0 == solution.attention[0, 0].argmin()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_attention_meets_the_kkt_conditions(seed, scale):
    """Of the paper's loss: one slope wherever there is attention, no smaller slope elsewhere."""
    problem = random_problem(seed, scale)
    solution = optimal_attention(*problem)
    assert solution.residual.max() < 1e-6
    assert solution.iterations < 60
    for log_likelihood, attention, *row in rows(problem, solution):
        loss, slopes = loss_and_slopes(attention, *row)
        assert log_likelihood == pytest.approx(-loss, abs=3e-9)  # torch's softplus is linear from 20 on
        assert attention.min() >= 0
        assert attention.sum() == pytest.approx(1, abs=1e-12)
        level = slopes @ attention
        assert slopes.min() >= level - 1e-6  # dual feasibility
        assert np.abs(attention * (slopes - level)).max() <= 1e-6  # complementary slackness
        assert np.minimum(attention, np.abs(slopes - level)).max() <= 1e-6


def test_scipy_finds_the_same_loss():
    problem = random_problem(3, 2.0)
    sums_to_one = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}
    given = {"method": "SLSQP", "constraints": sums_to_one, "options": {"ftol": 1e-13, "maxiter": 500}}
    for optimum, attention, *row in rows(problem, optimal_attention(*problem)):
        uniform = np.full(len(attention), 1 / len(attention))
        given["bounds"] = [(0, 1)] * len(attention)
        theirs = optimize.minimize(loss_and_slopes, uniform, args=tuple(row), jac=True, **given)
        assert -optimum == pytest.approx(theirs.fun, abs=1e-6)
        assert -optimum <= loss_and_slopes(theirs.x, *row)[0] + 1e-8


def test_neither_corners_nor_uniform_attention_are_better():
    problem = random_problem(3, 2.0)
    for optimum, attention, *row in rows(problem, optimal_attention(*problem)):
        uniform = np.full(len(attention), 1 / len(attention))
        for rival in (uniform, *np.eye(len(attention))):
            assert -optimum <= loss_and_slopes(rival, *row)[0] + 1e-8


def test_with_two_words_the_optimum_is_the_position_of_the_largest_probe():
    """Then the logits' difference is linear in the attention: section 3.3's argument, exactly."""
    encoder, decoder, right, source_mask, target_mask = random_problem(5, 3.0, words=2)
    solution = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    logits = encoder[:, None] + decoder[:, :, None]
    probe = logits.softmax(-1).gather(-1, right[:, :, None, None].expand(-1, -1, SOURCE, 1))[..., 0]
    probe = probe.masked_fill(~source_mask[:, None, :], -1)
    assert torch.equal(solution.attention.argmax(-1)[target_mask], probe.argmax(-1)[target_mask])
    assert (solution.attention.amax(-1)[target_mask] > 1 - 1e-6).all()


def test_equal_positions_share_equally():
    encoder, decoder, right, source_mask, target_mask = random_problem(2, 3.0)
    source_mask = torch.ones_like(source_mask)
    encoder[:, 5:] = encoder[:, :4]
    solution = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    assert torch.allclose(solution.attention[..., 5:], solution.attention[..., :4], atol=1e-6)
    assert solution.residual.max() < 1e-6


def test_it_takes_no_more_steps_than_it_may():
    """Without one, attention is uniform, which the residual says is no solution."""
    for steps in (0, 1):
        solution = optimal_attention(*random_problem(2, 3.0), iterations=steps)
        assert solution.iterations == steps
        assert solution.residual.max() > 1e-3


def test_an_almost_certain_word_is_still_solved():
    """The loss is flat to 1e-12 here, its logarithm is not: the best position is told from the second."""
    encoder = torch.zeros(1, 2, 3, dtype=torch.float64)
    encoder[0, :, 0] = torch.tensor([30.0, 31.0])
    assert solved_alone(encoder).attention[0, 0].tolist() == pytest.approx([0, 1], abs=1e-6)


def test_padding_changes_nothing():
    encoder, decoder, right, source_mask, target_mask = random_problem(1, 2.0)
    solution = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    assert (solution.attention * ~(source_mask[:, None] & target_mask[:, :, None]) == 0).all()
    dirty = encoder.masked_fill(~source_mask[:, :, None], torch.nan)
    soiled = decoder.masked_fill(~target_mask[:, :, None], torch.inf)
    again = optimal_attention(dirty, soiled, right.masked_fill(~target_mask, -100), source_mask, target_mask)
    assert torch.equal(solution.attention, again.attention)
    length = SOURCE // 2 + 1
    sides = encoder[1:2, :length], decoder[1:2, :3], right[1:2, :3]
    alone = optimal_attention(*sides, source_mask[1:2, :length], target_mask[1:2, :3])
    assert torch.allclose(alone.attention[0], solution.attention[1, :3, :length], atol=1e-7)


def test_the_residual_by_hand():
    valid = torch.ones(1, 3, dtype=torch.bool)
    gradient = torch.tensor([[1.0, 1.0, 3.0]])
    assert kkt_residual(torch.tensor([[0.4, 0.6, 0.0]]), gradient, valid).item() == pytest.approx(0, abs=1e-6)
    # (0, 0, 1) - (1, 1, 3) = (-1, -1, -2), projected (1/2, 1/2, 0)
    assert kkt_residual(torch.tensor([[0.0, 0.0, 1.0]]), gradient, valid).item() == pytest.approx(1)


# Rows that float64 cannot solve.

SOURCES, TARGETS = 8, 5
SOURCE_MASK, TARGET_MASK = torch.ones(2, SOURCES).bool(), torch.ones(2, TARGETS).bool()


def problem(scale):
    """Two samples of which the second has logits of this scale; each source word stands twice."""
    draw = torch.Generator().manual_seed(0)
    encoder = torch.randn(2, SOURCES, WORDS, generator=draw, dtype=torch.float64)
    decoder = torch.randn(2, TARGETS, WORDS, generator=draw, dtype=torch.float64)
    encoder[:, SOURCES // 2 :] = encoder[:, : SOURCES // 2]
    words = torch.randint(WORDS, (2, TARGETS), generator=draw)
    scales = torch.tensor([1.0, scale])[:, None, None]
    return encoder * scales, decoder * scales, words


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e5, 1e6, 1e8])
def test_an_ill_conditioned_sample_leaves_the_others_as_they_are(scale):
    solution = optimal_attention(*problem(scale), SOURCE_MASK, TARGET_MASK)
    alone = [part[:1] for part in problem(1.0)]
    expected = optimal_attention(*alone, SOURCE_MASK[:1], TARGET_MASK[:1])
    torch.testing.assert_close(solution.attention[0], expected.attention[0], rtol=0, atol=1e-7)
    assert (solution.residual[0] <= 1e-8).all()


@pytest.mark.slow
def test_every_row_is_attention_whatever_the_logits():
    solution = optimal_attention(*problem(1e5), SOURCE_MASK, TARGET_MASK)
    torch.testing.assert_close(solution.attention.sum(-1), torch.ones(2, TARGETS, dtype=torch.float64))
    assert (solution.attention >= 0).all()
    assert solution.residual.isfinite().all()


def test_factors_of_definite_matrices_are_those_of_torch():
    half = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrices = half @ half.mT + torch.eye(4)
    assert torch.equal(_factor(matrices), torch.linalg.cholesky(matrices))


def test_an_indefinite_matrix_does_not_change_the_factors_of_others():
    definite = torch.eye(2, dtype=torch.float64) + 0.1
    indefinite = torch.tensor([[1.0, 1.5], [1.5, 1.0]], dtype=torch.float64)
    factors = _factor(torch.stack([definite, indefinite, definite]))
    assert torch.equal(factors[0], torch.linalg.cholesky(definite))
    assert torch.equal(factors[2], factors[0])
    assert factors[1].isfinite().all()


@pytest.mark.parametrize("axes", [1, 2, 4])
def test_logits_of_other_axes_are_refused(axes):
    encoder, decoder, words = problem(1.0)
    flat = encoder.reshape(encoder.shape[:1] + (1,) * (axes - 2) + (-1,)) if axes > 1 else encoder.flatten()
    with pytest.raises(BadInput, match="source, words"):
        optimal_attention(flat, decoder, words, SOURCE_MASK, TARGET_MASK)


BOTH = torch.ones(1, 2, dtype=torch.bool)


def optimum(encoder=1.0, words=3, positions=2, mask=BOTH):
    logits = torch.full((1, 2, words), encoder), torch.zeros(1, 2, words)
    optimal_attention(*logits, torch.zeros(1, positions, dtype=torch.long), mask, BOTH)


test_what_cannot_be_is_refused = refused(
    (lambda: optimum(positions=1), "words has shape"),
    (lambda: optimum(words=1), "only one word"),
    (lambda: optimum(mask=~BOTH), "no valid source position"),
    (lambda: optimum(torch.inf), "encoder_logits are not all finite"),
)
