"""The context-vector bottleneck: slopes and capacities of bits by length, worked by hand."""

import pytest

from notebooks.primer.context_bottleneck.experiment import capacity, quarter, slope
from tests.notebooks.worked import assert_answer

LENGTHS = [1, 2, 3, 4, 6, 9, 12, 18]
SHARED = {
    "lengths": LENGTHS,
    "bits_of_word": [18, 9, 6, 4.5, 3, 2, 1.5, 1],
    "bits": [18, 18, 18, 18, 18, 18, 18, 18],
}
OWN = {"lengths": LENGTHS, "bits_of_word": [3, 3, 3, 3, 3, 3, 3, 3], "bits": [3, 6, 9, 12, 18, 27, 36, 54]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of a capacity of 18 bits that is shared, in log bits of a word, and of three bits of its own for
        # each word.
        pytest.param((SHARED,), -1, id="a_shared_capacity"),
        pytest.param((OWN,), 0, id="bits_for_each_word"),
        pytest.param(
            ({"lengths": LENGTHS, "bits_of_word": [3, 3, 3, 3, 3, 3, 3, -0.1]},),
            None,
            id="a_length_without_bits",
        ),
    ],
)
def test_slope_by_hand(given, expected):
    assert_answer(slope(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((SHARED,), 18, id="shared"),
        # 27, 36 and 54 bits of the three longest
        pytest.param((OWN,), 39, id="for_each_word"),
    ],
)
def test_capacity_by_hand(given, expected):
    assert_answer(capacity(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [pytest.param({"measured": {"x": [1, 2, 3, 4, 5]}, "name": "x", "last": True}, 5, id="the_last")],
)
def test_quarter_by_hand(given, expected):
    assert_answer(quarter(**given), expected)
