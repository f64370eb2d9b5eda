"""Marks of estimates: what is drawn of an interval, of a missing number, and of names that would overlap."""

from math import nan

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from notebooks.shared.marks import (
    Mark,
    dot,
    dots,
    error_bar,
    grid,
    legend_of,
    line_of_dots,
    line_with_band,
    matrix,
    name_ends,
)

MEASURED = {"value": 0.5, "low": 0.25, "high": 0.75}
ONE_SEED = {"value": 0.5, "low": None, "high": None}
MISSING = {"value": None, "low": None, "high": None}


@pytest.fixture
def axes():
    return Figure().subplots()


def points_of(axes) -> list[list[list[float]]]:
    return [line.get_xydata().tolist() for line in axes.get_lines()]


def test_an_error_bar_goes_from_low_to_high(axes):
    error_bar(axes, MEASURED, 2, "black")
    assert points_of(axes) == [[[0.25, 2], [0.75, 2]]]


def test_an_upright_error_bar_has_its_place_across(axes):
    error_bar(axes, MEASURED, 2, "black", upright=True)
    assert points_of(axes) == [[[2, 0.25], [2, 0.75]]]


def test_an_error_bar_ends_where_its_quantity_ends(axes):
    error_bar(axes, {"value": 0.5, "low": -0.5, "high": 1.5}, 0, "black", within=(0, 1))
    assert points_of(axes) == [[[0, 0], [1, 0]]]


@pytest.mark.parametrize("missing", [pytest.param(None, id="none"), pytest.param(nan, id="nan")])
def test_an_estimate_without_an_interval_has_no_error_bar(axes, missing):
    error_bar(axes, {"value": 0.5, "low": missing, "high": missing}, 0, "black")
    assert not axes.get_lines()


def test_a_dot_lies_over_its_error_bar(axes):
    dot(axes, MEASURED, 2, "black")
    assert points_of(axes) == [[[0.25, 2], [0.75, 2]], [[0.5, 2]]]


def test_a_dot_of_one_seed_is_a_point_alone(axes):
    dot(axes, ONE_SEED, 2, "black")
    assert points_of(axes) == [[[0.5, 2]]]


def test_nothing_is_drawn_of_a_missing_number(axes):
    dot(axes, MISSING, 2, "black")
    assert not axes.get_lines()


@pytest.mark.parametrize(
    ("filled", "face"), [pytest.param(True, "red", id="filled"), pytest.param(False, "white", id="hollow")]
)
def test_a_hollow_dot_is_white_inside(axes, filled, face):
    dot(axes, ONE_SEED, 0, "red", filled=filled)
    assert same_color(axes.get_lines()[0].get_markerfacecolor(), face)


def test_dots_of_a_row_are_shifted_by_their_marks(axes):
    marks = {"one": Mark("one", "red", shift=0.25), "two": Mark("two", "blue", shift=-0.25)}
    dots(axes, {"one": ONE_SEED, "two": ONE_SEED}, marks, 1)
    assert points_of(axes) == [[[0.5, 1.25]], [[0.5, 0.75]]]


def test_a_line_of_dots_leaves_out_missing_numbers(axes):
    line_of_dots(axes, [0, 1, 2], [ONE_SEED, MISSING, ONE_SEED], "black")
    assert points_of(axes) == [[[0, 0.5], [2, 0.5]]]


def test_a_line_of_dots_has_an_error_bar_at_each(axes):
    line_of_dots(axes, [0, 1], [MEASURED, ONE_SEED], "black")
    assert points_of(axes) == [[[0, 0.5], [1, 0.5]], [[0, 0.25], [0, 0.75]]]


def test_a_line_of_one_seed_has_no_band(axes):
    line_with_band(axes, pd.Series([0, 1]), pd.DataFrame([ONE_SEED, ONE_SEED]), "black")
    assert not axes.collections


def test_a_band_goes_from_low_to_high(axes):
    line_with_band(axes, pd.Series([0, 1]), pd.DataFrame([MEASURED, MEASURED]), "black")
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.25, 0.75)


def test_names_at_the_ends_of_lines_do_not_overlap(axes):
    name_ends(axes, {"low": (0.5, "red"), "high": (0.5, "blue")}, 3, closest=0.25)
    assert [text.xy for text in axes.texts] == [(3, 0.5), (3, 0.75)]


def test_a_matrix_has_its_first_row_above(axes):
    image = matrix(axes, np.eye(2))
    assert image.origin == "upper"


def test_a_matrix_is_shaded_from_nothing_to_one(axes):
    image = matrix(axes, np.full((2, 2), 0.5))
    assert image.get_clim() == (0, 1)


def test_panels_of_a_grid_have_a_row_then_a_column():
    with grid(2, 3, size=(6, 4)) as (figure, panels):
        assert panels.shape == (2, 3)
    assert tuple(figure.get_size_inches()) == (6, 4)


def test_a_legend_says_what_each_mark_is():
    with grid(1, 1, size=(6, 4)) as (figure, _):
        legend_of(figure, [Mark("attention", "red"), Mark("saliency", "blue", filled=False)], ncols=2)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["attention", "saliency"]
