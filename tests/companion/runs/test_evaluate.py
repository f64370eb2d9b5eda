"""Evaluating a model leaves the modes of its caller alone."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Corpus
from attnlib.models.encoder_decoder import EncoderDecoder
from companion.runs.evaluate import evaluate, traces

CORPUS = Corpus.from_ids([[4, 5]] * 3, [[6]] * 3)


@pytest.fixture
def model():
    return EncoderDecoder(ModelConfig("AO", 9, 9, width=4), torch.Generator().manual_seed(0))


def test_gradients_are_recorded_between_two_traces(model):
    batches = traces(model, CORPUS, batch_size=1)
    next(batches)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_generators_closed_in_the_order_of_their_creation_leave_no_mode_on(model):
    first = traces(model, CORPUS, batch_size=1)
    second = traces(model, CORPUS, batch_size=1)
    next(first)
    next(second)
    first.close()
    second.close()
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_a_trace_can_be_learned_from(model):
    layer = torch.nn.Linear(4, 1)
    trace = next(traces(model, CORPUS))
    layer(trace.encoder_states).sum().backward()
    assert layer.weight.grad is not None


def test_traces_have_no_gradient(model):
    trace = next(traces(model, CORPUS))
    assert not trace.logits.requires_grad


def test_an_empty_corpus_is_refused(model):
    with pytest.raises(BadInput, match="no samples"):
        evaluate(model, Corpus.from_ids([], []))


def test_quality_by_hand():
    """Of a sample's two words the first is right, of another's one; of three words one has a logit of 2."""
    logits = torch.tensor([2.0, 0, 0]).expand(2, 2, 3)
    outputs, mask = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[True, True], [True, False]])
    trace = SimpleNamespace(logits=logits, target_outputs=outputs, target_mask=mask)
    model = Mock(return_value=trace)
    model.readout.weight.device = "cpu"
    right, wrong = logits[0, 0].log_softmax(0)[:2].tolist()
    expected = {"loss": -(2 * right + wrong) / 3, "token_accuracy": 2 / 3, "exact_match": 1 / 2}
    assert evaluate(model, Corpus.from_ids([[4]], [[4]])) == pytest.approx(expected)
