"""The classifier: the published count of parameters, a slow path, equations by hand."""

import pytest
import torch

from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, classification_loss
from tests.attnlib.models.model_builders import classifier, generator, read_through

TOKENS = torch.tensor([[1, 5, 6, 7, 2, 0], [1, 4, 2, 0, 0, 0], [1, 9, 8, 11, 10, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [1] * 6]).bool()


def test_as_many_parameters_as_published():
    model = AttentiveClassifier(ClassifierConfig(words=4_691), generator())
    counts = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sum(counts.values()) == 2_682_182  # the SMS model of section A.8
    assert sum(counts.values()) - counts["embedding.weight"] == 1_274_882


def test_states_are_those_of_a_bidirectional_lstm_over_each_text():
    model = classifier()
    states = model(TOKENS, MASK).states
    for row, length in enumerate(MASK.sum(1).tolist()):
        inputs = list(model.embedding.weight[TOKENS[row, :length], None])
        forwards, _ = read_through(model.forwards, inputs)
        backwards, _ = read_through(model.backwards, inputs[::-1])
        expected = torch.cat([torch.cat(forwards), torch.cat(backwards[::-1])], dim=1)
        torch.testing.assert_close(states[row, :length], expected)


def test_texts_of_unlike_length_are_run_in_groups_with_the_same_outcome(monkeypatch):
    lengths = torch.tensor([6, 1, 40, 25, 3, 9, 10])
    mask = torch.arange(40) < lengths[:, None]
    tokens = torch.randint(12, mask.shape, generator=generator(0))
    found = []
    for large in (10**9, 0):
        monkeypatch.setattr("attnlib.models.classifiers._LARGE", large)
        model = classifier()
        logit = model(tokens, mask).logit
        classification_loss(logit, torch.tensor([0, 1, 1, 0, 0, 1, 1])).backward()
        found.append([logit, *(parameter.grad for parameter in model.parameters())])
    for together, apart in zip(*found, strict=True):
        torch.testing.assert_close(apart, together)


@pytest.mark.parametrize("kind", ["learned", "uniform"])
def test_equations_7_and_8_position_by_position(kind):
    model = classifier(kind)
    trace = model(TOKENS, MASK)
    hidden, score, readout = model.attention_hidden, model.attention_score, model.readout
    for row, length in enumerate(MASK.sum(1).tolist()):
        states = trace.states[row, :length]
        scores = [score(torch.clamp(hidden.weight @ state + hidden.bias, min=0))[0] for state in states]
        attention = torch.stack(scores).softmax(0)
        attention = attention if kind == "learned" else torch.full_like(attention, 1 / length)
        torch.testing.assert_close(trace.attention[row, :length], attention)
        context = (attention[:, None] * states).sum(0)
        torch.testing.assert_close(trace.logit[row], readout.weight[0] @ context + readout.bias[0])
    assert torch.all(trace.attention[~MASK] == 0)


def test_equation_12_the_log_odds_are_the_attended_mean_of_the_probe():
    trace = classifier()(TOKENS, MASK)
    for label in (0, 1):
        probe = torch.sigmoid((2 * label - 1) * trace.log_odds)
        right = torch.sigmoid((trace.attention * torch.logit(probe)).sum(1))
        torch.testing.assert_close(right, torch.sigmoid((2 * label - 1) * trace.logit))


def test_attention_can_be_given():
    model = classifier()
    given = torch.tensor([[0, 0, 1, 0, 0, 9], [1, 0, 0, 9, 9, 9], [0, 0, 0, 0, 0.5, 0.5]]).double()
    trace = model(TOKENS, MASK, attention=given)
    expected = [trace.log_odds[0, 2], trace.log_odds[1, 0], trace.log_odds[2, 4:].mean()]
    torch.testing.assert_close(trace.logit, torch.stack(expected))
    own = model(TOKENS, MASK)
    torch.testing.assert_close(model(TOKENS, MASK, attention=own.attention).logit, own.logit)


@pytest.mark.parametrize(
    ("attention", "moves"),
    [
        ("learned", {"embedding", "forwards", "backwards", "attention_hidden", "attention_score", "readout"}),
        ("uniform", {"embedding", "forwards", "backwards", "readout"}),
        ("alone", {"attention_hidden", "attention_score"}),
    ],
)
def test_what_is_trained(attention, moves):
    model = classifier(attention)
    classification_loss(model(TOKENS, MASK).logit, torch.tensor([0, 1, 1])).backward()
    assert {name.partition(".")[0] for name, p in model.named_parameters() if p.grad is not None} == moves


def test_the_loss_is_minus_the_log_of_the_right_label():
    logits = torch.tensor([0.0, 2.0, -1.0]).double()
    right = torch.sigmoid(torch.tensor([0.0, 2.0, 1.0]).double())
    torch.testing.assert_close(classification_loss(logits, torch.tensor([1, 1, 0])), -right.log().mean())
