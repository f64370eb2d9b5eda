"""One step in numbers against the network's own equations, on a tiny corpus of the reader's own kind."""

import math

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.config import override
from attnlib.experiments.measures.shown_pairs import measure_shown_pairs
from attnlib.experiments.one_step import PAIRS, PROFILES, WEIGHTS, compute, models
from attnlib.plotting.one_step import name_of
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.store import Store

SHOWN = (("A B C", "b a c"), ("C A", "a c"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    torch.set_num_threads(1)
    options = (("n_words", 3), ("min_length", 5), ("max_length", 6), ("n_train", 60), ("n_held_out", 20))
    settings = {"decoder": "bahdanau", "scoring": "additive", "bidirectional": True, "width": 6}
    looked_at = {"steps": 4, "looks": 2, "judged": 20, "shown": SHOWN}
    spec = RecipeSpec.of("recurrent_sequences", task="one_to_one", options=options, **settings, **looked_at)
    return Store(tmp_path_factory.mktemp("models")).recording(spec)


def test_the_step_is_score_softmax_and_context(recording):
    found = measure_shown_pairs(recording, pair=0, place=1)
    rows = found["worked"]
    assert [row["source"] for row in rows] == ["A", "B", "C", "<eos>"]
    largest = max(row["score"] for row in rows)
    total = sum(math.exp(row["score"] - largest) for row in rows)
    for row in rows:
        assert row["exponential"] == pytest.approx(math.exp(row["score"] - largest), rel=1e-5)
        assert row["attention"] == pytest.approx(row["exponential"] / total, rel=1e-5)
        place = rows.index(row)
        assert row["attention"] == pytest.approx(found["attention"][-1][0][1][place], rel=1e-5)
    chances = [row["probability"] for row in found["predicted"]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6


def test_every_look_has_rows_that_sum_to_one_over_its_own_words(recording):
    found = measure_shown_pairs(recording, pair=1, place=0)
    assert found["steps"] == [0, 2, 4]
    assert [len(source) for source, _ in found["pairs"]] == [4, 3]
    for look in found["attention"]:
        for (source, target), matrix in zip(found["pairs"], look, strict=True):
            assert [len(row) for row in matrix] == [len(source)] * len(target)
            assert [sum(row) for row in matrix] == pytest.approx([1] * len(target), abs=1e-5)


def test_the_weights_named_are_those_of_the_primers():
    assert [name_of(name) for name in WEIGHTS] == ["aime: love", "t': you", "chat: cat", "chat: the + cat"]
    assert len(PAIRS) == 3


def test_three_networks_are_asked_about_all_sentences():
    specs = models(PROFILES["quick"])
    assert [spec.seed for spec in specs] == [0, 1, 2]
    assert {spec.resolved.shown for spec in specs} == {PAIRS}


def test_nothing_measured_is_an_empty_result(tmp_path):
    values, tables = compute(PROFILES["quick"], Store(tmp_path, trains=False))
    assert values == {}
    assert set(tables) == {"worked", "predicted", "map", "learned"}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"network": "bahdanow"}, UnknownName, "did you mean 'bahdanau'"),
        ({"pair": 3}, BadInput, "there are 3, counted from 0"),
        ({"place": 20}, BadInput, "has places from 0"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)
