"""One step in numbers against the network's own equations, on a tiny corpus of the reader's own kind."""

import math

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from companion.results.config import override, plain
from companion.results.result import Result
from companion.runs import registry
from companion.runs.recipe import RecipeSpec
from companion.runs.sequence_course import shown_pairs
from companion.runs.store import Store
from notebooks.primer.one_step import sentences as said
from notebooks.primer.one_step.drawing import name_of
from notebooks.primer.one_step.experiment import (
    NETWORKS,
    PAIRS,
    PROFILES,
    TABLES,
    WEIGHTS,
    Config,
    _map,
    compute,
    models,
    summary,
)
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


def test_the_paper_profile_has_room_for_the_words_of_the_example():
    # With 60,000 pairs of at most 12 words "mat" is the 3,446th word of the source.
    assert PROFILES["paper"].max_words >= 3_446
    assert (PROFILES["paper"].n_train, PROFILES["paper"].max_length) == (60_000, 12)


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


# Sentences of the chapter on one step: they say what the network is, what it cannot read, and add up.

WORDS = [  # (weight, state at coordinate 5) by source word
    ("the", 0.25, 0.5), ("cat", 0.5, -0.5), ("sat", 0.25, 0.25), ("on", 0.0, 1.0),
    ("the", 0.0, 1.0), ("mat", 0.0, 1.0), (".", 0.0, 1.0), ("<eos>", 0.0, 1.0),
]  # fmt: skip


def result_of(network="bahdanau", place=1, unknown=("mat",)) -> Result:
    words = [
        [["<unk>" if word in unknown else word for word in text.split()] + ["<eos>"] for text in pair]
        for pair in PAIRS
    ]
    nothing = [[[0.0] * len(source) for _ in target] for source, target in words]
    chances = [[0.5] * len(target) for _, target in words]
    measured = {"steps": [0], "pairs": words, "attention": [nothing], "probability": [chances]}
    tables = {
        "map": list(_map(measured)),
        "worked": [
            {"source": word, "score": 0.0, "exponential": 2 * weight, "attention": weight}
            for word, weight, _ in WORDS
        ],
        "context": [
            {"coordinate": 5, "context": -0.0625, "source_place": t, "source": word, "state": state}
            | {"weighted": weight * state}
            for t, (word, weight, state) in enumerate(WORDS)
        ],
        "predicted": [{"word": "chat", "probability": 0.5}],
    }
    config = Config(network=network, place=place, n_train=6_400, steps=200)
    return Result("one_step", "quick", plain(config), {}, tables, {}, {})


def everything(result: Result) -> str:
    sentences = (said.network_sentence, said.asking_sentence, said.score_sentence, said.word_sentence,
                 said.alternative_sentence)  # fmt: skip
    return "\n".join(sentence(result) for sentence in sentences)


def test_bahdanaus_network_is_told_as_it_is():
    text = everything(result_of())
    assert "Bahdanau et al. 2015. Its encoder reads in both directions" in text
    assert r"v^\top \tanh(W s + U h_t)" in text
    assert "made before the last word, *le*, was read" in text
    assert "`-p network=luong`" in text
    assert "about 2.0 times" in text  # 200 updates of 64 pairs, of 6,400


def test_luongs_network_is_not_told_as_bahdanaus():
    text = everything(result_of("luong"))
    for wrong in ("Bahdanau", "both directions", r"h_t)", "network=luong"):
        assert wrong not in text
    assert r"s^\top W h_t" in text
    assert "2 layers" in text
    assert "has read the last word, *le*, before it asks" in text
    assert r"m = \tanh(W_c [c ; s])" in text


@pytest.mark.parametrize("network", NETWORKS)
def test_at_the_first_word_no_word_was_written(network):
    result = result_of(network, place=0)
    assert "nothing yet" in said.step_in_words(result)
    assert "*" not in said.asking_sentence(result)
    assert "⟨end⟩" in said.step_in_words(result_of(network, place=9))


def test_words_that_the_network_cannot_read_are_named():
    text = said.step_in_words(result_of(unknown=("mat", "assis", "tapis")))
    assert "of the source *mat* (it reads `the cat sat on the <unk> .`)" in text
    assert "of the translation *assis* and *tapis* (it reads `le chat s' est <unk> sur le <unk> .`)" in text
    assert said.step_in_words(result_of(unknown=())).endswith("The network knows all these words.")


def test_the_context_can_be_added_up():
    result = result_of()
    table = said.context_table(result)
    *parts, total = (float(cell.replace("−", "-")) for cell in table["coordinate 5"])
    assert sum(parts) == pytest.approx(total)
    assert total == pytest.approx(-0.0625, abs=1e-4)
    assert list(table.index)[:2] == ["1. the", "2. cat"]
    text = said.context_sentence(result)
    assert "state of `cat`, counted from 0, is −0.5000; times its weight, 0.5000, that is −0.2500" in text


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (1.0, "all of 3. Of the last point, it has not happened."),
        (0.0, "none of 3. Of the last point, it has not happened."),
        (0.3333333, "1 of 3. Of the last point, it has happened at t': you."),
    ],
)
def test_seeds_differ_where_some_look_first_at_the_named_word(share, told):
    result = result_of()
    result.values.update(token_accuracy={"n": 3}, largest={"t_on_you": {"value": share}})
    assert said.seeds_sentence(result).endswith(told)
    result.values["token_accuracy"]["n"] = 1
    assert said.seeds_sentence(result) == "One network alone cannot tell."
