"""The translation model of the second paper: its size to the last parameter, its equations, and padding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import BOS, EOS, PAD

TINY = TranslatorConfig(words=12, width=5)
PAIRS = [([4, 5, 6], [7, 8]), ([9, 4, 11, 5, 6], [10, 4, 5, 9]), ([8], [5])]


def model_of(config=TINY, seed=0):
    return BilinearTranslator(config, torch.Generator().manual_seed(seed)).eval()


def batch_of(pairs=PAIRS):
    return collate(Corpus.from_ids(*zip(*pairs, strict=True)), np.arange(len(pairs)))


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_papers_number_of_parameters(attention):
    model = model_of(TranslatorConfig(attention=attention))
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == 8_180_544
    assert total - model.embedding.weight.numel() == 6_132_544


def test_parameters_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = model_of(), model_of(), model_of(seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(name))
        assert not torch.equal(value, other.get_parameter(name))
    # Equal in all that both have: runs with learned and uniform attention start in the same place.
    uniform = model_of(replace(TINY, attention="uniform"))
    assert all(torch.equal(value, uniform.get_parameter(name)) for name, value in first.named_parameters())


def cell(x, state, layer, suffix):
    """One step of an LSTM from its definition."""
    h, memory = state
    w_x, w_h, b_x, b_h = (
        getattr(layer, f"{name}_{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    i, f, g, o = (w_x @ x + b_x + w_h @ h + b_h).chunk(4)
    memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
    return o.sigmoid() * memory.tanh(), memory


def by_definition(model, source, target):
    """Attention and logits of one sentence, step by step, with neither padding nor batch."""
    width = model.config.width
    inputs = list(model.embedding.weight[[*source, EOS]])
    starts = []
    for depth in range(2):
        zero = (torch.zeros(width), torch.zeros(width))
        forward, state = [], zero
        for x in inputs:
            state = cell(x, state, model.encoder, f"l{depth}")
            forward.append(state[0])
        backward, back = [], zero
        for x in reversed(inputs):
            back = cell(x, back, model.encoder, f"l{depth}_reverse")
            backward.insert(0, back[0])
        starts.append(tuple((a + b) / 2 for a, b in zip(state, back, strict=True)))
        inputs = [torch.cat(both) for both in zip(forward, backward, strict=True)]
    states, rows, logits = torch.stack(inputs), [], []
    for token in [BOS, *target]:
        x = model.embedding.weight[token]
        for depth in range(2):
            starts[depth] = cell(x, starts[depth], model.decoder, f"l{depth}")
            x = starts[depth][0]
        scores = states @ (model.query.weight @ x + model.query.bias)
        row = (
            scores.softmax(0)
            if model.config.attention == "learned"
            else torch.full_like(scores, 1 / len(scores))
        )
        readout = model.readout
        context = readout.context(row @ states)
        hidden = (
            context + x if model.config.form == "summed" else readout.hidden(torch.cat([context, x])).relu()
        )
        rows.append(row)
        logits.append(readout.output(hidden))
    return torch.stack(rows), torch.stack(logits)


@pytest.mark.parametrize("attention", ["learned", "uniform"])
@pytest.mark.parametrize("form", ["joined", "summed"])
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(attention, form):
    model = model_of(replace(TINY, attention=attention, form=form))
    trace = model(batch_of())
    for i, (source, target) in enumerate(PAIRS):
        rows, logits = by_definition(model, source, target)
        here = slice(0, len(target) + 1), slice(0, len(source) + 1)
        torch.testing.assert_close(trace.attention[i][here], rows)
        torch.testing.assert_close(trace.logits[i][here[0]], logits)
        assert (trace.attention[i, here[0], len(source) + 1 :] == 0).all()
        assert (trace.scores[i][here] == 0).all() == (attention == "uniform")
        torch.testing.assert_close(trace.context[i], trace.attention[i] @ trace.encoder_states[i])


def test_loss_is_the_mean_over_valid_words_of_the_whole_pass():
    model, batch = model_of(), batch_of()
    trace = model(batch)
    chosen = trace.logits.log_softmax(-1).gather(-1, batch.target_output[:, :, None])[:, :, 0]
    plain = -chosen[batch.target_mask].sum() / batch.target_mask.sum()
    torch.testing.assert_close(model.loss(batch), plain)
    gradients = [torch.autograd.grad(value, list(model.parameters())) for value in (model.loss(batch), plain)]
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected)


def test_frozen_attention_has_no_gradient_and_learned_has():
    for attention, learns in (("learned", True), ("uniform", False)):
        model = model_of(replace(TINY, attention=attention))
        model.loss(batch_of()).backward()
        assert (model.query.weight.grad is not None) == learns
        assert model.encoder.weight_ih_l0.grad.abs().sum() > 0


def test_dropout_between_layers_while_training_alone():
    model, batch = model_of().train(), batch_of()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first, second = model.loss(batch).item(), model.loss(batch).item()
    assert first != second
    model.eval()
    assert model.loss(batch).item() == model.loss(batch).item()
    assert model.encoder.dropout == model.decoder.dropout == 0.5


def test_one_layer_is_a_network_too():
    assert torch.isfinite(model_of(replace(TINY, layers=1)).loss(batch_of()))


@torch.no_grad()
def test_translations_are_the_likeliest_words_given_those_before():
    model = model_of(seed=5)
    batch = batch_of()
    written = translate(model, batch.source, batch.source_mask, 6)
    assert written.shape[1] <= 6
    assert not (written == BOS).any()
    for i, row in enumerate(written.tolist()):
        words = row[: row.index(EOS)] if EOS in row else [word for word in row if word != PAD]
        _, logits = by_definition(model, PAIRS[i][0], words)
        logits[:, [PAD, BOS]] = -torch.inf
        ended = EOS in row
        assert logits.argmax(-1)[: len(words) + ended].tolist() == [*words, *([EOS] if ended else [])]
        assert set(row[len(words) + ended :]) <= {PAD}


def test_settings_that_cannot_be():
    with pytest.raises(UnknownName, match="did you mean 'uniform'"):
        TranslatorConfig(attention="unifrom")
    with pytest.raises(UnknownName, match="form"):
        TranslatorConfig(form="added")
    with pytest.raises(BadInput, match="width is 0"):
        TranslatorConfig(width=0)
    with pytest.raises(BadInput, match="dropout is 1"):
        TranslatorConfig(dropout=1.0)
    with pytest.raises(BadInput, match="max_steps is 0"):
        translate(model_of(), batch_of().source, batch_of().source_mask, 0)
