"""One step in numbers against the network's own equations, on a tiny corpus of the reader's own kind."""

import math

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from companion.results.config import override
from companion.runs import registry
from companion.runs.recipe import RecipeSpec
from companion.runs.sequence_course import shown_pairs
from companion.runs.store import Store
from notebooks.primer.one_step.experiment import PAIRS, PROFILES, TABLES, WEIGHTS, compute, models, summary
from notebooks.primer.one_step.measure import COORDINATES, measure_shown_pairs

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
        for entry in found["context"]:
            assert entry["weighted"][place] == pytest.approx(row["attention"] * entry["states"][place])
    assert len({entry["coordinate"] for entry in found["context"]}) == COORDINATES
    for entry in found["context"]:  # a reader can add it up
        assert sum(entry["weighted"]) == pytest.approx(entry["value"], abs=1e-6)
    chances = [row["probability"] for row in found["predicted"]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6


def test_the_context_in_numbers_is_that_of_the_trace(recording):
    network = registry.load("recurrent_sequences").recorded_network(recording)
    with torch.no_grad():
        trace = network(shown_pairs(recording.spec.resolved))
    context = trace.context[0, 1]
    found = measure_shown_pairs(recording, pair=0, place=1)["context"]
    for entry in found:
        assert entry["value"] == pytest.approx(float(context[entry["coordinate"]]))
        assert entry["states"] == pytest.approx(trace.encoder_states[0, :4, entry["coordinate"]].tolist())
    left_out = set(range(len(context))) - {entry["coordinate"] for entry in found}
    assert min(abs(entry["value"]) for entry in found) >= max(abs(float(context[i])) for i in left_out)


def row_with(place, weight, length=7):
    """One weight where it is wanted, and what is left over evenly on the others."""
    return [weight if t == place else (1 - weight) / (length - 1) for t in range(length)]


def network_with(on_love, on_you, on_cat):
    """What is measured of a network that attends so in the end, and to the last place alone at first."""
    first = [[row_with(6, 1.0)] * 4, [row_with(6, 1.0)] * 2]
    last = [
        [row_with(0, 1.0), row_with(2, on_you), row_with(1, on_love), row_with(3, 1.0)],
        [row_with(0, 1.0), row_with(1, on_cat)],
    ]
    words = [["w"] * 7] * 2
    return {
        "steps": [0, 10],
        "pairs": [[words[0], ["x"] * 4], [words[1], ["x"] * 2]],
        "attention": [first, last],
        "probability": [[[0.5] * 4, [0.5] * 2]] * 2,
        "worked": [{"source": "w", "score": 0.0, "exponential": 1.0, "attention": 0.5}] * 2,
        "context": [{"coordinate": 3, "value": 0.75, "states": [1.0, 0.5], "weighted": [0.5, 0.25]}],
        "predicted": [{"word": "x", "probability": 0.5}],
        "token_accuracy": on_love,
        "exact_match": 0.0,
    }


def test_what_the_claims_read_is_the_weight_at_the_last_look():
    points = [({"seed": 0}, network_with(0.9, 0.2, 0.7)), ({"seed": 1}, network_with(0.7, 0.1, 0.4))]
    values, tables = summary(points)
    weights = {name: found["value"] for name, found in values["weights"].items()}
    assert weights == pytest.approx(
        {
            "aime_on_love": 0.8,
            "t_on_you": 0.15,  # far under one half: a weight is not what is left of it
            "chat_on_cat": 0.55,
            "chat_on_cat_and_the": (0.7 + 0.3 / 6 + 0.4 + 0.6 / 6) / 2,
        }
    )
    assert {name: found["value"] for name, found in values["largest"].items()} == {
        "aime_on_love": 1, "t_on_you": 0.5, "chat_on_cat": 1, "chat_on_cat_and_the": 1
    }  # fmt: skip
    learned = {(row["weight"], row["step"]): row["value"] for row in tables["learned"]}
    assert learned["aime_on_love", 0] == 0
    assert learned["aime_on_love", 10] == pytest.approx(0.8)
    assert [(row["source_place"], row["weighted"], row["context"]) for row in tables["context"]] == [
        (0, 0.5, 0.75),
        (1, 0.25, 0.75),
    ]


def test_every_look_has_rows_that_sum_to_one_over_its_own_words(recording):
    found = measure_shown_pairs(recording, pair=1, place=0)
    assert found["steps"] == [0, 2, 4]
    assert [len(source) for source, _ in found["pairs"]] == [4, 3]
    for look in found["attention"]:
        for (source, target), matrix in zip(found["pairs"], look, strict=True):
            assert [len(row) for row in matrix] == [len(source)] * len(target)
            assert [sum(row) for row in matrix] == pytest.approx([1] * len(target), abs=1e-5)


def test_the_weights_named_are_those_of_the_primers():
    named = {}
    for name, (pair, place, sources) in WEIGHTS.items():
        source, target = (text.split() for text in PAIRS[pair])
        named[name] = (target[place], [source[t] for t in sources])
    assert named == {
        "aime_on_love": ("aime", ["love"]),
        "t_on_you": ("t'", ["you"]),
        "chat_on_cat": ("chat", ["cat"]),
        "chat_on_cat_and_the": ("chat", ["the", "cat"]),
    }
    assert {spec.resolved.shown for spec in models(PROFILES["quick"])} == {PAIRS}


def test_nothing_measured_is_an_empty_result(tmp_path):
    values, tables = compute(PROFILES["quick"], Store(tmp_path, trains=False))
    assert values == {}
    assert tables == {name: [] for name in TABLES}


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
