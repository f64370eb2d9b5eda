"""The figures and sentences on Transformers say what their result says, and survive what is missing."""

from dataclasses import replace

import pytest
import torch

from attnlib.companion.sentences.transformer_heads import (
    anchored_sentences,
    construction_table,
    content_sentences,
    correlation_sentences,
    input_sentence,
    layer_sentences,
    layer_table,
    quality_table,
    state_table,
    task_sentences,
)
from attnlib.experiments.config import plain
from attnlib.experiments.result import Result
from attnlib.experiments.transformer_heads import Config, compute
from attnlib.plotting.style import as_svg
from attnlib.plotting.transformer_heads import (
    heads_against_typicality,
    rebuilt_by_layer,
    repeated_words,
    shares_by_layer,
)
from attnlib.training.store import Store

FIGURES = (heads_against_typicality, rebuilt_by_layer, repeated_words, shares_by_layer)
SENTENCES = (anchored_sentences, content_sentences, correlation_sentences, input_sentence, layer_sentences,
             task_sentences)  # fmt: skip
TINY = Config(
    positions=("sinusoidal", "relative"), anchored=("relative",), seeds=2, n_train=100, judged=40,
    fit_samples=100, width=8, steps=2, looks=1, least_spread=0,
)  # fmt: skip
LITTLE = replace(TINY, task=("reordering",), positions=("sinusoidal",), anchored=())


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    torch.set_num_threads(1)
    store = Store(tmp_path_factory.mktemp("models"))
    return [
        Result("transformer_heads", "quick", plain(config), *compute(config, store), {}, {})
        for config in (TINY, LITTLE)
    ]


@pytest.fixture
def result(both):
    return both[0]


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_drawn_of_much_and_of_little(figure, both):
    for result in both:
        assert as_svg(figure(result)).startswith("<?xml")


@pytest.mark.parametrize("sentences", SENTENCES)
def test_sentences_are_written_of_much_and_of_little(sentences, both):
    for result in both:
        assert sentences(result)
        assert "None" not in sentences(result)


def test_shares_have_a_panel_an_attention_and_task_and_a_line_a_layer(result):
    grid = shares_by_layer(result).get_axes()
    assert [axes.get_title("left") for axes in grid[:3]] == [
        "one-to-one: cross-attention",
        "reordering: cross-attention",
        "one-to-one: encoder self-attention",
    ]
    labels = [text.get_text() for text in grid[0].get_yticklabels()]
    assert labels[::-1] == [f"{kind}, layer {n}" for kind in TINY.positions for n in (1, 2)]
    squares = [sum(line.get_marker() == "s" for line in axes.get_lines()) for axes in grid]
    assert squares == [0, 0, 2, 2, 2, 2]  # a bias in self-attention of relative positions alone


def test_without_relative_positions_no_bias_is_named(both):
    names = [text.get_text() for text in shares_by_layer(both[1]).legends[0].get_texts()]
    assert "position bias" not in names
    assert "position bias" in [text.get_text() for text in shares_by_layer(both[0]).legends[0].get_texts()]


def test_every_head_is_a_point(result):
    first, _, last = heads_against_typicality(result).get_axes()
    heads = 2 * 2 * 2 * TINY.layers * TINY.heads  # tasks, positions, seeds
    points = [line for line in first.get_lines() if line.get_marker() in ("o", "s")]
    assert len(points) == heads
    assert sum(line.get_marker() == "_" for line in last.get_lines()) == heads
    open_ones = [line for line in points if line.get_markerfacecolor() == "white"]
    assert len(open_ones) == heads // 2


def test_tables_follow_the_order_asked_for(result):
    assert list(quality_table(result).index) == [
        "one-to-one, sinusoidal",
        "one-to-one, relative",
        "reordering, sinusoidal",
        "reordering, relative",
        "in order, relative",
    ]
    assert list(layer_table(result).index)[:2] == [f"one-to-one, sinusoidal, layer {n}" for n in (1, 2)]
    assert list(construction_table(result)["residual, embedded"]) == ["0"] * 4
    assert list(construction_table(result)["positions, after the norm"])[1::2] == ["0", "0"]
    assert list(state_table(result).columns) == [
        "encoder: layer 1",
        "encoder: layer 2",
        "encoder: end",
        "decoder: layer 1",
        "decoder: layer 2",
        "decoder: last cross",
    ]


def test_sentences_follow_the_intervals(result):
    found = result.values["residual"]["last_less_first"]
    for low, high, words in (
        (0.1, 0.3, "more in the last"),
        (-0.3, 0.3, "no difference"),
        (-0.3, -0.1, "less in the"),
    ):
        found |= {"value": (low + high) / 2, "low": low, "high": high}
        assert words in layer_sentences(result)
    less = result.values["repeated"]["relative"]["once_less_again"]["attention"]
    less |= {"value": 0.2, "low": 0.1, "high": 0.3}
    assert "relative: terms" in content_sentences(result)
    assert "the aligned word is smaller: once less again 0.20 [0.10, 0.30]" in content_sentences(result)


def test_a_run_without_the_control_says_how_to_have_it(both):
    assert "-p anchored=rotary,relative" in anchored_sentences(both[1])
    assert "relative: the temporal share is" in anchored_sentences(both[0])
