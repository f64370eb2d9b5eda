"""Numbers, squares and tables of the page."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis.markup import COLOURS, figure, folded, matrix, number, square, table
from tests.attnlib.analysis.test_shown_text import Text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.125, "0.12"),
        (-0.126, "−0.13"),
        (-0.001, "0.00"),
        (0.0, "0.00"),
        (1234, "1,234"),
        (1234.5, "1234.50"),
        (math.nan, "–"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


@given(st.floats(-2, 2))
def test_zero_has_no_sign(value):
    assert (number(value)[0] == "−") == (round(value, 2) < 0)


def strength(cell):
    return int(re.search(r"(\d+)%,transparent\)", cell).group(1))


@given(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5), st.sampled_from([*COLOURS, "plain"]))
def test_the_larger_the_stronger(first, second, colour):
    first, second = sorted((first, second), key=abs)
    assert 0 <= strength(square(first, colour)) <= strength(square(second, colour)) <= 90


@pytest.mark.parametrize("colour", [*COLOURS, "plain"])
def test_a_negative_square_is_hatched_and_dark_ones_have_light_numbers(colour):
    assert "repeating-linear-gradient" in square(-0.5, colour)
    assert "repeating-linear-gradient" not in square(0.5, colour)
    assert ("color:#fff" in square(0.9, colour)) == (colour in COLOURS)
    assert "color:#fff" not in square(-0.9, colour)  # half of it is the page
    assert square(math.nan, colour) == "<td>–</td>"


def test_a_table_has_headings_for_both_directions():
    markup = table(["a", "b"], [("x", ["1", '<td class="own">2</td>'])], "grid")
    assert markup.count('scope="col"') == 2
    assert markup.count('scope="row"') == 1
    assert '<td>1</td><td class="own">2</td>' in markup
    assert Text(markup).text == "abx12"


def test_a_matrix_has_a_square_for_each_pair():
    markup = matrix([[0.0, 1.0, 0.25]], ["asks"], ["a", "b", "b"])
    assert re.findall(r'title="([\d.]+)"', markup) == ["0.00", "1.00", "0.25"]
    assert [int(n) for n in re.findall(r"(\d+)%", markup)] == [0, 100, 25]
    with pytest.raises(ValueError, match="argument"):
        matrix([[0.0], [1.0]], ["one row"], ["a"])


def test_titles_are_text():
    assert "<b>" not in figure("<b>", "content") + folded("<b>", "content")
    assert "<details open>" in folded("title", "content", opened=True)
    assert "<details>" in folded("title", "content")
