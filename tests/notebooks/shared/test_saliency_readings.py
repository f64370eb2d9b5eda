"""Readings of saliency: a derivative checked by differences, and how the three belong together."""

import torch

from attnlib.probes.saliency import translation_saliency
from notebooks.shared.saliency_readings import READINGS, saliency_readings
from tests.attnlib.models.model_builders import translator
from tests.attnlib.probes.test_saliency import BATCH, assert_slopes


def test_the_readings_are_slopes_of_the_logit_and_of_the_log_probability():
    model, batch = translator(), BATCH
    found = saliency_readings(model, batch)
    assert tuple(found) == READINGS
    torch.testing.assert_close(found["logit"], translation_saliency(model, batch))
    assert_slopes(found["log_probability"], model, batch, lambda logits: logits.log_softmax(-1))
    # no word moves by more than the gradient's length times its own
    lengths = model.embedding(batch.source).norm(dim=-1)[:, None]
    assert (found["log_probability"].abs() <= found["gradient_norm"] * lengths + 1e-12).all()
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    assert (found["gradient_norm"][valid] > 0).all()
    assert (found["gradient_norm"][~valid] == 0).all()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_moves_all_logits_alike_is_seen_by_the_logit_alone():
    """Every row of the readout's last layer the same: whatever the source, all words stay equally likely."""
    model, batch = translator(), BATCH
    with torch.no_grad():
        model.readout.output.weight[:] = model.readout.output.weight[0]
    found = saliency_readings(model, batch)
    assert found["logit"].abs().max() > 1e-3
    assert found["log_probability"].abs().max() < 1e-12
