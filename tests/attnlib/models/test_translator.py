"""The second paper's translation model and its proxy: sizes to the last parameter, equations, and padding."""

import math

import pytest
import torch

from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslationProxy, TranslatorConfig
from attnlib.training.vocabulary import BOS, EOS, PAD
from tests.attnlib.models.model_builders import (
    PAIRS,
    batch_of,
    cells_of,
    generator,
    read_through,
    translator,
)

BATCH = batch_of()


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_papers_number_of_parameters(attention):
    model = BilinearTranslator(TranslatorConfig(attention=attention), generator())
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == 8_180_544
    assert total - model.embedding.weight.numel() == 6_132_544


def by_definition(model, source, target):
    """Attention and logits of one sentence, step by step, with neither padding nor batch."""
    config = model.config
    inputs, ends = read_through(model.encoder, list(model.embedding.weight[[*source, EOS], None]))
    carried = [tuple(sum(ways) / 2 for ways in zip(*end, strict=True)) for end in ends]
    states, rows, logits = torch.cat(inputs), [], []
    for token in [BOS, *target]:
        x = model.embedding.weight[token][None]
        for depth, cell in enumerate(cells_of(model.decoder)):
            carried[depth] = cell(x, carried[depth])
            x = carried[depth][0]
        x = x[0]
        scores = states @ (model.query.weight @ x + model.query.bias)
        learned = config.attention == "learned"
        rows.append(scores.softmax(0) if learned else torch.full_like(scores, 1 / len(scores)))
        context = model.readout.context(rows[-1] @ states)
        joined = config.form == "joined"
        hidden = model.readout.hidden(torch.cat([context, x])).relu() if joined else context + x
        logits.append(model.readout.output(hidden))
    return torch.stack(rows), torch.stack(logits)


@pytest.mark.parametrize("attention", ["learned", "uniform"])
@pytest.mark.parametrize(("form", "layers"), [("joined", 2), ("summed", 2), ("joined", 1)])
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(attention, form, layers):
    model = translator(attention=attention, form=form, layers=layers)
    trace = model(BATCH)
    for i, (source, target) in enumerate(PAIRS):
        rows, logits = by_definition(model, source, target)
        here = slice(0, len(target) + 1), slice(0, len(source) + 1)
        torch.testing.assert_close(trace.attention[i][here], rows)
        torch.testing.assert_close(trace.logits[i][here[0]], logits)
        assert (trace.attention[i, here[0], len(source) + 1 :] == 0).all()
        assert (trace.scores[i][here] == 0).all() == (attention == "uniform")
        torch.testing.assert_close(trace.context[i], trace.attention[i] @ trace.encoder_states[i])


def test_loss_is_the_mean_over_valid_words_of_the_whole_pass():
    model = translator()
    trace = model(BATCH)
    chosen = trace.logits.log_softmax(-1).gather(-1, BATCH.target_output[:, :, None])[:, :, 0]
    plain = -chosen[BATCH.target_mask].sum() / BATCH.target_mask.sum()
    torch.testing.assert_close(model.loss(BATCH), plain)
    gradients = [torch.autograd.grad(value, list(model.parameters())) for value in (model.loss(BATCH), plain)]
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected)


def test_frozen_attention_has_no_gradient_and_learned_has():
    for attention, learns in (("learned", True), ("uniform", False)):
        model = translator(attention=attention)
        model.loss(BATCH).backward()
        assert (model.query.weight.grad is not None) == learns
        assert model.encoder.weight_ih_l0.grad.abs().sum() > 0


def test_dropout_between_layers_while_training_alone():
    model = translator().train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert model.loss(BATCH).item() != model.loss(BATCH).item()
    model.eval()
    assert model.loss(BATCH).item() == model.loss(BATCH).item()
    assert model.encoder.dropout == model.decoder.dropout == 0.5


@torch.no_grad()
def test_translations_are_the_likeliest_words_given_those_before():
    model = translator(seed=5)
    written = translate(model, BATCH.source, BATCH.source_mask, 6)
    assert written.shape[1] <= 6
    for i, row in enumerate(written.tolist()):
        ended = EOS in row
        words = row[: row.index(EOS)] if ended else row
        _, logits = by_definition(model, PAIRS[i][0], words)
        logits[:, [PAD, BOS]] = -torch.inf
        assert logits.argmax(-1)[: len(words) + ended].tolist() == [*words, *([EOS] if ended else [])]
        assert set(row[len(words) + ended :]) <= {PAD}


# The proxy.


def proxy_of():
    return TranslationProxy(12, 5, generator())


@torch.no_grad()
def test_equation_5_and_the_loss():
    proxy, losses = proxy_of(), []
    assert sum(parameter.numel() for parameter in proxy.parameters()) == 2 * 12 * 5
    for i, (source, target) in enumerate(PAIRS):
        bag = torch.stack([proxy.output.weight @ proxy.embedding.weight[word] for word in (*source, EOS)])
        expected = bag.mean(0)
        torch.testing.assert_close(proxy(BATCH.source, BATCH.source_mask)[i], expected)
        losses += [-expected.log_softmax(0)[word] for word in (*target, EOS)]
    torch.testing.assert_close(proxy.loss(BATCH), torch.stack(losses).mean())


@pytest.mark.parametrize("at_once", [1, 3, 512])
@torch.no_grad()
def test_equation_6(at_once):
    proxy = proxy_of()
    found = proxy.log_probe(BATCH, at_once=at_once)
    assert (found == -torch.inf).sum() == found.numel() - sum((len(a) + 1) * (len(b) + 1) for a, b in PAIRS)
    for i, (source, target) in enumerate(PAIRS):
        for s, right in enumerate((*target, EOS)):
            for t, word in enumerate((*source, EOS)):
                alone = (proxy.output.weight @ proxy.embedding.weight[word]).softmax(0)[right]
                torch.testing.assert_close(found[i, s, t].exp(), alone)


def test_it_learns_which_word_translates_which():
    """Of three words with one translation each, in sentences of two, β^px finds every one."""
    pairs = [([4 + a, 4 + b], [7 + b, 7 + a]) for a in range(3) for b in range(3) if a != b]
    proxy, batch = TranslationProxy(10, 8, generator()), batch_of(pairs=pairs)
    optimiser = torch.optim.Adam(proxy.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        proxy.loss(batch).backward()
        optimiser.step()
    probe = proxy.log_probe(batch)
    assert (probe[:, 0, :2].argmax(1) == 1).all(), "the first target word translates the second source word"
    assert (probe[:, 1, :2].argmax(1) == 0).all()
    # No position can say which of the three target words (the end mark counts) comes at a place.
    assert proxy.loss(batch).item() == pytest.approx(math.log(3), abs=0.02)
