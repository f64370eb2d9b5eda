"""Memory, readout and capacity as pictures and sentences, from a small result."""

import numpy as np
import pytest

from attnlib.companion.sentences.without_attention import (
    capacity_sentences,
    length_table,
    lengths_of,
    memory_sentences,
    outcome_sentences,
    readout_sentences,
)
from attnlib.experiments.measures.swap import WAYS
from attnlib.experiments.result import Result
from attnlib.plotting.without_attention import capacity, exchanged_words, memory_by_age, words_in_decoder

LENGTHS = (2, 3)
KINDS = ("VED", "VED_less", "AED")


def interval(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


def found(accuracy):
    readout = {"on_time": interval(0.9), "elsewhere": interval(0.1), "in_turn": interval(1.0)}
    names = ("fitted", "held_out", "first", "last", "order")
    return {
        "token_accuracy": interval(accuracy),
        "exact_match": interval(0.2),
        "memory": dict.fromkeys(names, interval(0.3)),
        "cancel": interval(-0.8),
        **dict.fromkeys(WAYS, readout),
    }


@pytest.fixture
def result() -> Result:
    values, tables = {}, {"accuracy": [], "memory": [], "decoder": [], "readout": []}
    for kind in KINDS:
        values[kind] = {f"length_{n}": found(1 / n) for n in LENGTHS}
        values[kind] |= {"shortest": found(1 / 2), "longest": found(1 / 3)}
        for n in LENGTHS:
            name = {"kind": kind, "length": n, "seeds": 3}
            tables["accuracy"] += [name | {"position": i} | interval(0.5) for i in range(n + 1)]
            tables["memory"] += [name | {"position": i} | interval(0.25) for i in range(n)]
            tables["decoder"] += [
                name | {"step": s, "position": t, "source": 0.1, "read": 0.2, "own": 0.3}
                for s, t in np.ndindex(n + 1, n)
            ]
            tables["readout"] += [
                name
                | {
                    "way": way,
                    "position": t,
                    "step": s,
                    "margin": 1.0,
                    "variation": 0.5,
                    "flip": float(s == t),
                }
                for way in WAYS
                for t, s in np.ndindex(n, n + 1)
            ]
    return Result("without_attention", "quick", {"length": list(LENGTHS), "words": 4, "less": 0.5},
                  values, tables, {}, {})  # fmt: skip


def test_memory_has_a_panel_a_length_and_intervals(result):
    axes = memory_by_age(result).get_axes()
    assert [a.get_title() for a in axes] == ["2 words", "3 words"]
    assert axes[0].get_xlabel() == "source position t"
    bars = [line for line in axes[1].get_lines() if len(set(line.get_xdata())) == 1]
    assert len(bars) == 2 * 3  # an interval for each position of VED and AED


def test_exchanged_words_stand_on_the_diagonal(result):
    axes = exchanged_words(result, 2).get_axes()[0]
    (image,) = axes.get_images()
    assert np.array_equal(image.get_array(), np.eye(3, 2))  # steps down, source positions across
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "end"]
    assert axes.get_ylabel() == "predicted at step s"


def test_words_that_are_not_read_yet_are_blank(result):
    own, source, read = (
        axes.get_images()[0].get_array() for axes in words_in_decoder(result, 3).get_axes()[:3]
    )
    assert own[0, 2] == pytest.approx(0.3)
    assert source[0, 2] == pytest.approx(0.1)
    blank = np.isnan(np.ma.filled(read, np.nan))
    assert np.array_equal(blank, np.triu(np.ones((4, 3), dtype=bool)))


def test_capacity_has_chance_and_intervals(result):
    left, right = capacity(result).get_axes()
    assert left.get_xlabel() == "words in the sentence"
    assert {tuple(line.get_ydata()) for line in left.get_lines()} >= {(0.25, 0.25)}
    assert {"2 words", "3 words", "chance"} == {text.get_text() for text in right.texts}


def test_a_kind_that_is_not_measured_is_left_out(result):
    for table in result.tables.values():
        table[:] = [record for record in table if record["kind"] != "AED"]
    del result.values["AED"]
    assert len(exchanged_words(result, 2).get_axes()) == 3  # two panels and the scale
    assert len(capacity(result).get_axes()) == 2
    assert list(length_table(result).index) == [
        "VED, 2 words", "VED, 3 words", "VED, less training, 2 words", "VED, less training, 3 words"
    ]  # fmt: skip


def test_sentences_come_from_the_numbers(result):
    assert lengths_of(result) == [2, 3]
    assert "with 2 words the sum of unrolled components explains 0.30 [0.25, 0.35]" in memory_sentences(
        result
    )
    assert "−0.80 [−0.85, −0.75] in VED" in readout_sentences(result)
    assert "3 words: 0.33" in capacity_sentences(result)


def test_outcomes_are_told_by_intervals(result):
    text = outcome_sentences(result)
    assert "Effects off the diagonal do not grow with length" in text
    assert "Longer training" not in text, "both trainings are alike"
    assert "explains the last state badly" not in text, "no length is copied well"
    ved, less = result.values["VED"], result.values["VED_less"]
    ved["length_2"]["token_accuracy"] = less["length_2"]["token_accuracy"] = interval(0.95)
    ved["length_3"]["token_accuracy"] = interval(0.8)
    less["length_3"]["token_accuracy"] = interval(0.6)
    ved["length_3"]["read_too"] = {"elsewhere": interval(0.3)}
    assert outcome_sentences(result).splitlines() == [
        "* A sum that explains the last state badly where the network copies well has happened: the lowest "
        "R² is 0.30 [0.25, 0.35], at 2 words.",
        "* Effects off the diagonal have begun to show in long sentences: when the new word is read too, "
        "other steps move by 0.10 [0.05, 0.15] with 2 words and by 0.30 [0.25, 0.35] with 3.",
        "* In AED the exchange is said on time in at most 0.90 [0.85, 0.95] of sentences.",
        "* Longer training lifts long sentences, as far as it has been tried: 2 times the updates bring 3 "
        "words from 0.60 [0.55, 0.65] to 0.80 [0.75, 0.85]. How far room sets the limit, and how far "
        "training, is open.",
    ]
    del result.values["AED"]
    assert "In AED" not in outcome_sentences(result)
