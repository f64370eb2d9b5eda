"""The second paper's translation model: sizes to the last parameter, equations, and padding."""

import pytest
import torch

from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.vocabulary import BOS, EOS, PAD
from tests.attnlib.models.model_builders import PAIRS, batch_of, cells_of, generator, read_through, translator
from tests.attnlib.models.test_sequence_to_sequence import check_against_definition

BATCH = batch_of()


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_papers_number_of_parameters(attention):
    model = BilinearTranslator(TranslatorConfig(attention=attention), generator())
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == 8_180_544
    assert total - model.embedding.weight.numel() == 6_132_544


def by_definition(model, source, target):
    """One sentence, step by step, with neither padding nor batch."""
    config = model.config
    inputs, ends = read_through(model.encoder, list(model.embedding.weight[[*source, EOS], None]))
    carried = [tuple(sum(ways) / 2 for ways in zip(*end, strict=True)) for end in ends]
    states = torch.cat(inputs)
    found = {name: [] for name in ("scores", "attention", "context", "logits")}
    for token in [BOS, *target]:
        x = model.embedding.weight[token][None]
        for depth, cell in enumerate(cells_of(model.decoder)):
            x, _ = carried[depth] = cell(x, carried[depth])
        scores = states @ (model.query.weight @ x[0] + model.query.bias)
        scores = scores if config.attention == "learned" else torch.zeros_like(scores)
        mean = scores.softmax(0) @ states
        context = model.readout.context(mean)
        joined = model.readout.hidden(torch.cat([context, x[0]])).relu() if config.form == "joined" else None
        logits = model.readout.output(context + x[0] if joined is None else joined)
        for name, row in zip(found, (scores, scores.softmax(0), mean, logits), strict=True):
            found[name].append(row)
    return {"encoder_states": states} | {name: torch.stack(rows) for name, rows in found.items()}


@pytest.mark.parametrize("attention", ["learned", "uniform"])
@pytest.mark.parametrize(("form", "layers"), [("joined", 2), ("summed", 2), ("joined", 1)])
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(attention, form, layers):
    model = translator(attention=attention, form=form, layers=layers)
    check_against_definition(model, by_definition)


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
    for (source, _), row in zip(PAIRS, written.tolist(), strict=True):
        said = row[: row.index(EOS) + 1] if EOS in row else row
        logits = by_definition(model, source, [word for word in said if word != EOS])["logits"]
        logits[:, [PAD, BOS]] = -torch.inf
        assert logits.argmax(-1)[: len(said)].tolist() == said
        assert set(row[len(said) :]) <= {PAD}
