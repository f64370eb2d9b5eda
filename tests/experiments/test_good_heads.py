"""One good head among bad ones: failures in pairs, which head attends, and what is said of both."""

import pytest

from attnlib.companion.sentences.multi_head import good_head_sentences
from attnlib.experiments.copying_courses import outcome
from attnlib.experiments.good_heads import failures_apart, good_head
from attnlib.experiments.result import Result


def learned(*weights):
    looks = {"steps": [0, 10], "accuracy": [0.1, 0.97], "attention_accuracy": [0.0, 1.0]}
    return looks | {"head_right": [[0.5] * len(weights), list(weights)]}


def points(*courses):
    return [({"seed": seed}, course) for seed, course in enumerate(courses)]


def ends(*accuracies):
    course = {"steps": [0, 10], "head_right": [[1.0, 0.0]] * 2, "attention_accuracy": [0.0, 1.0]}
    return points(*(course | {"accuracy": [0.97, end]} for end in accuracies))


def told(all_bad, one_good):
    values = {"all_bad": outcome(all_bad, 10), "one_good": outcome(one_good, 10)}
    values["good_head"] = good_head(one_good, ends(0.99), 10)
    values["all_bad_less_one_good"] = failures_apart(all_bad, one_good)
    config = {"heads": 2, "length": 4, "steps": 10}
    return good_head_sentences(Result("multi_head", "quick", config, values, {}, {}, {}))


def test_which_head_attends_is_read_where_the_network_has_learned():
    failed_in_the_end = learned(0.1, 0.9, 0.2) | {"accuracy": [0.97, 0.5]}
    networks = points(learned(0.9, 0.2, 0.1), learned(0.3, 0.2, 0.8), failed_in_the_end)
    found = good_head(networks, ends(0.99, 0.5), 10)
    assert (found["alone"]["n"], found["alone"]["failed"]["value"]) == (2, 0.5)
    assert (found["n"], found["wins"]["value"], found["wins"]["n"]) == (2, 0.5, 2)
    assert found["weight"]["value"] == pytest.approx(0.6)
    assert found["best_other"]["value"] == pytest.approx(0.5)
    assert good_head([], [], 10)["wins"] == {"value": None, "low": None, "high": None, "n": 0}


def test_failures_are_those_of_the_last_look_in_pairs_of_one_seed():
    found = failures_apart(ends(0.5, 0.6, 0.99, 0.94), ends(0.96, 0.5, 0.3))
    assert (found["value"], found["n"]) == (0, 3)  # 1, 0 and −1; the fourth has no partner
    assert failures_apart(ends(0.5), []) == {"value": None, "low": None, "high": None, "n": 0}


@pytest.mark.parametrize(
    ("wins", "words"),
    [(6, "It is the good head that comes to attend"), (0, "one of the bad heads"), (2, "is not shown")],
)
def test_what_is_said_of_the_good_head_follows_the_interval(wins, words):
    one_good = points(*[learned(0.9, 0.2)] * wins, *[learned(0.2, 0.9)] * (6 - wins))
    assert f"in {wins} of the 6 networks" in told(ends(0.5), one_good)
    assert words in told(ends(0.5), one_good)


def test_heads_below_uniform_attention_do_not_attend():
    """Where all are driven away from a word, the one that is least so wins nothing."""
    words = "No head comes to attend to it: at uniform attention each gives it 0.2500. These"
    assert words in told(ends(0.5), points(*[learned(0.02, 0.01)] * 6))
    assert words not in told(ends(0.5), points(*[learned(0.3, 0.01)] * 6))


@pytest.mark.parametrize(
    ("all_bad", "one_good", "words"),
    [
        ([0.5] * 4, [0.99] * 4, "One good head makes failures rarer."),
        ([0.99] * 4, [0.5] * 4, "One good head makes failures more frequent."),
        ([0.5] * 4, [0.99, 0.99, 0.5, 0.5], "cannot be told"),
    ],
)
def test_what_is_said_of_failures_follows_the_interval(all_bad, one_good, words):
    assert words in told(ends(*all_bad), ends(*one_good)).splitlines()[0]


def test_a_good_head_is_asked_of_no_network_where_none_learned():
    assert told([], ends(0.5)).endswith("so none tells which head comes to attend.")
    assert told(ends(0.5), []) == ""
