"""Saliency in translation: a derivative, checked by differences, and none at padding."""

import pytest
import torch

from attnlib.probes.saliency import translation_saliency
from tests.attnlib.probes.tiny_translator import PAIRS, batch_of, logits_of, model_of


def right_scores(model, batch, gate, position):
    """Logits of the right words with one source position's embedding scaled."""
    return logits_of(model, batch, gate, position).gather(-1, batch.target_output[:, :, None])[:, :, 0]


@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_it_is_the_difference_quotient_of_the_right_words_logit(attention, form):
    model, batch = model_of(attention=attention, form=form), batch_of()
    found = translation_saliency(model, batch)
    small = 1e-5
    for position in range(batch.source.shape[1]):
        up, down = (right_scores(model, batch, gate, position) for gate in (1 + small, 1 - small))
        expected = (up - down) / (2 * small)
        valid = batch.target_mask & batch.source_mask[:, position, None]
        torch.testing.assert_close(found[:, :, position][valid], expected[valid], rtol=1e-6, atol=1e-8)
        assert (found[:, :, position][~valid] == 0).all()
    assert found.abs().max() > 1e-3


def test_half_the_digits_give_the_same():
    """torch runs layers of single precision by other code."""
    exact = translation_saliency(model_of(), batch_of())
    torch.testing.assert_close(
        translation_saliency(model_of().float(), batch_of()), exact.float(), rtol=1e-3, atol=1e-6
    )


def test_samples_do_not_touch_one_another():
    model = model_of()
    together = translation_saliency(model, batch_of())
    for i, (source, target) in enumerate(PAIRS):
        alone = translation_saliency(model, batch_of(PAIRS[i : i + 1]))[0]
        torch.testing.assert_close(together[i, : len(target) + 1, : len(source) + 1], alone)


def test_no_parameter_is_given_a_gradient():
    model = model_of()
    with torch.no_grad():  # as within a look
        found = translation_saliency(model, batch_of())
    assert not found.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_logit_of_one_word_is_that_of_all():
    readout, draw = model_of().readout, torch.Generator().manual_seed(1)
    summed = torch.randn(4, 5, generator=draw, dtype=torch.float64)
    words = torch.tensor([0, 3, 11, 3])
    torch.testing.assert_close(readout.logit_of(summed, words), readout.logits(summed)[range(4), words])
