"""Who asks whom: classes of words, reciprocity and sources against loops and what must be exact."""

from collections import Counter

import numpy as np
import pytest
import torch
from test_what_a_task_teaches import TINY

from attnlib.experiments.measures.task_patterns import network_of
from attnlib.experiments.measures.who_asks_whom import (
    CLASSES,
    class_of_words,
    equal_lengths,
    measure_classes,
    measure_reciprocity,
    measure_sources,
    source_order,
)
from attnlib.experiments.what_a_task_teaches import _specs
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.training.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


def recorded(store, kind, task):
    return store.recording(_specs(TINY, kind, task)[0])


def test_kinds_of_words():
    words = ("<pad>", "<eos>", "the", "big", "war", "dog", "wakes", "often", "near")
    names = [CLASSES[i] for i in class_of_words(words)]
    assert names == ["end", "end", "determiner", "adjective", "topic", "noun", "verb", "other", "other"]


def test_even_attention_has_every_kind_of_word_at_one(store, monkeypatch):
    def even(recording, state):
        network = network_of(recording, state)
        for name, value in network.named_parameters():
            if "query_map" in name:
                value.requires_grad_(False).zero_()
        return network

    monkeypatch.setattr("attnlib.experiments.measures.who_asks_whom.network_of", even)
    found = measure_classes(recorded(store, "transformer", "translation"))["trained"]
    values = [v for kind in found.values() for row in kind.values() for v in row.values() if v is not None]
    assert values == pytest.approx([1] * len(values))
    assert len(values) > 60
    assert found["encoder_self"]["verb"]["verb"] is None  # a sentence has one


def test_rows_of_cross_attention_in_the_order_of_the_source(store):
    assert source_order([{(0, 1), (1, 0)}, {(0, 0), (1, 1)}], words=2).tolist() == [[1, 0], [0, 1]]
    assert source_order([{(0, 1)}], words=2) is None
    recording = recorded(store, "transformer", "summary")
    assert set(measure_reciprocity(recording)["trained"]) == {"encoder_self", "cross_on_source"}


def test_reciprocity_in_a_loop_over_pairs_of_words(store):
    recording = recorded(store, "transformer", "translation")
    network, judged = network_of(recording, "trained"), judged_samples(recording.spec.resolved)
    network.requires_grad_(False)
    gold = load_task(recording.spec.resolved).gold
    sums = Counter()
    for batch in equal_lengths(judged):
        head = network(batch).cross[1][0]
        n = batch.source.shape[1] - 1
        for row, i in enumerate(batch.indices.tolist()):
            step = {place: step for step, place in gold[i]}
            pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
            weight = {(a, b): head.attention[row, step[a], b].item() for a, b in pairs}
            mean = np.mean(list(weight.values()))
            sums["mutual"] += sum((weight[a, b] - mean) * (weight[b, a] - mean) for a, b in pairs)
            sums["own"] += sum((weight[pair] - mean) ** 2 for pair in pairs)
    found = measure_reciprocity(recording)["trained"]["cross"][1][0]
    assert found["weights"] == pytest.approx(sums["mutual"] / sums["own"], rel=1e-3)


def test_tied_maps_have_symmetric_scores_and_free_ones_do_not(store):
    tied = measure_reciprocity(recorded(store, "tied", "translation"))
    free = measure_reciprocity(recorded(store, "transformer", "translation"))
    for state in ("trained", "untrained"):
        for layer, other in zip(tied[state]["encoder_self"], free[state]["encoder_self"], strict=True):
            for head in layer:
                assert head["scores"] == pytest.approx(1)
                assert head["maps"] == pytest.approx(1)
                assert head["weights"] == pytest.approx(head["halved"], abs=1e-5) != 1
            assert all(abs(head["scores"]) < 0.9 for head in other)


def test_cross_attention_fed_with_one_sequence_is_self_attention(store):
    """The same maps and the same inputs on both sides: nothing tells the two apart."""
    network = network_of(recorded(store, "transformer", "translation"), "trained")
    inputs, allowed = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0)), torch.ones(1, 1, 6)
    cross, own = network.decoder[0].cross_attention, network.encoder[0].self_attention
    cross.load_state_dict(own.state_dict())
    for one, two in zip(*(a(inputs, a.answer(inputs), allowed.bool()) for a in (cross, own)), strict=True):
        one, two = (x if isinstance(x, torch.Tensor) else x.attention for x in (one, two))
        assert torch.equal(one, two)


def test_queries_and_keys_come_from_where_they_should(store):
    found = measure_sources(recorded(store, "transformer", "translation"))
    for layer in found["encoder_self"]:
        assert layer["queries"]["target"] == layer["keys"]["target"] == 0
        assert min(layer["queries"]["source"], layer["keys"]["source"]) > 0
    first, second = found["cross"]
    assert first["queries"]["source"] == first["keys"]["target"] == second["keys"]["target"] == 0
    assert min(first["queries"]["target"], first["keys"]["source"], second["queries"]["source"]) > 0
    assert found["decoder_self"][0]["queries"]["source"] == 0
    assert found["decoder_self"][1]["queries"]["source"] > 0
