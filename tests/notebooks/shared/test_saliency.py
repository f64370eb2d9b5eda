"""Saliency: derivatives checked by differences, none at padding, and nothing else touched."""

import pytest
import torch

from notebooks.shared.agreement import SALIENCY_VARIANTS, saliency_variants
from notebooks.shared.classification import saliency
from notebooks.shared.translation import translation_saliency
from tests.attnlib.models.model_builders import batch_of, classifier, translator

TOKENS = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
LABELS = torch.tensor([0, 1])
PAIRS = [([4, 5, 6], [7, 8]), ([9, 4, 11, 5, 6], [10, 4, 5, 9]), ([8], [5])]
BATCH = batch_of(pairs=PAIRS)
STEP = 1e-5


@torch.no_grad()
def logits_of(model, batch, gate, position):
    """Logits of all words with one source position's embedding scaled, by the whole network."""
    embedded = model.embedding(batch.source).clone()
    embedded[:, position] *= gate
    states, start = model.encode(embedded, batch.source_mask)
    decoded, _ = model.decoder(model.embedding(batch.target_input), start)
    _, attention = model.attend(states, batch.source_mask, decoded)
    readout = model.readout
    return readout.logits(readout.from_context(attention @ states) + readout.from_decoder(decoded))


def assert_slopes(found, model, batch, of_logits=lambda logits: logits):
    """Each source position's derivative is the difference quotient of the right words' score."""
    right = batch.target_output[:, :, None]
    for position in range(batch.source.shape[1]):
        up, down = (
            of_logits(logits_of(model, batch, 1 + step, position)).gather(-1, right)[:, :, 0]
            for step in (STEP, -STEP)
        )
        valid = batch.target_mask & batch.source_mask[:, position, None]
        expected = ((up - down) / (2 * STEP))[valid]
        torch.testing.assert_close(found[:, :, position][valid], expected, rtol=1e-6, atol=1e-8)
        assert (found[:, :, position][~valid] == 0).all()
    assert found.abs().max() > 1e-3


@pytest.mark.parametrize("attention", ["learned", "uniform", "alone"])
@torch.no_grad()
def test_saliency_is_the_slope_along_each_gate(attention):
    model = classifier(attention)
    found, _ = saliency(model, TOKENS, MASK, LABELS)
    for row, column in MASK.nonzero().tolist():
        gates = torch.ones(2, *MASK.shape, dtype=torch.float64)
        gates[:, row, column] += torch.tensor([STEP, -STEP])
        up, down = (model(TOKENS, MASK, gates=own).logit[row] for own in gates)
        expected = float(up - down) / (2 * STEP) * (2 * int(LABELS[row]) - 1)
        assert float(found[row, column]) == pytest.approx(expected, abs=1e-6)
    assert torch.all(found[~MASK] == 0)


def test_the_trace_is_the_passes_own_and_the_backward_pass_is_not_left_to_cudnn(monkeypatch):
    """cuDNN refuses to go backward through a recurrent layer in evaluation mode."""
    asked, grad = [], torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *given: asked.append(torch.backends.cudnn.enabled) or grad(*given)
    )
    model = classifier().eval()
    with torch.no_grad():
        found, trace = saliency(model, TOKENS, MASK, LABELS)
    assert asked == [False]
    torch.testing.assert_close(trace.logit, model(TOKENS, MASK).logit)
    assert not found.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_in_translation_it_is_the_slope_of_the_right_words_logit(attention, form):
    model = translator(attention=attention, form=form)
    assert_slopes(translation_saliency(model, BATCH), model, BATCH)


def test_samples_do_not_touch_one_another_and_half_the_digits_give_the_same():
    model = translator()
    with torch.no_grad():  # as within a snapshot
        together = translation_saliency(model, BATCH)
    for i, (source, target) in enumerate(PAIRS):
        alone = translation_saliency(model, batch_of(i, pairs=PAIRS))[0]
        torch.testing.assert_close(together[i, : len(target) + 1, : len(source) + 1], alone)
    assert not together.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    single = translation_saliency(translator().float(), BATCH)  # torch has other code for it
    torch.testing.assert_close(single, together.float(), rtol=1e-3, atol=1e-6)


def test_the_variants_are_slopes_of_the_logit_and_of_the_log_probability():
    model, batch = translator(), BATCH
    found = saliency_variants(model, batch)
    assert tuple(found) == SALIENCY_VARIANTS
    torch.testing.assert_close(found["logit"], translation_saliency(model, batch))
    assert_slopes(found["log_probability"], model, batch, lambda logits: logits.log_softmax(-1))
    # no word moves by more than the gradient's length times its own
    lengths = model.embedding(batch.source).norm(dim=-1)[:, None]
    assert (found["log_probability"].abs() <= found["gradient_norm"] * lengths + 1e-12).all()
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    assert (found["gradient_norm"][valid] > 0).all()
    assert (found["gradient_norm"][~valid] == 0).all()
    assert all(parameter.grad is None for parameter in model.parameters())
