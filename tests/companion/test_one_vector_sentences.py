"""Sentences of the chapter on one vector: every difference says its own sign and whether it is one."""

import pytest

from attnlib.companion.sentences import one_vector as said
from attnlib.experiments.result import Result

NONE = {"value": 0.0, "low": 0.0, "high": 0.0}
GAIN, LOSS = {"value": 0.2, "low": 0.1, "high": 0.3}, {"value": -0.2, "low": -0.3, "high": -0.1}
WIDE = {"value": 0.1, "low": -0.1, "high": 0.3}


def result_of(length=NONE, exact=NONE, bleu=NONE, early=NONE) -> Result:
    found = {
        "length_guessed": 0.5, "length_over_guess": length, "after_error": GAIN, "early_over_late": early,
        "beam_gain": {"exact_match": exact, "bleu": bleu},
    }  # fmt: skip
    rows = [
        {"task": "multi30k_en_fr", "network": "cho", "quantity": "share", "place": place}
        | {"value": value, "low": value, "high": value}
        for place, value in ((1, 0.25), (2, 0.75), (3, 0.5))
    ]
    values = {"multi30k_en_fr": {"cho": found}}
    return Result("one_vector", "quick", {"task": ["multi30k_en_fr"]}, values, {"damage": rows}, {}, {})


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (GAIN, "0.20 [0.10, 0.30] more often."),
        (LOSS, "0.20 [0.10, 0.30] less often."),
        (WIDE, "as often, as far as can be told (a difference of 0.10 [−0.10, 0.30])."),
        (NONE, "0.00 more often."),
        ({"value": -0.2, "low": None, "high": None}, "0.20 less often."),
    ],
)
def test_a_loss_is_no_negative_gain_and_an_interval_around_none_says_so(length, words):
    assert said.length_sentences(result_of(length=length)).endswith(words)


def test_sentences_and_bleu_of_beam_search_are_judged_apart():
    text = said.beam_sentence(result_of(exact=WIDE, bleu=GAIN))
    assert "[−0.10, 0.30] of the sentences (not to be told from none) and 0.20 [0.10, 0.30] BLEU." in text


def test_names_keep_their_capitals_and_the_worst_place_is_the_one_of_the_largest_share():
    text = said.growth_sentences(result_of(early=LOSS))
    assert text.startswith("* **Multi30k En–Fr, Cho et al.**")
    assert "An error in the first third of the places spoils a smaller share" in text
    assert text.endswith("The largest share is spoilt after place 2 of 3, 0.75 [0.75, 0.75].")


@pytest.mark.parametrize(
    ("early", "said_so"), [(GAIN, "it has not"), (LOSS, "it has"), (WIDE, "it cannot be")]
)
def test_a_falsifier_has_happened_where_early_errors_spoil_less(early, said_so):
    assert f"Cho et al. on Multi30k En–Fr, {said_so} " in said.early_outcomes(result_of(early=early))
