"""Figures say what their result says, survive what is undefined, and are the same bytes every time."""

import io
import re
from dataclasses import replace

import pytest
from matplotlib import image

from attnlib.plots.style import DOTS, PART_COLOURS, as_images, as_png, as_svg, style
from companion.results.result import Result, kinds_of
from notebooks.attend.alignment_breakdown.drawing import SUBSETS, share_grids, substitution_test
from notebooks.attend.attention_matrices.drawing import average_matrices, sample_matrices, typicality_by_task
from notebooks.attend.temporal_share.drawing import (
    ALONE,
    LINES,
    against_typicality,
    along_the_dial,
    among_samples,
)
from notebooks.shared.bands import panels
from notebooks.shared.dots import dot_rows

PARTS = ("temporal", "input", "residual")
TASKS = ("scan", "multi30k_en_fr")  # the ladder's order, which is not that of the alphabet
KINDS = ("AED", "AO")


def interval(value):
    return {
        "value": value,
        "low": None if value is None else value - 0.1,
        "high": value and value + 0.1,
        "n": 3,
    }


def result_of(values, tables):
    return Result("x", "quick", {"task": list(TASKS), "seeds": 3}, values, tables, {}, {})


@pytest.fixture
def breakdown() -> Result:
    shares = {f"{d}_{e}": interval(0.11) for d in PARTS for e in PARTS} | {"input_residual": interval(-0.25)}
    subsets = {name: {"similarity": interval(0.5), "argmax_agreement": interval(0.4)} for name in SUBSETS}
    found = {"covariance_share": shares, "mean_absolute_share": shares, "substitution": subsets}
    return result_of({task: dict.fromkeys(KINDS, found) for task in sorted(TASKS)}, {})


@pytest.fixture
def headline() -> Result:
    columns = ("typicality", "temporal_share", "input_share", "temporal_only", "input_only", "uniform")
    rows = [
        {"task": task, "architecture": kind, "kind": kind, "cell": "none", "seed": seed}
        | {name: 0.1 * i + 0.01 * seed + 0.3 * TASKS.index(task) for i, name in enumerate(columns)}
        for task in TASKS
        for kind in KINDS
        for seed in range(3)
    ]
    correlations = {name: interval(0.7) for name in columns[1:]} | {"input_share": interval(None)}
    by_task = {task: {kind: {} for kind in KINDS} for task in TASKS}
    return result_of({"spearman": correlations, "by_task": by_task}, {"points": rows})


@pytest.fixture
def matrices() -> Result:
    entry = {"attention": 0.5, "samples": 40, "sample": 0, "predicted": "<eos>", "source": "price: $5"}
    rows = [
        {"task": task, "architecture": kind, "target_position": s, "source_position": t} | entry
        for task in TASKS
        for kind in KINDS
        for s in range(3)
        for t in range(4)
    ]
    values = {task: {kind: {"typicality": interval(0.8)} for kind in KINDS} for task in TASKS}
    values["scan"]["AO"] = {"typicality": interval(None)}
    return result_of(values, {"average": rows, "samples": rows})


def test_shares_are_written_with_their_interval_and_a_true_minus(breakdown):
    figure = share_grids(breakdown)
    assert [ax.get_title() for ax in figure.get_axes()] == [
        "SCAN, AED", "Multi30k En–Fr, AED", "SCAN, AO", "Multi30k En–Fr, AO"
    ]  # fmt: skip
    written = [text.get_text() for text in figure.get_axes()[0].texts]
    assert written[5] == "−0.25\n±0.10"
    assert written.count("0.11\n±0.10") == 8


def test_a_share_that_is_undefined_is_a_dash(breakdown):
    breakdown.values["scan"]["AO"]["covariance_share"]["temporal_input"] = interval(None)
    assert "–" in [text.get_text() for ax in share_grids(breakdown).get_axes() for text in ax.texts]


def test_parts_keep_their_colours_and_the_ladder_its_order(breakdown):
    axes = substitution_test(breakdown).get_axes()[0]
    colours = {line.get_color() for line in axes.get_lines()}
    assert {PART_COLOURS["temporal"], PART_COLOURS["input"]} <= colours
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows[::-1] == [f"{name}, {kind}" for name in ("SCAN", "Multi30k En–Fr") for kind in KINDS]
    assert [kind[:2] for kind in kinds_of(breakdown)] == [(task, kind) for task in TASKS for kind in KINDS]


def test_the_headline_states_the_correlation_or_that_there_is_none(headline):
    titles = [ax.get_title("left") for ax in against_typicality(headline).get_axes()]
    assert titles == ["Spearman ρ = 0.70 [0.60, 0.80], n = 3", "Spearman ρ: undefined"]
    (legend,) = against_typicality(headline, ALONE).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["SCAN", "Multi30k En–Fr", "AED: filled", "AO: open", "uniform attention"]


def test_points_without_typicality_are_left_out(headline):
    for row in headline.tables["points"]:
        row["typicality"] = None
    figure = against_typicality(headline)
    for axes in figure.get_axes():
        assert [text.get_text() for text in axes.texts] == ["no cell of 30 samples: no typicality"]


def test_words_of_data_are_shown_as_they_are(matrices):
    axes = sample_matrices(matrices).get_axes()[0]
    assert axes.get_xticklabels()[0].get_text() == r"price: \$5"
    assert axes.get_yticklabels()[0].get_text() == "end"
    assert average_matrices(matrices).get_axes()[0].get_title() == "SCAN, AED\nmean of 40 samples"


def test_a_question_mark_is_one_and_an_unknown_word_is_called_so(matrices):
    for row in matrices.tables["samples"]:
        row["source"], row["predicted"] = "?", "<unk>"
    axes = sample_matrices(matrices).get_axes()[0]
    assert axes.get_xticklabels()[0].get_text() == "?"
    assert axes.get_yticklabels()[0].get_text() == "(unknown)"


def test_what_is_no_part_has_no_colour_of_a_part(breakdown, headline, matrices):
    residual = PART_COLOURS["residual"]
    for figure in (
        substitution_test(breakdown),
        against_typicality(headline, ALONE),
        typicality_by_task(matrices),
    ):
        assert residual not in {line.get_color() for ax in figure.get_axes() for line in ax.get_lines()}


def test_a_task_without_large_cells_says_so(matrices):
    axes = typicality_by_task(matrices).get_axes()[0]
    assert "no cell of 30 samples" in [text.get_text() for text in axes.texts]


def test_equal_figures_are_equal_bytes_without_a_date(breakdown):
    first, again = as_svg(share_grids(breakdown)), as_svg(share_grids(replace(breakdown)))
    assert first == again
    assert not re.search(r"20\d\d-\d\d-\d\dT", first)
    assert as_png(share_grids(breakdown)) == as_png(share_grids(breakdown))


def test_one_laying_out_serves_both_images(breakdown):
    svg, png = as_images(share_grids(breakdown))
    by_savefig = io.StringIO()
    with style():
        share_grids(breakdown).savefig(by_savefig, format="svg", dpi=DOTS, metadata={"Date": None})
    assert svg == by_savefig.getvalue()
    figure = share_grids(breakdown)
    pixels = image.imread(io.BytesIO(png))
    inches = figure.get_size_inches()
    assert pixels.shape[:2] == (int(DOTS * inches[1]), int(DOTS * inches[0]))
    dots = figure.dpi
    as_images(figure)
    assert figure.dpi == dots, "the figure is the caller's own"


def test_the_dial_labels_its_lines_and_leaves_out_what_is_not_measured():
    found = {name: interval(0.3) for name in LINES}
    by_task = {task: {"AED": found} for task in ("reordering_0", "reordering_50", "scan")}
    result = replace(result_of({"by_task": by_task}, {}), config={"task": [*by_task, "reordering_100"]})
    (axes,) = along_the_dial(result).get_axes()
    assert {text.get_text() for text in axes.texts} == {label for label, _ in LINES.values()}
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in points] == [[0, 50]] * len(LINES)


def test_correlations_among_samples_have_a_row_for_each_kind():
    found = {"temporal_share": interval(0.5), "input_share": interval(None)}
    values = {task: dict.fromkeys(KINDS, found) for task in TASKS}
    result = result_of({"across_samples": values, "by_task": values}, {})
    (axes,) = among_samples(result).get_axes()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["Multi30k En–Fr, AO", "Multi30k En–Fr, AED", "SCAN, AO", "SCAN, AED"]


def test_many_tasks_are_broken_into_bands(breakdown):
    tasks = [f"reordering_{percent}" for percent in range(6)]
    many = replace(breakdown, config={"task": tasks}, values=dict.fromkeys(tasks, breakdown.values["scan"]))
    shown = [axes.get_title() for axes in share_grids(many).get_axes() if axes.get_visible()]
    assert len(shown) == 12
    assert shown[:2] == ["reordering 0 %, AED", "reordering 1 %, AED"]


def test_a_result_without_networks_has_a_sentence_in_place_of_axes():
    nothing = result_of({"tokens": {}}, {})
    for figure in (dot_rows(nothing, {"x": []}, xlabel="x"), panels([], [], None, width=1, height=1)):
        assert figure.get_axes() == []
        assert "measured nothing" in figure.texts[0].get_text()
