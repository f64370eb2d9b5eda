"""Saliency against finite differences, and against gradient times input; what it must not touch."""

import pytest
import torch

from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from attnlib.probes.saliency import saliency

TOKENS = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
LABELS = torch.tensor([0, 1])


def classifier(attention="learned"):
    config = ClassifierConfig(words=9, embedding_width=4, width=3, attention=attention)
    return AttentiveClassifier(config, torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("attention", ["learned", "uniform", "alone"])
def test_saliency_is_the_slope_along_each_gate(attention):
    model = classifier(attention)
    found, _ = saliency(model, TOKENS, MASK, LABELS)
    step = 1e-5
    with torch.no_grad():
        for row, column in MASK.nonzero().tolist():
            ends = []
            for sign in (1, -1):
                gates = torch.ones(MASK.shape, dtype=torch.float64)
                gates[row, column] += sign * step
                ends.append(float(model(TOKENS, MASK, gates=gates).logit[row]) * (2 * int(LABELS[row]) - 1))
            assert float(found[row, column]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)
    assert torch.all(found[~MASK] == 0)


def test_saliency_is_gradient_times_input_one_text_at_a_time():
    model = classifier()
    found, _ = saliency(model, TOKENS, MASK, LABELS)
    for row, length in enumerate(MASK.sum(1).tolist()):
        model.zero_grad()
        tokens = TOKENS[row : row + 1, :length]
        embedded = {}
        handle = model.embedding.register_forward_hook(
            lambda module, inputs, output, kept=embedded: kept.update(e=output.requires_grad_())
        )
        logit = model(tokens, MASK[row : row + 1, :length]).logit[0]
        handle.remove()
        (gradient,) = torch.autograd.grad(logit, embedded["e"])
        expected = (gradient * embedded["e"]).sum(-1)[0] * (2 * int(LABELS[row]) - 1)
        torch.testing.assert_close(found[row, :length], expected.detach())


def test_parameters_are_given_no_gradient_and_inference_mode_does_not_matter():
    model = classifier()
    with torch.no_grad():
        found, trace = saliency(model, TOKENS, MASK, LABELS)
    assert all(parameter.grad is None for parameter in model.parameters())
    torch.testing.assert_close(trace.logit, model(TOKENS, MASK).logit)
    assert not found.requires_grad


def test_the_backward_pass_is_not_left_to_cudnn(monkeypatch):
    """It refuses to go backward through a recurrent layer in evaluation mode."""
    asked, grad = [], torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *given: asked.append(torch.backends.cudnn.enabled) or grad(*given)
    )
    saliency(classifier().eval(), TOKENS, MASK, LABELS)
    assert asked == [False]
