"""Recordings of small classifiers on texts whose polar words are known."""

from dataclasses import replace

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from companion.data.labelled import collate_labelled
from notebooks.shared import classification, classifier_proxy
from notebooks.shared.classification import load_task, probed_parts
from notebooks.shared.ragged import padded

SMALL = {"data": "known_polarity", "n_train": 300, "n_validation": 50, "embedding_width": 12}
SETTINGS = classification.Settings(**SMALL, steps=100, learning_rate=8e-3, width=12)
CHECKPOINTS = [0, 10, 50, 100]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    settings = {kind: replace(SETTINGS, attention=kind) for kind in ("learned", "uniform", "alone")}
    found = {
        kind: classification.record(chosen, tmp_path_factory.mktemp(kind))
        for kind, chosen in settings.items()
    }
    proxy = classifier_proxy.Settings(**SMALL, steps=100, learning_rate=2e-2)
    return found | {"proxy": classifier_proxy.record(proxy, tmp_path_factory.mktemp("proxy"))}


def polarities(part="validation"):
    """By position of the flat row: +1 at words that speak for the text's label, −1 against, 0 elsewhere."""
    task = load_task(SETTINGS)
    texts = probed_parts(task, SETTINGS.split_seed)[part]
    signs = []
    for i in range(len(texts)):
        own, other = ("plus", "minus") if texts.labels[i] else ("minus", "plus")
        kinds = [word.rstrip("0123456789") for word in task.vocabulary.decode(texts.text(i))]
        signs += [0, *((kind == own) - (kind == other) for kind in kinds), 0]
    return torch.tensor(signs)


def test_what_is_recorded_by_kind(recordings):
    for kind, found in recordings.items():
        names = {"log_polarity"} | ({"saliency"} if kind != "proxy" else set())
        names |= {"attention"} if kind in ("learned", "alone") else set()
        assert found["steps"].tolist() == CHECKPOINTS
        for part in ("validation", "train"):
            positions = int(found[f"{part}.offsets"][-1])
            assert {found[f"{part}.{name}"].shape for name in names} == {(4, positions)}
            assert found[f"{part}.correct"].shape == (4, 50)
        assert {name.partition(".")[2] for name in found if "." in name} == {
            "offsets", "labels", "correct", "loss", *names
        }  # fmt: skip
        assert found["losses"].shape == found["loss_steps"].shape


def test_attention_sums_to_one_over_every_text(recordings):
    attention, mask = padded(
        recordings["learned"]["validation.attention"], recordings["learned"]["validation.offsets"]
    )
    torch.testing.assert_close(attention.sum(-1), torch.ones(4, 50))
    assert mask.sum(1).tolist() == (load_task(SETTINGS).validation.lengths + 2).tolist()


def test_training_finds_the_polar_words(recordings):
    sign = polarities()
    for kind in ("learned", "uniform", "proxy"):
        found = recordings[kind]
        assert found["validation.correct"][-1].float().mean() > 0.85
        assert found["validation.loss"][-1] < found["validation.loss"][0]
        last = found["validation.log_polarity"][-1]
        assert last[sign == 1].mean() > last[sign == 0].mean() + 0.5
        assert last[sign == -1].mean() < last[sign == 0].mean() - 0.5


def test_attention_and_saliency_go_to_the_polar_words(recordings):
    found, sign = recordings["learned"], polarities()
    for name in ("attention", "saliency"):
        looks = found[f"validation.{name}"]
        last = looks[~looks.isnan().any(1)][-1]  # saliency is seen at the best snapshots alone
        assert last[sign == 1].mean() > 2 * last[sign == 0].mean()


def test_with_beta_frozen_the_probe_stays_as_drawn(recordings):
    found = recordings["alone"]
    first = [recordings[kind]["train.log_polarity"][0] for kind in ("learned", "uniform", "alone")]
    assert torch.equal(first[0], first[1])  # all start in the same place
    assert torch.equal(first[0], first[2])
    for part in ("validation", "train"):
        log_polarity = found[f"{part}.log_polarity"]
        assert torch.equal(log_polarity, log_polarity[:1].expand_as(log_polarity))
        attention = found[f"{part}.attention"]
        assert not torch.equal(attention[0], attention[-1])


def test_the_look_before_training_is_that_of_each_text_alone(recordings):
    task, generator = load_task(SETTINGS), torch.Generator().manual_seed(SETTINGS.seed)
    model = AttentiveClassifier(ClassifierConfig(len(task.vocabulary), 12, 12), generator)
    parts = probed_parts(task, SETTINGS.split_seed)
    found = recordings["learned"]
    for part, texts in parts.items():
        offsets = found[f"{part}.offsets"].tolist()
        assert found[f"{part}.labels"].tolist() == texts.labels.tolist()
        for i in (0, 7, 49):
            batch = collate_labelled(texts, [i])
            with torch.no_grad():
                trace = model(batch.tokens, batch.mask)
            here = slice(offsets[i], offsets[i + 1])
            sign = 2 * int(texts.labels[i]) - 1
            torch.testing.assert_close(found[f"{part}.attention"][0, here], trace.attention[0])
            torch.testing.assert_close(found[f"{part}.log_polarity"][0, here], sign * trace.log_odds[0])
            assert bool(found[f"{part}.correct"][0, i]) == (sign * float(trace.logit[0]) > 0)


def test_the_proxy_gives_a_word_the_same_log_odds_wherever_it_stands(recordings):
    texts, found = load_task(SETTINGS).validation, recordings["proxy"]
    tokens = torch.tensor([token for i in range(len(texts)) for token in (1, *texts.text(i).tolist(), 2)])
    signs = (2 * found["validation.labels"] - 1).repeat_interleave(found["validation.offsets"].diff())
    towards = found["validation.log_polarity"][-1] * signs
    for word in tokens.unique():
        same = towards[tokens == word]
        torch.testing.assert_close(same, same[:1].expand_as(same))


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
    found = classification.record(settings, tmp_path / "run")
    assert len(found["validation.labels"]) == 5  # a tenth
    assert list(classification.checksums(settings)) == ["own/mine.tsv"]


def test_offsets_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="3 positions, but the offsets end at 2"):
        padded(torch.ones(3), torch.tensor([0, 2]))
