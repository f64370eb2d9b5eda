"""The copying network: against torch's recurrence and gradients, a written-out step, hand-worked cases."""

import pytest
import torch
from torch import nn

from attnlib.errors import BadInput, UnknownName
from notebooks.shared import copier
from notebooks.shared.copied_sentences import copy_batch, draw_sources
from notebooks.shared.copier import Copier, CopierConfig, copier_loss, lexical_probe, lstm_scan
from tests.attnlib.models.model_builders import generator


def new_copier(seed=0, **changes):
    return Copier(CopierConfig(**{"words": 5, "width": 6} | changes), generator(seed)).double()


def a_batch(length=5, samples=3):
    return copy_batch(draw_sources("permutation", length, samples, generator()), length)


def test_the_scan_has_the_gradients_of_finite_differences():
    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator(sum(shape))).requires_grad_()

    arguments = draw(3, 2, 8), draw(8, 2), draw(2, 2), draw(2, 2)
    assert torch.autograd.gradcheck(lstm_scan, arguments)


@pytest.fixture
def threads():
    """Sets torch's threads for a test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_fast_and_plain_recurrence_agree_in_values_and_gradients(threads):
    threads(1)
    batch, found = a_batch(), {}
    for implementation in ("fast", "plain"):
        model = new_copier()
        trace = model(batch, implementation)
        nn.functional.cross_entropy(trace.logits.flatten(0, 1), batch.target.flatten()).backward()
        found[implementation] = trace, {name: value.grad for name, value in model.named_parameters()}
    (fast, fast_gradients), (plain, plain_gradients) = found["fast"], found["plain"]
    torch.testing.assert_close(fast.logits, plain.logits)
    torch.testing.assert_close(fast.encoder_states, plain.encoder_states)
    torch.testing.assert_close(fast_gradients, plain_gradients)


@pytest.mark.parametrize(("number", "scans"), [(1, 2), (2, 0)])
def test_several_threads_leave_recurrence_to_torch(threads, monkeypatch, number, scans):
    threads(number)
    calls = []
    monkeypatch.setattr(copier, "lstm_scan", lambda *given: calls.append(1) or lstm_scan(*given))
    model, batch = new_copier(), a_batch()
    with torch.no_grad():
        fast, plain = model(batch), model(batch, "plain")
    assert len(calls) == scans  # encoder and decoder
    torch.testing.assert_close(fast.logits, plain.logits)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_one_word_of_several_heads_by_the_equations(cell):
    model, batch = new_copier(heads=2, cell=cell), a_batch()
    trace = model(batch)
    _, last = model.encoder(model.embedding(batch.source))
    states, _ = model.decoder(model.embedding(batch.target_read), last)  # starts where the encoder ends
    torch.testing.assert_close(trace.decoder_states, states)
    sample, step = 1, 3
    h, d = trace.encoder_states[sample], trace.decoder_states[sample, step]
    weights, biases = model.queries.weight.view(2, 6, 6), model.queries.bias.view(2, 6)
    context = torch.zeros(6, dtype=torch.float64)
    for head in range(2):
        scores = torch.stack([(weights[head] @ d + biases[head]) @ state for state in h])
        attention = torch.exp(scores) / torch.exp(scores).sum()
        torch.testing.assert_close(trace.attention[sample, head, step], attention)
        context = context + attention @ h
    joined = torch.cat([model.context_map(context), d])
    logits = model.readout(torch.tanh(model.hidden(joined)))
    torch.testing.assert_close(trace.context[sample, step], context)
    torch.testing.assert_close(trace.logits[sample, step], logits)


def test_uniform_attention_ignores_the_queries_and_gives_them_no_gradient():
    model, batch = new_copier(attention="uniform", heads=2), a_batch()
    loss = copier_loss(model, batch)
    loss.backward()
    assert torch.all(model(batch).attention == 1 / 5)
    assert model.queries.weight.grad is None
    assert model.encoder.weight_hh_l0.grad.abs().sum() > 0


def test_the_probe_is_what_the_network_says_when_all_attention_stands_at_one_place():
    model, batch = new_copier(heads=2), a_batch()
    trace = model(batch)
    probe = lexical_probe(model, trace, batch)
    assert probe.shape == (3, 5, 5)
    sample, step, place = 2, 1, 4
    context = 2 * trace.encoder_states[sample, place]  # both heads look there
    says = model.read_out(context, trace.decoder_states[sample, step]).softmax(dim=-1)
    torch.testing.assert_close(probe[sample, step, place], says[batch.target[sample, step]])


def test_what_is_drawn_has_torchs_own_scale():
    model = Copier(CopierConfig(words=30, width=64), generator(4))
    assert model.embedding.weight.std().item() == pytest.approx(1, abs=0.05)
    assert model.hidden.weight.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)


def test_parameters_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (new_copier(seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert not torch.equal(value, other.get_parameter(part))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"attention": "uniforn"}, UnknownName, "did you mean 'uniform'"),
        ({"heads": 0}, BadInput, "heads is 0"),
    ],
)
def test_what_cannot_be_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        CopierConfig(5, **wrong)
