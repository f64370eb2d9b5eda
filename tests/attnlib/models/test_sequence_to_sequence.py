"""Networks of the primer and of the second paper against their equations, one sentence at a time."""

import pytest
import torch

from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.vocabulary import BOS, EOS, PAD
from tests.attnlib.models.model_builders import (
    PAIRS,
    SEQUENCES,
    batch_of,
    cells_of,
    generator,
    read_through,
    sequence_network,
    step,
    translator,
)


def by_definition(model, source, target, *, previous_query=False):
    """Encoder and decoder states, queries, attention and logits of one sentence, word by word."""
    config = model.config
    words = [*(source[::-1] if config.reverse else source), EOS]
    inputs, ends = read_through(model.encoder, [model.embedding_source.weight[word][None] for word in words])
    lasts = [tuple(torch.cat(ways, 1) for ways in zip(*end, strict=True)) for end in ends]
    if config.reverse:
        inputs = [*inputs[-2::-1], inputs[-1]]
    encoded = torch.cat(inputs)
    bahdanau = config.link == "attention" and config.decoder == "bahdanau"
    luong = config.link == "attention" and config.decoder == "luong"
    summary = model.summary_map(lasts[-1][0]).tanh() if config.link == "every_step" else None
    if config.bidirectional or config.link == "every_step" or bahdanau:
        mapped = [model.start_map(last[0]).tanh() for last in lasts]
        lasts = [(h, torch.zeros_like(h))[: len(lasts[0])] for h in mapped]

    def attend(query):
        row = model.score(query[None], encoded[None])[0].softmax(-1)
        found["queries"].append(query)
        found["attention"].append(row)
        return row @ encoded

    found = {name: [] for name in ("queries", "attention", "decoder_states", "logits")}
    cells, fed = cells_of(model.decoder), torch.zeros(1, config.width).double()
    for token in [BOS, *target]:
        before = lasts[-1][0]
        parts = [model.embedding_target.weight[token][None]]
        parts += [summary] if summary is not None else []
        parts += [fed] if config.input_feeding else []
        parts += [attend(before)] if bahdanau else []
        x = torch.cat(parts, 1)
        for level, cell in enumerate(cells):
            lasts[level] = step(cell, x, lasts[level])
            x = lasts[level][0]
        if luong:
            context = attend(before if previous_query else x)
            features = fed = model.attentional_map(torch.cat([context, x], 1)).tanh()
        else:
            features = x if config.link == "initial" else torch.cat([x, *parts], 1)
        found["decoder_states"].append(x)
        found["logits"].append(model.readout(features))
    return {"encoder_states": encoded} | {name: torch.cat(rows) for name, rows in found.items() if rows}


def check_against_definition(model, definition=by_definition, **options):
    trace = model(batch_of())
    for sample, (source, target) in enumerate(PAIRS):
        found = definition(model, source, target, **options)
        for name, expected in found.items():
            ours = getattr(trace, name)[sample, : len(expected)]
            torch.testing.assert_close(ours[..., : expected.shape[-1]], expected)
            assert not ours[..., expected.shape[-1] :].any()  # attention at padding
        assert (trace.attention is None) == ("attention" not in found)


@pytest.mark.parametrize("kind", SEQUENCES)
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(kind):
    check_against_definition(sequence_network(kind))


# The second paper's translation model: sizes to the last parameter, equations, and what is written.


BATCH = batch_of()


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_papers_number_of_parameters(attention):
    model = BilinearTranslator(TranslatorConfig(attention=attention), generator())
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == 8_180_544
    assert total - model.embedding.weight.numel() == 6_132_544


def translator_by_definition(model, source, target):
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
def test_a_padded_batch_of_translations_is_what_the_equations_say_of_each_sentence(attention, form, layers):
    model = translator(attention=attention, form=form, layers=layers)
    check_against_definition(model, translator_by_definition)


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
        logits = translator_by_definition(model, source, [word for word in said if word != EOS])["logits"]
        logits[:, [PAD, BOS]] = -torch.inf
        assert logits.argmax(-1)[: len(said)].tolist() == said
        assert set(row[len(said) :]) <= {PAD}
