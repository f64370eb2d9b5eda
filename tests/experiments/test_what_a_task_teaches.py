"""What a task teaches: its numbers by hand and against loops, and the experiment on tiny networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.config import override
from attnlib.experiments.measures.task_patterns import (
    PATTERNS,
    attention_to_source,
    example_of,
    measure_example,
    measure_pattern_agreement,
    measure_patterns,
    network_of,
    pattern_sums,
)
from attnlib.experiments.teaching_values import agreement_values
from attnlib.experiments.what_a_task_teaches import PROFILES, Config, _specs, compute, models
from attnlib.models.transformer import Transformer
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.tasks.corpus import Corpus
from attnlib.training.store import Store
from companion.data.summaries import lexicon_translation

TINY = Config(
    seeds=2, longest=7, n_train=200, judged=40, width=8, steps=3, transformer_width=8, transformer_steps=3,
    looks=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def computed(store):
    return compute(TINY, store)


def recorded(store, kind, task, seed=0):
    return store.recording(_specs(TINY, kind, task)[seed])


def test_patterns_by_hand():
    # Two words of the target, three of the source and its end mark; the second word is the topic.
    attention = torch.tensor([[[0.5, 0.25, 0, 0.25], [0, 0, 1.0, 0], [0.25, 0.25, 0.25, 0.25]]])
    gold = torch.tensor([[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]]).bool()
    target, source = torch.tensor([[True, True, False]]), torch.tensor([[True, True, True, False]])
    topics = torch.tensor([[False, True, False, False]])
    sums, counts = pattern_sums(attention, gold, topics, target, source)
    found = dict(zip(PATTERNS, sums / counts, strict=True))
    assert found == {
        "on_gold": 0.25,  # a half and nothing
        "on_topics": 0.125,
        "on_end": 0.125,
        "entropy": pytest.approx(0.75),  # 1.5 bits and none
        "order": 1,  # from the first word to the third
        "reach": pytest.approx((0.5 + 0.25 + 1) / 3),
    }


def test_attention_on_gold_links_and_even_attention(store):
    links = load_task(_specs(TINY, "recurrent", "summary")[0].resolved).gold[: TINY.judged]
    found = measure_patterns(recorded(store, "recurrent", "summary"))
    gold, even = found["references"]["gold"], found["references"]["even"]
    assert (gold["on_gold"], gold["on_topics"], gold["entropy"], gold["on_end"]) == (1, 1, 0, 0)
    places = [[place for _, place in sorted(own)] for own in links]
    moves = [np.sign(b - a) for own in places for i, a in enumerate(own) for b in own[i + 1 :]]
    assert gold["order"] == pytest.approx(np.mean(moves))
    assert even["on_end"] == even["on_gold"]
    assert 2 ** even["entropy"] == pytest.approx(1 / even["on_gold"], rel=0.05)  # words and an end mark
    assert found["untrained"]["heads"] == [[found["untrained"]["all"]]]  # one layer, one head


def test_a_summariser_and_a_translator_start_alike(store):
    for kind in ("recurrent", "transformer", "tied"):
        pair = [network_of(recorded(store, kind, "translation"), "untrained")]
        pair.append(
            network_of(recorded(store, kind, "summary" if kind != "tied" else "translation"), "untrained")
        )
        for one, two in zip(*(own.parameters() for own in pair), strict=True):
            assert torch.equal(one, two)


def test_agreement_with_itself_is_whole_and_with_another_in_a_loop(store):
    one, two = recorded(store, "transformer", "translation"), recorded(store, "transformer", "summary", 1)
    assert measure_pattern_agreement(one, one, state="trained") == pytest.approx(
        {"sentence": 1, "same_word": 1}
    )
    found = measure_pattern_agreement(one, two, state="trained")
    rows, links = [], []
    for recording in (one, two):
        judged = judged_samples(recording.spec.resolved)
        own = {}
        for batch, heads in attention_to_source(network_of(recording, "trained"), judged):
            own |= dict(zip(batch.indices.tolist(), heads.mean((0, 1)), strict=True))
        rows.append(own)
        links.append(load_task(recording.spec.resolved).gold)
    sentences, words = [], []
    for i in range(len(judged)):
        n = len(judged.source(i)) + 1
        means = [own[i][: len(gold[i]), :n].mean(0) for own, gold in zip(rows, links, strict=True)]
        sentences.append(torch.minimum(*means).sum().item())
        steps = {place: step for step, place in links[0][i]}
        for step, place in links[1][i]:
            words.append(torch.minimum(rows[0][i][steps[place], :n], rows[1][i][step, :n]).sum().item())
    assert found == pytest.approx({"sentence": np.mean(sentences), "same_word": np.mean(words)})


def test_the_example_is_one_sentence_out_of_the_order_of_its_topics(store):
    shown = [measure_example(recorded(store, "recurrent", task)) for task in ("translation", "summary")]
    assert shown[0]["source"] == shown[1]["source"]
    assert shown[0]["source"][-1] == "end"
    assert np.sum(shown[1]["trained"], axis=1) == pytest.approx(1)
    task = lexicon_translation(n_train=1, n_held_out=1)
    texts = (
        "my war wakes the flood",
        "my flood wakes the war",
        "my dog wakes the war",
        "my big flood wakes a",
    )
    sources = [task.source_vocabulary.encode(text.replace(" a", " the war").split()) for text in texts]
    words = task.source_vocabulary.words
    assert example_of(Corpus.from_ids(sources[:3], [[4]] * 3), words) == 1  # told first what matters less
    assert example_of(Corpus.from_ids(sources, [[4]] * 4), words) == 3  # and with an adjective


def test_values_and_tables_have_every_kind(computed):
    values, tables = computed
    assert values["references"]["translation"]["gold"]["reach"] == 1
    for kind in ("recurrent", "transformer"):
        found = values["differs"][kind]["trained"]["on_topics"]["value"]
        pair = [values[kind][task]["trained"]["on_topics"]["value"] for task in ("translation", "summary")]
        assert found == pytest.approx(pair[0] - pair[1])
        views = values["agreement"][kind]["sentence"]
        assert views["seeds"]["value"] == pytest.approx(
            (views["translation"]["value"] + views["summary"]["value"]) / 2
        )
        assert views["task_effect"]["value"] == pytest.approx(
            views["seeds"]["value"] - views["between"]["value"]
        )
    own = values["symmetry"]["transformer"]["translation"]
    less = own["encoder_self"]["trained"]["scores"]["value"] - own["cross"]["trained"]["scores"]["value"]
    assert own["self_less_cross"]["scores"]["value"] == pytest.approx(less)
    assert values["sources"]["tied"]["translation"]["cross"]["keys_from_target"]["high"] == 0
    assert set(values["symmetry"]["tied"]) == {"translation"}
    assert len(tables["networks"]) == 2 * 2 * (4 + 1)  # states, seeds, kinds with their tasks
    assert len(tables["agreement"]) == 2 * 2 * 2 * 4  # kinds, seeds, views, pairs
    heads = [row for row in tables["reciprocity"] if row["attention"] == "encoder_self"]
    assert len(heads) == 2 * 2 * 3 * TINY.layers * TINY.heads
    assert {row["state"] for row in tables["example"]} == {"trained", "untrained"}


def pairs(*values):
    """A point for each pair of networks, the first of seed 0, 1, …, the second of the next."""
    return [({"seed": seed}, {"sentence": 0.5, "same_word": value}) for seed, value in enumerate(values)]


def test_what_the_task_takes_by_hand():
    found = {
        ("recurrent", "translation", "translation", "trained"): pairs(0.9, 0.8, 1.0),
        ("recurrent", "summary", "summary", "trained"): pairs(0.7, 0.8, 0.6),
        ("recurrent", "translation", "summary", "trained"): pairs(0.7, 0.5, 0.6),
        ("recurrent", "translation", "summary", "untrained"): pairs(0.9, 0.9, 0.9),
    }
    own = agreement_values(found, 3)["recurrent"]["same_word"]
    means = {name: own[name]["value"] for name in ("translation", "summary", "seeds", "between", "untrained")}
    assert means == pytest.approx(
        {"translation": 0.9, "summary": 0.7, "seeds": 0.8, "between": 0.6, "untrained": 0.9}
    )
    effect = own["task_effect"]  # 0.1, 0.3, 0.2: above 0 where one task has more in common than two
    assert (effect["value"], effect["n"]) == (pytest.approx(0.2), 3)
    # Without seed 2, 0 or 1 one pair is left: 0.1, 0.3, 0.2. Squares of their deviations sum to 0.02, times
    # two thirds; Student's 97.5 % point with two degrees of freedom is 4.3027.
    assert effect["high"] - effect["value"] == pytest.approx(4.3027 * (0.02 * 2 / 3) ** 0.5, rel=1e-4)
    assert effect["value"] - effect["low"] == pytest.approx(effect["high"] - effect["value"])


def test_a_seed_that_is_in_two_pairs_is_not_two_seeds():
    two = {("recurrent", "summary", "summary", "trained"): pairs(0.9, 0.8)}
    found = agreement_values(two, 2)["recurrent"]["same_word"]["summary"]
    assert found["value"] == pytest.approx(0.85)
    assert np.isnan(found["low"])  # the same two networks twice
    assert np.isnan(found["high"])


def test_less_may_be_asked_for(store):
    config = replace(TINY, kind=("transformer",), task=("summary",), tied=())
    values, _ = compute(config, store)
    assert values["differs"] == {}
    assert values["agreement"]["transformer"]["sentence"]["between"]["value"] is None
    assert len(models(config)) == config.seeds
    assert isinstance(network_of(store.recording(models(config)[0]), "trained"), Transformer)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kind": "transformers"}, UnknownName, "did you mean 'transformer'"),
        ({"task": "translations"}, UnknownName, "did you mean 'translation'"),
        ({"scoring": "dott"}, UnknownName, "did you mean 'dot'"),
        ({"seeds": 1}, BadInput, "take 2 or more"),
        ({"heads": 3}, BadInput, "3 heads do not divide"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)
