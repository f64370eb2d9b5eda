"""Figures on copying: a curve a network, and a page that says how many failed."""

import math

import pytest

from attnlib.plots.style import as_svg
from companion.results.result import Result
from notebooks.learn.permutation_copying.sentences import copying_sentences, outcomes_table
from notebooks.shared.copying_drawing import (
    KIND_COLOURS,
    courses,
    kind_name,
    knowledge,
    moved_attention,
    proxy_losses,
)

STEPS = (0, 10, 20)


def interval(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3}


def of_kind(failed):
    probes = {"probe_gain": interval(2.0), "probe_agreement": interval(0.4)}
    return {
        "n": 4,
        "failed": {"value": failed / 4, "low": 0.1, "high": 0.9, "n": 4},
        "steps_to_learn": interval(15.0),
        "never": failed,
        "followed": {"steps": 20},
        "uniform": probes | {"accuracy": interval(0.6)},
        "proxy": probes,
        "floor": 1.6,
        "ignorance": 2.0,
    }


@pytest.fixture
def result() -> Result:
    course = {
        "loss": 1.7,
        "accuracy": 0.25,
        "attention_accuracy": 0.5,
        "says_shown": 0.2,
        "says_left_out": 0.7,
        "probe_right": 0.3,
        "probe_elsewhere": 0.1,
    }
    names = [
        {"kind": kind, "network": network, "seed": seed}
        for kind in ("permutation", "sample")
        for network in ("learned", "uniform", "proxy")
        for seed in range(2)
    ]
    rows = [name | {"steps": step} | course for name in names for step in STEPS]
    outcomes = [
        name | {"accuracy": 0.2 + name["seed"] / 2, "attention_accuracy": 0.9, "steps_to_learn": None}
        for name in names
    ]
    values = {"sample": of_kind(0), "permutation": of_kind(3)}  # as JSON sorts them, or not
    config = {"kind": ["permutation", "sample"], "length": 6, "steps": 20, "seeds": 4}
    tables = {"courses": rows, "outcomes": outcomes}
    return Result("permutation_copying", "quick", config, values, tables, {}, {})


def lines(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata()) == len(STEPS)]


def test_every_network_has_a_curve_in_the_colour_of_its_kind(result):
    accuracy, attention = courses(result).axes
    assert [line.get_color() for line in lines(accuracy)] == 2 * [KIND_COLOURS["sample"]] + 2 * [
        KIND_COLOURS["permutation"]
    ]
    assert list(lines(accuracy)[0].get_ydata()) == [0.25] * 3
    assert list(lines(attention)[0].get_ydata()) == [0.5] * 3
    assert {text.get_text() for text in accuracy.get_legend().get_texts()} == {
        "6 of 9 words",
        "permutations of 6 words",
    }


def test_panels_stand_in_the_order_of_the_settings(result):
    for figure in (knowledge(result, "uniform"), proxy_losses(result)):
        assert [axes.get_title() for axes in figure.axes] == ["permutations of 6 words", "6 of 9 words"]


def test_the_probe_is_drawn_at_the_right_word_and_elsewhere(result):
    (panel, _) = knowledge(result, "proxy").axes
    assert sorted({line.get_ydata()[0] for line in lines(panel)}) == [0.1, 0.3]


def test_a_word_shown_and_one_left_out_are_two_lines_a_network(result):
    panel = moved_attention(result).axes[0]
    shown, left_out = (
        {line.get_color() for line in lines(panel) if line.get_ydata()[0] == level} for level in (0.2, 0.7)
    )
    assert len(lines(panel)) == 4
    assert len(shown) == len(left_out) == 1
    assert shown != left_out


def test_what_is_known_without_single_words_is_labelled(result):
    """Of permutations the words are as many as the sentence is long."""
    permutation, sample = knowledge(result, "uniform").axes
    levels = [
        {line.get_label(): line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() != "-"}
        for axes in (permutation, sample)
    ]
    assert (
        levels == [{"1/length": pytest.approx(math.exp(-1.6)), "1/words": pytest.approx(math.exp(-2.0))}] * 2
    )
    result.values["permutation"]["ignorance"] = 1.6
    figure = knowledge(result, "uniform")
    assert [line.get_label() for line in figure.axes[0].get_lines() if line.get_linestyle() != "-"] == [
        "1/length"
    ]
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"1/length", "1/words"}


def test_updates_after_those_judged_are_drawn_lightly_where_there_are_any(result):
    assert {len(line.get_xdata()) for line in lines(courses(result).axes[0])} == {3}
    result.config["steps"] = 10
    result.values["permutation"]["followed"] = {"steps": 20}
    accuracy = courses(result).axes[0]
    drawn = [(line.get_xdata(), line.get_alpha()) for line in accuracy.get_lines() if line.get_alpha()]
    early = [alpha for steps, alpha in drawn if list(steps) == [0, 10]]
    late = [alpha for steps, alpha in drawn if list(steps) == [10, 20]]
    assert len(early) == len(late) == 4
    assert max(late) < min(early)
    assert len(accuracy.get_legend().get_texts()) == 2
    knowing = knowledge(result, "uniform").axes[0].get_lines()
    assert {max(line.get_xdata()) for line in knowing if line.get_linestyle() == "-"} == {10}


def test_equal_results_are_equal_bytes(result):
    assert as_svg(courses(result)) == as_svg(courses(result))


def test_the_table_and_the_sentences_count_failures(result):
    table = outcomes_table(result)
    assert list(table.index) == ["permutations of 6 words", "6 of 9 words"]
    assert list(table["failed"]) == ["3 of 4", "0 of 4"]
    assert list(table["accuracy then"]) == ["0.20 to 0.70"] * 2
    first, second = copying_sentences(result).splitlines()
    assert first.startswith("* Permutations of 6 words: 3 of 4 networks are below 95 %")
    assert "2.00 [1.90, 2.10] times" in second


def test_what_is_not_run_is_a_dash_and_no_sentence(result):
    result.values["sample"]["failed"] = {"value": None, "low": None, "high": None, "n": 0}
    assert outcomes_table(result).loc["6 of 9 words", "failed"] == "–"
    assert len(copying_sentences(result).splitlines()) == 1


def test_a_mixture_has_a_name_too():
    assert kind_name("mixture", 40) == "either of two sets of 40"
