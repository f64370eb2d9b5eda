"""The figures and sentences of the chapter say what their result says, and survive what is missing."""

from itertools import pairwise

import pytest
import torch

from attnlib.companion.sentences.along_training import (
    changed_mind_sentences,
    elsewhere_sentence,
    order_sentences,
    order_table,
    prediction_table,
    share_table,
    takeover_sentences,
    term_sentences,
    term_table,
    uniform_sentences,
)
from attnlib.experiments.along_training import Config, compute
from attnlib.experiments.along_training_values import QUANTITIES
from attnlib.experiments.config import plain
from attnlib.experiments.result import Result
from attnlib.plotting.along_training import DOTS, FIGURES, courses, held_uniform, spread, takeovers
from attnlib.plotting.style import as_svg
from attnlib.training.store import Store

SENTENCES = (
    takeover_sentences,
    order_sentences,
    term_sentences,
    elsewhere_sentence,
    uniform_sentences,
    changed_mind_sentences,
)
TASKS = ("one_to_one", "reordering", "copying_sample", "copying_permutation")
TINY = Config(
    seeds=2, shortest=5, longest=5, fewest_phrases=2, most_phrases=2, length=5, n_train=40, n_held_out=12,
    width=4, steps=2, batch_size=16, fitted=20, judged=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    torch.set_num_threads(1)
    values, tables = compute(TINY, Store(tmp_path_factory.mktemp("models")))
    return Result("along_training", "quick", plain(TINY), values, tables, {}, {})


@pytest.fixture
def without(result):
    """A result of a run that asked for one task and no uniform attention."""
    values = {
        name: {task: own for task, own in content.items() if task == "reordering"}
        for name, content in result.values.items()
    }
    values["uniform"] = {}
    tables = {
        name: [r for r in rows if r["task"] == "reordering" and r.get("attention") != "uniform"]
        for name, rows in result.tables.items()
    }
    return Result("along_training", "quick", result.config, values, tables, {}, {})


def found(result, task, quantity, value, half=0.25, left_out=0):
    """Sets a takeover in a result."""
    row = next(r for r in result.tables["takeovers"] if (r["task"], r["quantity"]) == (task, quantity))
    interval = {"value": value, "low": None, "high": None, "n": 2 - left_out}
    if value is not None:
        interval |= {"low": value - half, "high": value + half}
    row |= interval | {"left_out": left_out}
    result.values["takeover"][task][quantity] = interval


def test_there_is_a_panel_a_task_with_a_label_a_line(result):
    axes = courses(result).get_axes()
    assert [a.get_title(loc="left") for a in axes] == [
        "one-to-one", "reordering", "copying samples", "copying permutations",
    ]  # fmt: skip
    assert {text.get_text() for text in axes[0].texts} == {
        "temporal terms", "input terms", "terms with an input", "translation", "words right",
    }  # fmt: skip


def test_dots_stand_where_the_table_has_them_and_what_never_rises_is_said(result):
    for task in TASKS:
        for quantity in QUANTITIES:
            found(result, task, quantity, 3.0)
    found(result, "reordering", "input", None, left_out=2)
    found(result, "copying_sample", "input", 4.0, left_out=1)
    axes = takeovers(result).get_axes()[0]
    assert {text.get_text() for text in axes.texts} == {"never", "never in 1 of 2"}
    dots = [line for line in axes.get_lines() if line.get_marker() == DOTS["temporal"][2]]
    assert [line.get_xdata()[0] for line in dots if line.get_color() == DOTS["temporal"][1]] == [3.0] * 4
    text = takeover_sentences(result)
    assert "temporal terms at 8.0 [6.7, 9.5]" in text
    assert "Never, in no network: input terms." in text


def test_labels_are_spread_within_the_axes():
    apart = spread([0.0, 0.0, 0.01], 0.1)
    assert apart[0] >= 0
    assert all(b - a >= 0.099 for a, b in pairwise(apart))
    assert spread([0.2, 0.8], 0.1) == [0.2, 0.8]
    assert spread([1.0, 1.0], 0.1)[-1] <= 1.02


def test_words_on_order_follow_the_intervals(result):
    order = result.values["order"]["reordering"]
    order["temporal_after_translation"] = {"value": -1.0, "low": -1.5, "high": -0.5, "n": 2}
    order["on_word_after_translation"] = {"value": 0.1, "low": -0.5, "high": 0.7, "n": 2}
    order["input_after_translation"] = {"value": None, "low": None, "high": None, "n": 0}
    lines = dict(line.split("**: ") for line in order_sentences(result).splitlines())
    assert "before translation in reordering (−1.00 [−1.50, −0.50])" in lines["* **Temporal terms"]
    assert "not to be told from that of translation in reordering" in lines["* **Attention on the right word"]
    assert "not comparable in" in lines["* **Input terms"]


def test_predictions_are_judged_from_the_values_and_undefined_ones_fail(result):
    table = prediction_table(result)
    assert len(table) == 4
    result.values["order"]["one_to_one"]["temporal_after_translation"] = {
        "value": -1.0, "low": -1.5, "high": -0.5, "n": 2,
    }  # fmt: skip
    result.values["order"]["reordering"]["input_after_translation"] = {
        "value": None, "low": None, "high": None, "n": 0,
    }  # fmt: skip
    table = prediction_table(result)
    verdict = {says.split()[0] + says.split()[1]: row["verdict"] for says, row in table.iterrows()}
    assert verdict["Inone-to-one"] == "reproduced"
    assert verdict["Wherewords"] == "not reproduced"


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_drawn_of_much_and_of_little(figure, result, without):
    assert as_svg(figure(result)).startswith("<?xml")
    assert as_svg(figure(without)).startswith("<?xml")


def test_twins_are_two_lines_and_chance_a_third(result):
    for axes in held_uniform(result).get_axes():
        assert len(axes.get_lines()) == 3


@pytest.mark.parametrize("sentences", SENTENCES)
def test_sentences_are_written_of_much_and_of_little(sentences, result, without):
    assert "None" not in sentences(result)
    assert sentences(without)


def test_tables_have_a_row_a_task(result, without):
    assert list(term_table(result).columns) == [a + b for a in "μχΔ" for b in "μχΔ"]
    assert len(order_table(result)) == 3 * len(TASKS)
    assert list(share_table(without).index) == ["reordering"]


def interval(low, high):
    return {"value": (low + high) / 2, "low": low, "high": high, "n": 5}


def test_what_would_change_our_mind_is_held_against_the_intervals(without):
    values, task = without.values, "reordering"
    open_, below = interval(-1.0, 1.0), interval(-2.0, -1.0)
    values["uniform"] = {task: {"above_chance": interval(0.1, 0.2)}}
    values["last"][task] |= {"on_word": interval(0.5, 0.6), "chance": interval(0.1, 0.1)}
    values["order"][task]["input_after_translation"] = open_
    values["order_by_accuracy"][task] |= {
        "input_after_translation": open_,
        "on_word_after_translation": open_,
    }
    assert changed_mind_sentences(without) == "Not seen here: the first, second and third."
    values["order"][task]["input_after_translation"] = below
    assert changed_mind_sentences(without) == (
        "The third has happened in reordering (by the share of β −1.50 [−2.00, −1.00], by the largest β "
        "0.00 [−1.00, 1.00]). Not seen here: the first and second."
    )
    values["order_by_accuracy"][task]["on_word_after_translation"] = below
    values["uniform"][task]["above_chance"] = interval(-0.1, 0.1)
    assert changed_mind_sentences(without).startswith(
        "The first has happened in reordering (0.00 [−0.10, 0.10] above chance). The second has happened in "
    )
    assert "Not seen" not in changed_mind_sentences(without)
