"""Recordings of small classifiers on texts whose polar words are known, saliency, and a probe by place."""

from dataclasses import replace

import pytest
import torch

from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, log_odds_of, logit_of
from companion.data.labelled import collate_labelled
from notebooks.learn.optimal_attention.experiment import probability_of_right_label
from notebooks.shared.trainings import classification, classifier_proxy
from notebooks.shared.trainings.classification import load_task, log_polarity, probed_parts, saliency
from tests.attnlib.models.model_builders import classifier, generator

SMALL = {"data": "known_polarity", "n_train": 300, "n_validation": 50, "embedding_width": 12}
SETTINGS = classification.Settings(**SMALL, steps=100, learning_rate=8e-3, width=12)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    recorded = {
        kind: classification.record(replace(SETTINGS, attention=kind), tmp_path_factory.mktemp(kind))
        for kind in ("learned", "uniform", "alone")
    }
    proxy = classifier_proxy.Settings(**SMALL, steps=100, learning_rate=2e-2)
    return recorded | {"proxy": classifier_proxy.record(proxy, tmp_path_factory.mktemp("proxy"))}


def polarities(part="validation"):
    """By position of the flat row: +1 at words that speak for the text's label, −1 against, 0 elsewhere."""
    task = load_task(SETTINGS)
    texts = probed_parts(task, SETTINGS.split_seed)[part]
    signs = []
    for i in range(len(texts)):
        right, other = ("plus", "minus") if texts.labels[i] else ("minus", "plus")
        kinds = [word.rstrip("0123456789") for word in task.vocabulary.decode(texts.text(i))]
        signs += [0, *((kind == right) - (kind == other) for kind in kinds), 0]
    return torch.tensor(signs)


@pytest.mark.slow
def test_training_finds_the_polar_words(recordings):
    sign = polarities()
    for kind in ("learned", "uniform", "proxy"):
        recording = recordings[kind]
        assert recording["validation.correct"][-1].float().mean() > 0.85
        assert recording["validation.loss"][-1] < recording["validation.loss"][0]
        last = recording["validation.log_polarity"][-1]
        assert last[sign == 1].mean() > last[sign == 0].mean() + 0.5
        assert last[sign == -1].mean() < last[sign == 0].mean() - 0.5


@pytest.mark.slow
def test_training_attends_to_the_polar_words(recordings):
    sign = polarities()
    for name in ("attention", "saliency"):
        snapshots = recordings["learned"][f"validation.{name}"]
        last = snapshots[~snapshots.isnan().any(1)][-1]  # saliency is seen at the best snapshots alone
        assert last[sign == 1].mean() > 2 * last[sign == 0].mean()


@pytest.mark.slow
def test_with_beta_frozen_the_probe_stays_as_drawn(recordings):
    recording = recordings["alone"]
    first = [recordings[kind]["train.log_polarity"][0] for kind in ("learned", "uniform", "alone")]
    assert torch.equal(first[0], first[1])  # all start in the same place
    assert torch.equal(first[0], first[2])
    assert "train.attention" not in recordings["uniform"]
    for part in ("validation", "train"):
        log_polarity = recording[f"{part}.log_polarity"]
        assert torch.equal(log_polarity, log_polarity[:1].expand_as(log_polarity))
        attention = recording[f"{part}.attention"]
        assert not torch.equal(attention[0], attention[-1])


@pytest.mark.slow
def test_the_snapshot_before_training_is_that_of_each_text_alone(recordings):
    task = load_task(SETTINGS)
    model = AttentiveClassifier(ClassifierConfig(len(task.vocabulary), 12, 12), generator(SETTINGS.seed))
    parts = probed_parts(task, SETTINGS.split_seed)
    recording = recordings["learned"]
    for part, texts in parts.items():
        offsets = recording[f"{part}.offsets"].tolist()
        assert recording[f"{part}.labels"].tolist() == texts.labels.tolist()
        for i in (0, 7, 49):
            batch = collate_labelled(texts, [i])
            with torch.no_grad():
                trace = model(batch.tokens, batch.mask)
            here = slice(offsets[i], offsets[i + 1])
            sign = 2 * int(texts.labels[i]) - 1
            torch.testing.assert_close(recording[f"{part}.attention"][0, here], trace.attention[0, 0])
            torch.testing.assert_close(
                recording[f"{part}.log_polarity"][0, here], sign * log_odds_of(trace)[0]
            )
            assert bool(recording[f"{part}.correct"][0, i]) == (sign * float(logit_of(trace)[0]) > 0)


@pytest.mark.slow
def test_runs_of_other_seeds_look_at_the_same_texts(recordings, tmp_path):
    other = classification.record(replace(SETTINGS, seed=1, steps=1), tmp_path)
    for name in ("train.offsets", "train.labels", "validation.offsets"):
        assert torch.equal(other[name], recordings["learned"][name])
    assert not torch.equal(other["train.attention"][0], recordings["learned"]["train.attention"][0])


def test_a_readers_own_table_goes_through_the_same_recipe(tmp_path):
    table = tmp_path / "mine.tsv"
    rows = [f"film {i} is {'fine' if i % 2 else 'poor'}\t{'yes' if i % 2 else 'no'}" for i in range(50)]
    table.write_text("\n".join(["text\tlabel", *rows]), encoding="utf-8")
    settings = replace(SETTINGS, data=str(table), n_train=0, n_validation=0, steps=1)
    recording = classification.record(settings, tmp_path / "run")
    assert len(recording["validation.labels"]) == 5  # a tenth
    assert list(classification.checksums(settings)) == ["own/mine.tsv"]


def test_the_logit_is_the_mean_of_the_words_own_log_odds():
    model = classifier_proxy.ClassifierProxy(4, 2, generator())
    with torch.no_grad():
        model.embedding.copy_(torch.tensor([[9.0, 9], [1, 0], [0, 1], [2, 2]]))
        model.readout.copy_(torch.tensor([3.0, -1]))
    tokens = torch.tensor([[1, 2, 3], [1, 3, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert model.log_odds(tokens).tolist() == [[3, -1, 4], [3, 4, 18]]
    assert model(tokens, mask).tolist() == [2, 3.5]
    # drawn at the scale of section 4.1
    variance = classifier_proxy.ClassifierProxy(2_000, 50, generator()).embedding.detach().var()
    assert float(variance) * 50 == pytest.approx(1, abs=0.02)


# Saliency: derivatives checked by differences, none at padding, and nothing else touched.

TOKENS = torch.tensor([[1, 5, 6, 7, 2], [1, 4, 2, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
LABELS = torch.tensor([0, 1])
STEP = 1e-5


@pytest.mark.parametrize("attention", ["learned", "uniform", "alone"])
@torch.no_grad()
def test_saliency_is_the_slope_along_each_gate(attention):
    model = classifier(attention)
    slopes, _ = saliency(model, TOKENS, MASK, LABELS)
    for row, column in MASK.nonzero().tolist():
        gates = torch.ones(2, *MASK.shape, dtype=torch.float64)
        gates[:, row, column] += torch.tensor([STEP, -STEP])
        up, down = (logit_of(model(TOKENS, MASK, gates=gate))[row] for gate in gates)
        expected = float(up - down) / (2 * STEP) * (2 * int(LABELS[row]) - 1)
        assert float(slopes[row, column]) == pytest.approx(expected, abs=1e-6)
    assert torch.all(slopes[~MASK] == 0)


def test_the_backward_pass_of_saliency_is_not_left_to_cudnn(monkeypatch):
    """cuDNN refuses to go backward through a recurrent layer in evaluation mode."""
    asked, grad = [], torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *given: asked.append(torch.backends.cudnn.enabled) or grad(*given)
    )
    model = classifier().eval()
    with torch.no_grad():
        saliency(model, TOKENS, MASK, LABELS)
    assert asked == [False]


def test_saliency_returns_the_trace_of_its_pass():
    model = classifier().eval()
    with torch.no_grad():
        _, trace = saliency(model, TOKENS, MASK, LABELS)
    torch.testing.assert_close(logit_of(trace), logit_of(model(TOKENS, MASK)))


def test_saliency_leaves_no_gradient():
    model = classifier().eval()
    with torch.no_grad():
        slopes, _ = saliency(model, TOKENS, MASK, LABELS)
    assert not slopes.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


# Where the probe is read, and the identity that makes a prediction of it.


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_equation_12_is_an_identity(attention):
    """The classifier's own probability of the right label, from its attention and its probe alone."""
    draw = generator()
    model = AttentiveClassifier(ClassifierConfig(20, 8, 6, attention=attention), draw).double()
    tokens = torch.randint(20, (7, 9), generator=draw)
    mask = torch.arange(9) < torch.randint(1, 10, (7, 1), generator=draw)
    labels = torch.tensor([1, 0, 1, 1, 0, 0, 1])
    with torch.no_grad():
        trace = model(tokens, mask)
    probe = torch.sigmoid(log_polarity(log_odds_of(trace), labels))
    right = torch.sigmoid(logit_of(trace) * (2 * labels - 1))
    assert torch.allclose(probability_of_right_label(trace.attention[:, 0], probe), right, atol=1e-12)
