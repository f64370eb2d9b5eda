"""Word alignment on tiny models: numbers against plain loops."""

import numpy as np
import pytest
import torch

from attnlib.decomposition.terms import alignment_terms
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.vocabulary import BOS, EOS, Vocabulary
from companion.data.task import Task
from notebooks.attend.word_alignment import experiment
from notebooks.shared.measure import fit_components


@pytest.fixture(scope="module")
def trained(store):
    config = experiment.Config(task=("reordering_50",), tokens_of=(), seeds=1, width=8, steps=3)
    return store.model(experiment.measurements(config)[0].spec)


def traced(trained, samples):
    """Each held-out sample's trace by itself, without padding, with its place."""
    corpus = trained.task.held_out.subset(np.arange(samples))
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, 1):
            yield trained.model(batch), int(batch.indices[0])


@pytest.mark.slow
def test_error_rates_agree_with_a_plain_loop(trained):
    asked = {"fit_samples": 100, "judged_samples": 30, "iterations": 2}
    measured, fitted = experiment.measure_word_alignment(trained, **asked), fit_components(trained, 100)
    hits = dict.fromkeys(("full", "temporal_only", "without_input_residual"), 0.0)
    hits_read, mass, made, gold_count = 0, 0.0, 0, 0
    for trace, i in traced(trained, 30):
        gold = trained.task.gold[i]
        terms = alignment_terms(*fitted.split(trace))[:, :, 0]
        full = terms.sum((0, 1))
        scores = {"full": full, "temporal_only": terms[0, 0], "without_input_residual": full - terms[1, 2]}
        rows, columns = (length - 1 for length in full.shape)  # without end marks
        made += rows
        gold_count += len(gold)
        for name, table in scores.items():
            links = {(int(table[s, :columns].argmax()), s) for s in range(rows)}
            hits[name] += len(links & gold)
        weights = trace.attention[0]
        mass += sum(float(weights[s, t]) for t, s in gold)
        read = {(int(weights[s + 1, :columns].argmax()), s) for s in range(rows)}
        hits_read += len(read & gold)
    for name, count in hits.items():
        rate = measured["attention"][name]["words"]["error_rate"]
        assert rate == pytest.approx(1 - 2 * count / (made + gold_count), abs=0.004), name  # ties
    assert measured["attention"]["full"]["words"]["mass_on_gold"] == pytest.approx(
        mass / gold_count, abs=1e-5
    )
    assert measured["attention"]["full"]["read"]["recall"] == pytest.approx(hits_read / gold_count, abs=0.004)
    assert measured["attention"]["full"]["words"]["gold"] == gold_count == measured["gold"]["links"]


@pytest.mark.slow
def test_parts_of_a_token_agree_with_a_plain_loop(trained):
    measured = experiment.measure_token_parts(trained, fit_samples=100)
    fitted, vocabulary = fit_components(trained, 100), trained.task.target_vocabulary
    columns = measured["tokens"]["predicted"]
    token = vocabulary.words.index(columns["token"][1])
    covariance, variance, similar, rows = 0.0, 0.0, 0.0, 0
    for trace, _ in traced(trained, len(trained.task.held_out)):
        terms = alignment_terms(*fitted.split(trace))[:, :, 0].double()
        for s in np.flatnonzero(trace.target_outputs[0].numpy() == token):
            total, temporal = terms[:, :, s].sum((0, 1)), terms[0, 0, s]
            covariance += float(((temporal - temporal.mean()) * (total - total.mean())).sum())
            variance += float((total - total.mean()).square().sum())
            similar += 1 - 0.5 * float((temporal.softmax(0) - total.softmax(0)).abs().sum())
            rows += 1
    assert columns["rows"][1] == rows
    assert columns["temporal_share"][1] == pytest.approx(covariance / variance, abs=1e-3)
    assert columns["temporal_only"][1] == pytest.approx(similar / rows, abs=1e-3)


def test_classes_of_natural_language_go_by_frequency():
    """Sixty words: the fifty most frequent count as function words; marks and punctuation stand apart."""
    words = [f"w{i:02d}" for i in range(60)]
    sentences = [[word] * (60 - i) for i, word in enumerate(words)] + [[",", "."] * 100]
    vocabulary = Vocabulary.from_sentences(sentences, open=True)
    corpus = Corpus.from_ids([[4]] * len(sentences), [vocabulary.encode(sentence) for sentence in sentences])
    classes = experiment.token_classes(Task("x", vocabulary, vocabulary, corpus, corpus))
    kind = dict(zip(vocabulary.words, classes, strict=True))
    function, content = ["function word"] * experiment.FUNCTION_RANK, ["content word"] * 10
    assert [kind[word] for word in words] == function + content
    assert (kind[","], kind["."]) == ("punctuation", "punctuation")
    assert (classes[BOS], classes[EOS], kind["<unk>"]) == ("start mark", "end mark", "unknown word")
