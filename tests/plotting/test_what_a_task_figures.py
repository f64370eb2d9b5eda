"""The figures and sentences of the chapter say what their result says, and survive what is missing."""

import pytest
import torch

from attnlib.companion.sentences.what_a_task_teaches import (
    agreement_sentences,
    answers_sentence,
    class_sentence,
    elsewhere_sentence,
    pattern_sentences,
    quality_table,
    source_table,
    symmetry_sentences,
    symmetry_table,
    tied_sentences,
)
from attnlib.experiments.config import plain
from attnlib.experiments.result import Result
from attnlib.experiments.what_a_task_teaches import Config, compute
from attnlib.plotting.style import as_svg
from attnlib.plotting.what_a_task_teaches import agreement, courses, example_matrices, patterns
from attnlib.plotting.who_asks_whom import classes, reciprocity
from attnlib.training.store import Store

FIGURES = (example_matrices, patterns, agreement, courses, classes, reciprocity)
SENTENCES = (agreement_sentences, answers_sentence, class_sentence, elsewhere_sentence, pattern_sentences,
             symmetry_sentences, tied_sentences)  # fmt: skip
TINY = Config(
    seeds=2, longest=6, n_train=100, judged=30, width=4, steps=1, transformer_width=4, transformer_steps=1,
    looks=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    torch.set_num_threads(1)
    values, tables = compute(TINY, Store(tmp_path_factory.mktemp("models")))
    return Result("what_a_task_teaches", "quick", plain(TINY), values, tables, {}, {})


@pytest.fixture
def without(result):
    """A result of a run that asked for the recurrent summariser alone."""
    kept = {
        name: [row for row in rows if (row.get("kind"), row.get("task")) == ("recurrent", "summary")]
        for name, rows in result.tables.items()
    }
    values = {name: {} for name in ("differs", "agreement", "symmetry", "classes", "sources")}
    values |= {"recurrent": {"summary": result.values["recurrent"]["summary"]}}
    values |= {"references": {"summary": result.values["references"]["summary"]}}
    return Result("what_a_task_teaches", "quick", result.config, values, kept, {}, {})


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_the_example_has_a_row_a_task_and_frames_its_gold_links(result):
    grid = example_matrices(result).get_axes()
    assert [axes.get_title() for axes in grid[:3]] == [
        "Transformer, before training",
        "recurrent, trained",
        "Transformer, trained",
    ]
    rows = [row for row in result.tables["example"] if (row["kind"], row["task"]) == ("recurrent", "summary")]
    words = {row["target_position"]: row["target"] for row in rows}
    assert labels(grid[3]) == list(words.values())
    assert [len(axes.patches) for axes in grid[3:]] == [len(words)] * 3


def test_every_network_is_a_dot_of_the_patterns(result):
    axes = patterns(result).get_axes()[0]
    assert labels(axes)[-1] == "recurrent: translation"
    dots = [line for line in axes.get_lines() if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [TINY.seeds] * 5


def test_lines_of_reciprocity_are_blocks_of_tasks(result):
    left, _ = reciprocity(result).get_axes()
    found = labels(left)
    assert found[0] == "translation"
    assert found[1:5] == [f"{kind}, layer {n}" for kind in ("self", "self, tied maps") for n in (1, 2)]
    assert [name for name in found[found.index("summary") :] if name.startswith("cross, layer")] == []
    diamonds = [line for line in reciprocity(result).get_axes()[1].get_lines() if line.get_marker() == "D"]
    assert len(diamonds) == 2 * TINY.layers  # of free self-attention alone


def test_kinds_of_words_are_numbers_in_four_tables(result):
    grid = classes(result).get_axes()
    shown = {(row["task"], row["attention"]): 0 for row in result.tables["classes"]}
    for row in result.tables["classes"]:
        if (row["kind"], row["state"]) == ("transformer", "trained") and row["value"] is not None:
            shown[row["task"], row["attention"]] += 1
    assert [len(axes.texts) for axes in grid] == [
        shown[task, kind] for kind in ("encoder_self", "cross") for task in ("translation", "summary")
    ]


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_drawn_of_much_and_of_little(figure, result, without):
    assert as_svg(figure(result)).startswith("<?xml")
    assert as_svg(figure(without)).startswith("<?xml")


def test_tables_have_a_row_a_kind(result):
    assert list(quality_table(result).index)[-1] == "Transformer, tied maps: translation"
    moves = source_table(result)
    assert moves.loc["cross, layer 1", "queries, other source"] == "0"
    assert moves.loc["encoder self, layer 2", "keys, other target"] == "0"
    table = symmetry_table(result)
    assert table.loc["translation: self, tied maps", "scores"] == "1.00 ± 0.00 (1.00)"
    assert table.loc["translation: cross", "maps"] == "–"
    assert "summary: cross" not in table.index


def test_tables_of_little_are_short(without):
    assert list(quality_table(without).index) == ["recurrent: summary"]
    assert source_table(without).empty
    assert symmetry_table(without).empty


@pytest.mark.parametrize("sentences", SENTENCES)
def test_sentences_are_written_of_much_and_of_little(sentences, result, without):
    assert "None" not in sentences(result)
    assert sentences(without)


def test_the_sentence_on_self_and_cross_follows_the_interval(result):
    found = result.values["symmetry"]["transformer"]["translation"]["self_less_cross"]
    found["scores"] = {"value": -0.4, "low": -0.5, "high": -0.3, "n": 2}
    found["weights"] = {"value": 0.1, "low": -0.1, "high": 0.3, "n": 2}
    text = symmetry_sentences(result)
    assert (
        "cross-attention is the more symmetric in scores, the two cannot be told apart in attention" in text
    )


def interval(value, half):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


@pytest.mark.parametrize(
    ("value", "half", "told"),
    [
        (0.3, 0.1, "so the task changes how it is found (recurrent 0.30 [0.20, 0.40]"),
        (
            0.1,
            0.5,
            "whether the task changes it is undecided, the interval has 0 in it (recurrent 0.10 [−0.40",
        ),
        (-0.3, 0.1, "even more in common than two networks of one task (recurrent −0.30"),
    ],
)
def test_the_answer_on_how_a_word_is_found_follows_the_interval(result, value, half, told):
    for kind in ("recurrent", "transformer"):
        result.values["agreement"][kind]["same_word"]["task_effect"] = interval(value, half)
        # far above 0 whatever attention has learned, since a summary has fewer words: it decides nothing here
        result.values["agreement"][kind]["sentence"]["task_effect"] = interval(0.5, 0.1)
    assert told in answers_sentence(result)


@pytest.mark.parametrize(
    ("value", "told"),
    [(-0.5, "summarisers look at topics more than translators do"), (0.5, "translators look at topics more")],
)
def test_the_answer_on_which_words_follows_the_interval(result, value, told):
    for found in result.values["differs"].values():
        found["trained"]["on_topics"] = interval(value, 0.1)
    assert told in answers_sentence(result)


def test_agreement_within_each_task_is_told_apart(result):
    same = result.values["agreement"]["recurrent"]["same_word"]
    same |= {"translation": interval(0.99, 0.01), "summary": interval(0.45, 0.3)}
    assert "0.99 ± 0.01 to two translators and 0.45 ± 0.30 to two summarisers" in agreement_sentences(result)


def test_topics_are_asked_or_ask_as_the_interval_says(result):
    found = result.values["classes"]["transformer"]
    found["translation"]["trained"]["one_way"] = interval(0.1, 0.2)
    found["summary"]["trained"]["one_way"] = interval(2.0, 0.2)
    text = class_sentence(result)
    assert text.index("is undecided") < text.index("**summary**") < text.index("are asked more than they ask")
