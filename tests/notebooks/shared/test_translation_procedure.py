"""Translation along training: what is recorded is what the network does, padding taken out; and BLEU."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from attnlib.errors import UnknownName
from attnlib.models.corpus import collate
from attnlib.models.search import translate
from attnlib.models.vocabulary import BOS, EOS, UNK
from notebooks.shared.agreement import SALIENCY_VARIANTS, RaggedRows, saliency_variants
from notebooks.shared.bleu import bleu, bleu_counts, corpus_bleu
from notebooks.shared.trainings import translation, translation_proxy
from notebooks.shared.trainings.translation import (
    load_pieces,
    padded_cells,
    probed_parts,
    translation_saliency,
)
from tests.attnlib.models.model_builders import PAIRS, batch_of, generator, translator
from tests.attnlib.refusals import assert_refused

TINY = translation.Settings(
    dataset="known_lexicon", width=16, steps=55, n_train=400, n_validation=12, probed_training=5, seed=1
)
PROXY = translation_proxy.Settings(dataset="known_lexicon", width=32, steps=5, n_train=100, n_validation=70)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return translation.record(TINY, tmp_path_factory.mktemp("learned"))


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    return translation_proxy.record(PROXY, tmp_path_factory.mktemp("proxy"))


@pytest.mark.slow
@torch.no_grad()
def test_what_is_recorded_before_training_is_what_the_network_does_sample_by_sample(recorded):
    data = load_pieces(TINY)
    network = translation.new_network(TINY, len(data.pieces)).eval()
    for name, part in probed_parts(data, TINY).items():
        masks = recorded[f"{name}.source_mask"], recorded[f"{name}.target_mask"]
        attention, probe = (
            padded_cells(recorded[f"{name}.{what}"][0], *masks) for what in ("attention", "log_probe")
        )
        for i in range(len(part.corpus)):
            alone = collate(part.corpus, [i])
            trace = network(alone)
            here = slice(0, alone.target_output.shape[1]), slice(0, alone.source.shape[1])
            torch.testing.assert_close(attention[i][here], trace.attention[0])
            # Attending to each position alone, through the attention itself.
            for position in range(alone.source.shape[1]):
                summed = network.readout.from_context(trace.encoder_states[:, position : position + 1])
                logits = network.readout.logits(summed + network.readout.from_decoder(trace.decoder_states))
                expected = logits.log_softmax(-1)[0].gather(1, alone.target_output[0][:, None])[:, 0]
                torch.testing.assert_close(probe[i][here][:, position], expected)
            right = (trace.logits.argmax(-1) == alone.target_output).sum()
            assert recorded[f"{name}.right"][0, i] == right
            words = alone.target_output.numel()
            torch.testing.assert_close(recorded[f"{name}.loss"][0, i], network.loss(alone) * words)
            assert recorded[f"{name}.target_output"][i, :words].equal(alone.target_output[0].int())
            assert recorded[f"{name}.source"][i][masks[0][i]].equal(alone.source[0].int())
            written = translate(network, alone.source, alone.source_mask, max_steps=40)[0]
            (hypothesis,) = data.pieces.decode([[word for word in written.tolist() if word > 3]])
            if len(written) < 2 * alone.source.shape[1] + 10:  # it ended by itself
                expected = bleu_counts([hypothesis], [part.references[i]])[0]
                assert recorded[f"{name}.bleu_counts"][0, i].tolist() == expected.tolist()


@pytest.mark.parametrize("part", ["training", "validation"])
def test_every_seed_probes_the_same_sample(part):
    data, name = load_pieces(TINY), f"probed_{part}"
    chosen, others = (probed_parts(data, replace(TINY, seed=seed, **{name: 7}))[part] for seed in (1, 2))
    assert chosen.references == others.references


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_probed_sample_is_in_the_order_of_the_corpus(part):
    data, name = load_pieces(TINY), f"probed_{part}"
    chosen = probed_parts(data, replace(TINY, seed=1, **{name: 7}))[part]
    known = data.train_targets if part == "training" else data.validation_targets
    places = [known.index(reference) for reference in chosen.references]
    assert len(chosen.corpus) == 7
    assert places == sorted(places)
    assert places != list(range(7))  # drawn, not the first


@pytest.mark.parametrize("part", ["training", "validation"])
def test_references_of_a_probed_sample_are_its_targets(part):
    data, name = load_pieces(TINY), f"probed_{part}"
    chosen = probed_parts(data, replace(TINY, seed=1, **{name: 7}))[part]
    for i, reference in enumerate(chosen.references):
        assert data.pieces.decode([chosen.corpus.target(i)]) == [reference]


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_sample_larger_than_its_part_is_refused(part):
    data, name = load_pieces(TINY), f"probed_{part}"
    message = f"{name} is 401, but there are … {part} pairs"
    assert_refused(lambda: probed_parts(data, replace(TINY, **{name: 401})), message)


@pytest.mark.slow
def test_a_source_that_is_trained_on_begins_with_a_mark():
    data = load_pieces(TINY)
    for corpus in (data.train, data.validation):
        for i in range(len(corpus)):
            assert corpus.source(i)[0] == BOS
            assert min(*corpus.source(i)[1:], *corpus.target(i)) > UNK


@pytest.mark.slow
def test_a_source_that_is_recorded_has_a_mark_at_either_end(recorded, proxied):
    for recording, parts in ((recorded, ("validation", "training")), (proxied, ("validation",))):
        for part in parts:
            source, mask = recording[f"{part}.source"], recording[f"{part}.source_mask"]
            assert (source[:, 0] == BOS).all()
            assert (source.gather(1, mask.sum(1, keepdim=True) - 1) == EOS).all()
            assert ((source == BOS).sum(1) == 1).all()


@pytest.fixture(scope="module")
def uniform(tmp_path_factory):
    return translation.record(replace(TINY, attention="uniform"), tmp_path_factory.mktemp("uniform"))


@pytest.mark.slow
def test_uniform_attention_records_no_attention(uniform):
    assert "validation.saliency" not in uniform
    assert "validation.attention" not in uniform


@pytest.mark.slow
def test_uniform_attention_starts_in_the_same_place(uniform, recorded):
    assert uniform["validation.log_probe"][0].equal(recorded["validation.log_probe"][0])


@pytest.mark.slow
def test_uniform_attention_ends_elsewhere(uniform, recorded):
    assert not uniform["validation.log_probe"][-1].equal(recorded["validation.log_probe"][-1])


@pytest.mark.slow
def test_uniform_attention_learns(uniform):
    losses = uniform["validation.loss"].sum(1)
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.slow
def test_the_trained_network_where_it_is_asked_for(tmp_path, recorded):
    kept = translation.record(replace(TINY, keep_network=True), tmp_path)
    network = translation.recorded_network(TINY, kept)
    data = load_pieces(TINY)
    snapshot = translation.snapshot_of(network, probed_parts(data, TINY)["validation"])
    last = {name: recorded[f"validation.{name}"][-1] for name in snapshot}
    torch.testing.assert_close(snapshot, last, rtol=0, atol=0)
    assert_refused(lambda: translation.recorded_network(TINY, recorded), "keep_network=True")


def test_saliency_where_it_is_asked_for(tmp_path):
    settings = replace(TINY, saliency=True, steps=1, probed_training=0)
    recording = translation.record(settings, tmp_path)
    data = load_pieces(settings)
    masks = recording["validation.source_mask"], recording["validation.target_mask"]
    saliency = padded_cells(recording["validation.saliency"][0], *masks)
    network = translation.new_network(settings, len(data.pieces)).eval()
    for i in range(0, 12, 5):
        alone = translation_saliency(network, collate(data.validation, [i]))[0]
        target, source = alone.shape
        torch.testing.assert_close(saliency[i, :target, :source], alone, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_the_proxys_record_is_of_every_sample_alone(proxied):
    data = load_pieces(PROXY)
    proxy = translation_proxy.TranslationProxy(len(data.pieces), 32, generator())
    for i in range(0, 70, 10):
        alone = collate(data.validation, [i])
        with torch.no_grad():
            loss, logits = proxy.loss(alone), proxy(alone.source, alone.source_mask)
        torch.testing.assert_close(proxied["validation.loss"][0, i], loss * alone.target_output.numel())
        assert proxied["validation.right"][0, i] == (alone.target_output == logits.argmax()).sum()


def test_only_published_sets_have_checksums():
    assert translation.checksums(TINY) == translation_proxy.checksums(PROXY) == {}
    assert len(translation.checksums(translation.Settings())) == 4


def test_an_unknown_set_is_refused():
    assert_refused(lambda: load_pieces(replace(TINY, dataset="multi31k")), "translation set", UnknownName)


# Saliency: slopes checked by differences, none at padding

BATCH = batch_of()
STEP = 1e-5


@torch.no_grad()
def logits_of(model, gate, position):
    """Logits of all words with one source position's embedding scaled, by the whole network."""
    embedded = model.embedding(BATCH.source).clone()
    embedded[:, position] *= gate
    states, start = model.encode(embedded, BATCH.source_mask)
    decoded, _ = model.decoder(model.embedding(BATCH.target_input), start)
    _, attention = model.attend(states, BATCH.source_mask, decoded)
    readout = model.readout
    return readout.logits(readout.from_context(attention @ states) + readout.from_decoder(decoded))


def assert_slopes(slopes, model, of_logits=lambda logits: logits):
    """Each source position's derivative is the difference quotient of the right words' score."""
    right = BATCH.target_output[:, :, None]
    for position in range(BATCH.source.shape[1]):
        up, down = (
            of_logits(logits_of(model, 1 + step, position)).gather(-1, right)[:, :, 0]
            for step in (STEP, -STEP)
        )
        valid = BATCH.target_mask & BATCH.source_mask[:, position, None]
        expected = ((up - down) / (2 * STEP))[valid]
        torch.testing.assert_close(slopes[:, :, position][valid], expected, rtol=1e-6, atol=1e-8)
        assert (slopes[:, :, position][~valid] == 0).all()
    assert slopes.abs().max() > 1e-3


@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_in_translation_it_is_the_slope_of_the_right_words_logit(attention, form):
    model = translator(attention=attention, form=form)
    assert_slopes(translation_saliency(model, BATCH), model)


def test_saliency_of_a_sample_hangs_on_no_other():
    model = translator()
    with torch.no_grad():  # as within a snapshot
        together = translation_saliency(model, BATCH)
    for i, (source, target) in enumerate(PAIRS):
        alone = translation_saliency(model, batch_of(i))[0]
        torch.testing.assert_close(together[i, : len(target) + 1, : len(source) + 1], alone)


def test_saliency_of_translations_leaves_no_gradient():
    model = translator()
    with torch.no_grad():  # as within a snapshot
        together = translation_saliency(model, BATCH)
    assert not together.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_saliency_in_single_precision_is_the_same():
    with torch.no_grad():  # as within a snapshot
        together = translation_saliency(translator(), BATCH)
    single = translation_saliency(translator().float(), BATCH)  # torch has other code for it
    torch.testing.assert_close(single, together.float(), rtol=1e-3, atol=1e-6)


def test_a_variant_of_saliency_is_the_slope_of_the_logit():
    model = translator()
    variants = saliency_variants(model, BATCH)
    assert tuple(variants) == SALIENCY_VARIANTS
    torch.testing.assert_close(variants["logit"], translation_saliency(model, BATCH))


def test_a_variant_of_saliency_is_the_slope_of_the_log_probability():
    model = translator()
    variants = saliency_variants(model, BATCH)
    assert_slopes(variants["log_probability"], model, lambda logits: logits.log_softmax(-1))


def test_no_word_moves_by_more_than_the_gradient_allows():
    model = translator()
    variants = saliency_variants(model, BATCH)
    # no word moves by more than the gradient's length times its own
    lengths = model.embedding(BATCH.source).norm(dim=-1)[:, None]
    assert (variants["log_probability"].abs() <= variants["gradient_norm"] * lengths + 1e-12).all()


def test_the_length_of_the_gradient_is_zero_at_padding_alone():
    model = translator()
    variants = saliency_variants(model, BATCH)
    valid = BATCH.target_mask[:, :, None] & BATCH.source_mask[:, None, :]
    assert (variants["gradient_norm"][valid] > 0).all()
    assert (variants["gradient_norm"][~valid] == 0).all()


def test_variants_of_saliency_leave_no_gradient():
    model = translator()
    saliency_variants(model, BATCH)
    assert all(parameter.grad is None for parameter in model.parameters())


# The bag of words that stands for translation before attention


@torch.no_grad()
def test_the_proxy_has_two_matrices():
    proxy = translation_proxy.TranslationProxy(12, 5, generator())
    assert sum(parameter.numel() for parameter in proxy.parameters()) == 2 * 12 * 5


@torch.no_grad()
def test_the_proxy_is_equation_5():
    proxy = translation_proxy.TranslationProxy(12, 5, generator())
    for i, (source, _) in enumerate(PAIRS):
        bag = torch.stack([proxy.output.weight @ proxy.embedding.weight[word] for word in (*source, EOS)])
        expected = bag.mean(0)
        torch.testing.assert_close(proxy(BATCH.source, BATCH.source_mask)[i], expected)


@torch.no_grad()
def test_the_loss_of_the_proxy_is_that_of_equation_5():
    proxy, losses = translation_proxy.TranslationProxy(12, 5, generator()), []
    for source, target in PAIRS:
        bag = torch.stack([proxy.output.weight @ proxy.embedding.weight[word] for word in (*source, EOS)])
        expected = bag.mean(0)
        losses += [-expected.log_softmax(0)[word] for word in (*target, EOS)]
    torch.testing.assert_close(proxy.loss(BATCH), torch.stack(losses).mean())


@pytest.mark.parametrize("at_once", [1, 3, 512])
@torch.no_grad()
def test_equation_6(at_once):
    proxy = translation_proxy.TranslationProxy(12, 5, generator())
    log_probe = proxy.log_probe(BATCH, at_once=at_once)
    assert (log_probe == -torch.inf).sum() == log_probe.numel() - sum(
        (len(a) + 1) * (len(b) + 1) for a, b in PAIRS
    )
    for i, (source, target) in enumerate(PAIRS):
        for s, right in enumerate((*target, EOS)):
            for t, word in enumerate((*source, EOS)):
                alone = (proxy.output.weight @ proxy.embedding.weight[word]).softmax(0)[right]
                torch.testing.assert_close(log_probe[i, s, t].exp(), alone)


# Rows of different lengths, met in batches


def test_every_value_is_met_once_whatever_the_size_of_the_batches():
    offsets = torch.tensor([0, 4, 5, 5, 12, 14])
    flat = torch.arange(14.0)
    for cells in (1, 6, 8, 100):
        seen = {}
        for places, mask, samples in RaggedRows.of_texts(offsets).batches(cells):
            assert mask.numel() <= max(cells, int(offsets.diff().max()))
            for row, valid, sample in zip(flat[places], mask, samples.tolist(), strict=True):
                seen[sample] = row[valid].tolist()
        assert seen == {i: flat[a:b].tolist() for i, (a, b) in enumerate(pairwise(offsets))}


def test_rows_of_pairs_lie_where_the_cells_are_joined():
    source = torch.tensor([[True, True, False], [True, True, True]])
    target = torch.tensor([[True, True], [True, False]])
    padded = torch.arange(12.0).reshape(2, 2, 3)
    flat = translation.joined_cells([(torch.arange(2), padded, translation.valid_cells(source, target))])
    rows = RaggedRows.of_pairs(source, target)
    cells = [flat[a : a + n].tolist() for a, n in zip(rows.starts, rows.lengths, strict=True)]
    assert cells == [[0.0, 1.0], [3.0, 4.0], [6.0, 7.0, 8.0]]
    assert rows.samples.tolist() == [0, 0, 1]


def test_what_meets_the_rows_is_made_where_they_are():
    offsets, mask = torch.tensor([0, 2, 5]), torch.ones(2, 3, dtype=torch.bool)
    with torch.device("meta"):  # what is made without saying where could not be read
        rows = [RaggedRows.of_texts(offsets), RaggedRows.of_pairs(mask, mask)]
        assert all(places.device.type == "cpu" for batched in rows for places, *_ in batched.batches())


# BLEU by sample, of any part, and of a corpus with its signature

REFERENCES = ["the cat sat on the mat", "a dog runs", "we're here, aren't we?"]
HYPOTHESES = ["the cat sat on a mat", "the dog runs far", "we're here"]


@pytest.mark.parametrize("part", [slice(None), slice(0, 2), slice(1, 3)])
def test_a_part_of_the_corpus_scores_as_sacrebleu_scores_it(part):
    import sacrebleu

    expected = sacrebleu.corpus_bleu(HYPOTHESES[part], [REFERENCES[part]]).score
    assert bleu(bleu_counts(HYPOTHESES, REFERENCES)[part]) == pytest.approx(expected, abs=1e-9)
    score, signature = corpus_bleu(HYPOTHESES[part], REFERENCES[part])
    assert score == pytest.approx(expected)
    assert {"tok:13a", "smooth:exp", "nrefs:1"} <= set(signature.split("|"))
