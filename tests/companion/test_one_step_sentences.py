"""Sentences of the chapter on one step: they say what the network is, what it cannot read, and add up."""

import pytest

from attnlib.companion.sentences import one_step as said
from attnlib.experiments.config import plain
from attnlib.experiments.one_step import NETWORKS, PAIRS, Config, _map
from attnlib.experiments.result import Result

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
