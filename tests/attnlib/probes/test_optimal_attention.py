"""Optimal attention of rows that float64 cannot solve."""

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.optimal_attention import _factor, optimal_attention

SOURCES, TARGETS, WORDS = 8, 5, 30
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


@pytest.mark.parametrize("scale", [1e5, 1e6, 1e8])
def test_an_ill_conditioned_sample_leaves_the_others_as_they_are(scale):
    found = optimal_attention(*problem(scale), SOURCE_MASK, TARGET_MASK)
    alone = [part[:1] for part in problem(1.0)]
    expected = optimal_attention(*alone, SOURCE_MASK[:1], TARGET_MASK[:1])
    torch.testing.assert_close(found.attention[0], expected.attention[0], rtol=0, atol=1e-7)
    assert (found.residual[0] <= 1e-8).all()


def test_every_row_is_attention_whatever_the_logits():
    found = optimal_attention(*problem(1e5), SOURCE_MASK, TARGET_MASK)
    torch.testing.assert_close(found.attention.sum(-1), torch.ones(2, TARGETS, dtype=torch.float64))
    assert (found.attention >= 0).all()
    assert found.residual.isfinite().all()


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
