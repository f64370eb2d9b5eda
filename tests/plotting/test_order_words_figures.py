"""The figures on order words: every bar with its interval, words along the axes, sentences with numbers."""

import pytest

from attnlib.companion.sentences.order_words import (
    order_sentences,
    outcome_sentences,
    prediction_sentences,
    swap_table,
)
from attnlib.experiments.measures.flip_routes import PATCHES, ROUTES
from attnlib.experiments.measures.word_swap import PREDICTIONS
from attnlib.experiments.result import Result
from attnlib.plotting.order_words import (
    PATCH_BARS,
    PREDICTION_BARS,
    ROUTE_BARS,
    example,
    memory,
    patches,
    predictions,
    routes,
)


def interval(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3}


@pytest.fixture
def result() -> Result:
    own = {
        "kind": "order",
        "pairs": 4,
        "exact": {run: interval(0.9) for run in ("first", "second")},
        "change": {rows: {"flips": interval(0.7), "variation": interval(0.6)} for rows in ("own", "fork")},
        "routes": {
            rows: {
                name: interval(0.1 * i) for i, name in enumerate((*ROUTES, "input", "residual", "context"))
            }
            for rows in ("fork", "own")
        },
        "patches": {rows: {name: {"share": interval(0.5)} for name in PATCHES} for rows in ("fork", "own")},
        "predictions": {
            "changed": {
                name: {score: interval(0.4) for score in ("similarity", "argmax", "gain")}
                for name in PREDICTIONS
            }
        },
    }
    content = {name: own[name] for name in ("pairs", "exact", "change", "predictions")} | {"kind": "content"}
    kinds = {kind: {"join": own, "verb": content} for kind in ("AED", "AO")}
    named = {"task": "scan", "kind": "AED", "swap": "join"}
    rows = [
        named | {"run": run, "position": 1, "target_position": s, "predicted": word,
                 "source": f"run {join} walk", "attention": "0.1 0.2 0.7"}
        for run, join, words in (("first", "and", "I_RUN I_WALK"), ("second", "after", "I_WALK I_RUN <eos>"))
        for s, word in enumerate(words.split())
    ]  # fmt: skip
    followed = [
        named | {"series": series, "place": place} | interval(0.5)
        for series in ("encoder_input", "encoder_residual", "decoder")
        for place in range(3)
    ]
    config = {"task": ["scan"], "seeds": 3}
    return Result(
        "order_words", "quick", config, {"scan": kinds}, {"examples": rows, "memory": followed}, {}, {}
    )


def test_every_bar_has_its_interval_and_a_name(result):
    for figure, panels, bars in (
        (routes(result), 1, ROUTE_BARS),
        (patches(result), 1, PATCH_BARS),
        (predictions(result, "scan"), 2, PREDICTION_BARS),
    ):
        shown = [axes for axes in figure.get_axes() if axes.get_visible()]
        assert len(shown) == panels
        for axes in shown:
            assert [text.get_text() for text in axes.get_xticklabels()] == [label for _, label, _ in bars]
            assert len(axes.patches) == 2 * len(bars)
            assert len(axes.get_lines()) == 2 * len(bars) + 1  # and the line at zero
        assert shown[0].get_ylabel()


def test_a_route_that_is_undefined_leaves_a_gap(result):
    undefined = {"value": None, "low": None, "high": None, "n": 0}
    join = result.values["scan"]["AO"]["join"]
    result.values["scan"]["AO"] = {"join": join | {"routes": {"fork": dict.fromkeys(ROUTES, undefined)}}}
    assert len(routes(result).get_axes()[0].patches) == len(ROUTE_BARS)


def test_the_example_names_both_words_and_compares_the_steps_that_both_have(result):
    axes = example(result, "scan", "AED", "join").get_axes()
    assert [text.get_text() for text in axes[2].get_xticklabels()] == ["run", "and → after", "walk"]
    assert [text.get_text() for text in axes[2].get_yticklabels()] == ["run → walk", "walk → run"]
    assert [text.get_text() for text in axes[1].get_yticklabels()] == ["walk", "run", "end"]


def test_memory_is_drawn_from_nought(result):
    axes = memory(result).get_axes()
    assert axes[0].get_ylim()[0] == 0
    assert all(len(ax.collections) == 1 for ax in axes)  # the band of intervals


def test_sentences_say_the_route_that_carries_most(result):
    sentences = order_sentences(result)
    assert "SCAN, AED, and ↔ after" in sentences
    assert "the residuals of the other words' encoder states (0.40 ± 0.10)" in sentences
    assert "verb" not in sentences
    assert "0.40 ± 0.10 with χ swapped" in prediction_sentences(result)
    table = swap_table(result)
    assert len(table) == 4
    assert table.loc["SCAN, AED, verb ↔ verb", "χ routes"] == "–"


def one_network(value):
    return {"value": value, "low": None, "high": None, "n": 1}


def test_a_number_of_one_network_is_a_dot_and_says_so(result):
    join = result.values["scan"]["AO"]["join"]
    alone = {
        name: {score: one_network(0.7) for score in ("similarity", "argmax", "gain")} for name in PREDICTIONS
    }
    result.values["scan"]["AO"] = {
        **result.values["scan"]["AO"],
        "join": join | {"predictions": {"changed": alone}},
    }
    axes = predictions(result, "scan").get_axes()[0]
    assert len(axes.patches) == len(PREDICTION_BARS)
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert len(dots) == len(PREDICTION_BARS)
    assert axes.get_title().endswith("\nAO: one network only")
    assert "and ↔ after (one network only): 0.70 without a change" in prediction_sentences(result)
    assert swap_table(result).loc["SCAN, AO, and ↔ after", "gain of χ"] == "0.70 (n = 1)"


def test_fewer_networks_than_the_rest_are_counted_above_the_panel(result):
    join = result.values["scan"]["AO"]["join"]
    share = interval(0.5) | {"n": 2}
    few = {rows: {name: {"share": share} for name in PATCHES} for rows in ("fork", "own")}
    result.values["scan"]["AO"] = {"join": join | {"patches": few}}
    assert patches(result).get_axes()[0].get_title().endswith("AO: 2 of 3 networks")
    assert patches(result).get_axes()[0].get_title().count("AED") == 0


def test_routes_whose_intervals_overlap_are_not_ranked(result):
    routes_found = result.values["scan"]["AED"]["join"]["routes"]["fork"]
    routes_found["encoder_residual"] = interval(0.35)
    text = order_sentences(result)
    assert (
        "which route carries most cannot be told: the residuals of the other words' encoder states (0.40"
        in text
    )
    assert "or the residual of the swapped word's own state (0.35 ± 0.10)" in text


def test_outcomes_are_held_against_the_numbers(result):
    join = result.values["scan"]["AED"]["join"]
    fork = join["routes"]["fork"] | {"input": interval(0.2)}
    start = {"fork": join["patches"]["fork"] | {"S": {"share": interval(0.05)}}}
    order = join | {"routes": {"fork": fork}, "patches": start}
    kept = {"fork": join["patches"]["fork"] | {"S": {"share": interval(0.7)}}}
    content = result.values["scan"]["AED"]["verb"] | {"change": {"own": {"flips": interval(0.1)}}}
    count = order | {"kind": "count", "patches": kept}
    result.values["scan"]["AED"] = {"join": order, "times": count, "verb": content}
    lines = outcome_sentences(result).splitlines()
    assert "they carry less than half for and ↔ after, SCAN (0.20 ± 0.10)." in lines[0]
    assert "worse than both mean effects do in 0 of 1 cases" in lines[0]
    assert "brings about 0.50 ± 0.10 of the flip at most (and ↔ after, SCAN)" in lines[0]
    assert "0.05 ± 0.10 of the flip at the fork at most where words change places" in lines[1]
    assert lines[1].endswith("twice ↔ thrice, SCAN (0.70 ± 0.10). There the start keeps the count.")
    assert lines[2].endswith("0.10 ± 0.10 against 0.70 ± 0.10 (SCAN). In no task do they move as many.")
    assert len(lines) == 3  # no modifiers in SCAN: nothing to say of AO


def test_what_networks_without_recurrence_predict_comes_with_how_well_they_do(result):
    modifier = result.values["scan"]["AO"]["join"]
    result.values["reordering_50"] = {"AO": {"modifier": modifier}}
    result.config["task"] = ["reordering_50"]
    assert outcome_sentences(result).endswith(
        "reordering 50 %, gain 0.40 ± 0.10, by networks that get 0.90 ± 0.10 of the partners right."
    )
