"""Readings of saliency: derivatives checked by differences, and how the three belong together."""

import pytest
import torch

from attnlib.probes.saliency import translation_saliency
from notebooks.shared.saliency_readings import READINGS, saliency_readings
from tests.attnlib.probes.tiny_translator import batch_of, logits_of, model_of


def log_probabilities(model, batch, gate, position):
    """Of the right words, with the embedding of one source position scaled."""
    logits = logits_of(model, batch, gate, position)
    return logits.log_softmax(-1).gather(-1, batch.target_output[:, :, None])[:, :, 0]


def test_the_logits_reading_is_that_of_the_tables():
    model, batch = model_of(), batch_of()
    torch.testing.assert_close(saliency_readings(model, batch)["logit"], translation_saliency(model, batch))


def test_the_log_probabilitys_reading_is_its_difference_quotient():
    model, batch, small = model_of(), batch_of(), 1e-5
    found = saliency_readings(model, batch)["log_probability"]
    for position in range(batch.source.shape[1]):
        up, down = (log_probabilities(model, batch, gate, position) for gate in (1 + small, 1 - small))
        valid = batch.target_mask & batch.source_mask[:, position, None]
        expected = ((up - down) / (2 * small))[valid]
        torch.testing.assert_close(found[:, :, position][valid], expected, rtol=1e-6, atol=1e-8)
    assert found.abs().max() > 1e-3


def test_no_word_moves_by_more_than_the_gradients_length_times_its_own():
    model, batch = model_of(), batch_of()
    found = saliency_readings(model, batch)
    lengths = model.embedding(batch.source).norm(dim=-1)[:, None]
    assert (found["log_probability"].abs() <= found["gradient_norm"] * lengths + 1e-12).all()
    assert (found["gradient_norm"] >= 0).all()


@pytest.mark.parametrize("reading", READINGS)
def test_padding_has_none_and_no_parameter_is_given_a_gradient(reading):
    model, batch = model_of(), batch_of()
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    assert (saliency_readings(model, batch)[reading][~valid] == 0).all()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_moves_all_logits_alike_is_seen_by_the_logit_alone():
    """Every row of the readout's last layer the same: whatever the source, all words stay equally likely."""
    model, batch = model_of(), batch_of()
    with torch.no_grad():
        model.readout.output.weight[:] = model.readout.output.weight[0]
    found = saliency_readings(model, batch)
    assert found["logit"].abs().max() > 1e-3
    assert found["log_probability"].abs().max() < 1e-12
