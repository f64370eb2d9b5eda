"""What the chapter on scoring functions says of its effects: by intervals, and of which scores."""

import pytest

from attnlib.companion.sentences.scoring_functions import order_outcome, short_of_note
from attnlib.companion.sentences.who_asks import asking_sentences, effect_sentence
from attnlib.experiments.result import Result
from attnlib.experiments.scoring_settings import BEFORE

TASKS = ("reordering", "number_words")


def interval(value, half=0.1):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


def kind(right, reached=3):
    return {"exact_match": interval(right), "updates": interval(100.0), "reached": reached}


@pytest.fixture
def result() -> Result:
    effect = {name: interval(0.0) for name in ("token_accuracy", "exact_match", "updates")}
    names = ("scaled_dot", "general", "concat", "additive", "previous_state")
    values = {
        task: {
            "luong": {"one": {"dot": kind(0.9), "general": kind(0.9)}},
            BEFORE: {"one": {"dot": kind(0.4), "general": kind(0.8)}},
            "effects": {name: dict(effect) for name in names},
            "who_asks": {
                score: {name: {"weight_on_gold": interval(0.7)} for name in ("luong", BEFORE)}
                for score in ("dot", "general")
            },
        }
        for task in TASKS
    }
    return Result("scoring_functions", "quick", {"task": list(TASKS)}, values, {}, {}, {})


def test_scores_that_lose_by_the_other_state_asking_are_named(result):
    whole = (
        "lie apart, with dot in reordering and dot in number words; everywhere else the two intervals meet."
    )
    assert effect_sentence(result).endswith(whole)
    for task in TASKS:
        result.values[task][BEFORE]["one"]["dot"] = kind(0.8)
    assert effect_sentence(result).endswith(
        "With no score do the intervals of sentences without a fault lie apart."
    )


def test_what_is_rounding_alone_is_given_as_a_power_of_ten(result):
    scores = {"luong": (0.0, 0.7), "bahdanau": (0.7, 2.4e-7)}
    for name, (present, previous) in scores.items():
        result.values["reordering"]["who_asks"]["dot"].setdefault(name, {}).update(
            present=interval(present, 0.0), previous=interval(previous, 0.0)
        )
    first = asking_sentences(result).splitlines()[0]
    assert "are off by 0 of their standard deviation" in first
    assert first.endswith("it is 0.70 [0.70, 0.70] and less than $10^{-6}$.")


def test_an_order_turns_round_only_where_intervals_are_clear_on_both_sides(result):
    first, second = (result.values[task]["effects"]["general"] for task in TASKS)
    assert order_outcome(result).endswith("no score turns round by more than its interval.")
    first["exact_match"] = interval(0.3)
    assert order_outcome(result).endswith("turned round in none: general (sentences without a fault).")
    second["exact_match"] = interval(-0.3)
    assert order_outcome(result).endswith(
        "it has happened, held against dot, with general (sentences without a fault)."
    )
    result.config["task"] = ["reordering"]
    assert "One task alone" in order_outcome(result)


def test_a_label_is_explained_only_where_a_network_carries_it(result):
    assert short_of_note(result, "reordering") == ""
    result.values["reordering"]["luong"]["one"]["dot"]["reached"] = 2
    assert "“2 of 3”" in short_of_note(result, "reordering")
