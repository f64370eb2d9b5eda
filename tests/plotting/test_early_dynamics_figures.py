"""Figures of count tables and early dynamics, drawn from a small result."""

import pytest

from attnlib.companion.sentences.early_dynamics import (
    counts_table,
    derivative_table,
    early_dynamics_sentences,
)
from attnlib.experiments.early_dynamics import Config, compute
from attnlib.experiments.result import Result
from attnlib.plotting.early_dynamics import convergence, count_grids
from attnlib.plotting.style import as_svg


@pytest.fixture(scope="module")
def result() -> Result:
    config = Config(sentences=20, seeds=2, iterations=2, widths=(16, 64), text="none")
    values, tables = compute(config, store=None)
    return Result("early_dynamics", "quick", {}, values, tables, {}, {})


def test_grids_show_every_entry_where_words_are_few(result):
    figure = count_grids(result, ("permutation", "mixture"), ("counts", "translation"))
    first = figure.axes[0]
    assert [text.get_text() for text in first.texts] == ["5"] * 16  # 20 sentences, a quarter each
    assert [label.get_text() for label in first.get_xticklabels()] == ["A′", "B′", "C′", "D′"]
    assert {text.get_text() for text in figure.axes[3].texts} == {"0.25", "0.00"}
    assert first.images[0].get_clim() == (0, 5)


def test_many_words_are_grey_cells_alone(result):
    figure = count_grids(result, ("lexicon",))
    assert len(figure.axes) == 3
    assert not figure.axes[0].texts
    assert figure.axes[1].images[0].get_array().shape == (12, 12)


def test_convergence_draws_the_means_and_the_missing_factor(result):
    figure = convergence(result)
    left, right = figure.axes
    assert len(left.lines) == 8
    drawn = left.lines[0].get_ydata()
    rows = [row for row in result.tables["derivative"] if (row["corpus"], row["width"]) == ("lexicon", 16)]
    assert drawn[0] == pytest.approx(sum(row["logits_error"] for row in rows) / len(rows))
    assert {text.get_text() for text in right.texts} == {"1/12", "1/6", "1/8", "1/2"}
    assert as_svg(figure) == as_svg(convergence(result))


def test_tables_and_sentences_have_the_numbers(result):
    counts, derivative = counts_table(result), derivative_table(result)
    assert counts.loc["permutations", "Trans of the right word, from C"] == "0.25 ± 0.00"
    assert counts.loc["labels", "α, uniform"] == "0.25"
    assert derivative.loc["a lexicon", "1/|O|"] == "0.083"
    sentences = early_dynamics_sentences(Result(**vars(result) | {"config": {"widths": [16, 64]}}))
    assert sentences.count("\n") == 3
    assert "At width 64" in sentences
    assert "100 % have their translation as" in sentences
