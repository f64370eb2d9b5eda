"""The figures on order words: every bar with its interval, words along the axes, sentences with numbers."""

import pytest

from attnlib.companion.order_words_sentences import order_sentences, prediction_sentences, swap_table
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
