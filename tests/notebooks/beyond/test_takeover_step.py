"""When a quantity takes over."""

import math

import pytest

from attnlib.errors import BadInput
from notebooks.beyond.along_training.experiment import takeover_step


def test_it_is_where_the_line_over_the_logarithm_crosses_the_middle():
    # The middle of 0.2 and 1.0 is 0.6, a fifth of the way from 0.5 to 1.0, where log2 goes from 2 to 4.
    found = takeover_step([0, 3, 15], [0.2, 0.5, 1.0], least=0.1)
    assert found == pytest.approx(2 ** (2 + 2 / 5) - 1)


def test_the_first_crossing_counts_and_a_look_on_the_middle_is_one():
    assert takeover_step([0, 1, 3, 7], [0, 0.5, 0.1, 1], least=0.1) == pytest.approx(1)


def test_a_quantity_may_overshoot_and_come_back():
    found = takeover_step([0, 1, 3], [0.0, 1.0, 0.4], least=0.1)
    assert found == pytest.approx(2 ** (0.2 * math.log2(2)) - 1)


@pytest.mark.parametrize("values", [[0.0, 0.9, 0.04], [0.5, 0.7, 0.1], [0.0, 0.3, math.nan]])
def test_what_does_not_rise_has_none(values):
    assert takeover_step([0, 1, 3], values, least=0.05) is None


@pytest.mark.parametrize(("steps", "values"), [([0], [1.0]), ([0, 2], [1.0]), ([0, 2, 2], [0, 1, 2])])
def test_lists_that_do_not_fit_are_refused(steps, values):
    with pytest.raises(BadInput, match="expected as many"):
        takeover_step(steps, values, least=0.05)
