"""The headline's figure says what the result says, and README.md shows that of the committed result."""

from pathlib import Path

import pytest

from attnlib.plots.style import PART_COLOURS
from companion.results.result import Result
from notebooks.attend.temporal_share.drawing import ALONE, against_typicality, readme_figure

ROOT = Path(__file__).parents[3]
COLUMNS = ("typicality", "temporal_share", "input_share", "temporal_only", "input_only", "uniform")


@pytest.fixture
def headline() -> Result:
    tasks = ("scan", "multi30k_en_fr")
    rows = [
        {"task": task, "architecture": kind, "seed": seed}
        | {name: 0.1 * i + 0.01 * seed + 0.3 * tasks.index(task) for i, name in enumerate(COLUMNS)}
        for task in tasks
        for kind in ("AED", "AO")
        for seed in range(3)
    ]
    correlations = {name: {"value": 0.7, "low": -0.6, "high": 0.8, "n": 3} for name in COLUMNS[1:]}
    correlations["input_share"] = {"value": None, "low": None, "high": None, "n": 2}
    by_task = {task: {"AED": {}, "AO": {}} for task in tasks}
    values = {"spearman": correlations, "by_task": by_task}
    return Result("x", "quick", {"task": list(tasks)}, values, {"points": rows}, {}, {})


def test_the_headline_states_the_correlation_or_that_there_is_none(headline):
    titles = [axes.get_title("left") for axes in against_typicality(headline).get_axes()]
    assert titles == ["Spearman ρ = 0.70 [−0.60, 0.80], n = 3", "Spearman ρ: undefined"]


def test_points_without_typicality_are_left_out(headline):
    for row in headline.tables["points"]:
        row["typicality"] = None
    for axes in against_typicality(headline).get_axes():
        assert [text.get_text() for text in axes.texts] == ["no cell of 30 samples: no typicality"]


def test_uniform_attention_has_no_colour_of_a_part(headline):
    lines = [line for axes in against_typicality(headline, ALONE).get_axes() for line in axes.get_lines()]
    assert len(lines) == 2 * (1 + 2 * 12)  # a line at 0; a point and its dash for each network
    dashes = [line for line in lines if line.get_marker() == "_"]
    assert {line.get_color() for line in dashes}.isdisjoint(PART_COLOURS.values())


def test_the_figure_of_the_readme_is_drawn_from_the_committed_result():
    path, text = readme_figure(ROOT / "results" / "paper")
    assert path.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "make readme draws it anew"
