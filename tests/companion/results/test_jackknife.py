"""The jackknife: Student's interval of a mean, by hand for a mean over pairs, and where it does not exist."""

import math
from itertools import permutations

import pytest

from attnlib.errors import BadInput
from companion.results.statistics import jackknife_interval, mean_interval, t_quantile


def mean(values):
    return sum(values) / len(values)


def products(values):
    """The mean of x·y over pairs of different values."""
    pairs = [x * y for x, y in permutations(values, 2)]
    return mean(pairs) if pairs else math.nan


def test_of_a_mean_it_is_students_interval():
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert jackknife_interval(values, mean).as_dict() == pytest.approx(mean_interval(values).as_dict())


def test_by_hand_of_pairs():
    """1, 2, 3: mean product 11/3; without each 6, 3, 2, whose squares about 11/3 sum to 26/3; 2/3 of it."""
    found = jackknife_interval([1.0, 2.0, 3.0], products)
    assert found.value == pytest.approx(11 / 3)
    assert found.high - found.value == pytest.approx(t_quantile(0.975, 2) * math.sqrt(2 / 3 * 26 / 3))
    assert found.low + found.high == pytest.approx(22 / 3)
    assert found.n == 3


@pytest.mark.parametrize("units", [[2.0], [1.0, 2.0]])
def test_where_a_number_needs_every_unit_there_is_none(units):
    found = jackknife_interval(units, products)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.n == len(units)
    assert math.isnan(jackknife_interval([1.0], mean).low)


def test_no_units_and_levels_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="jackknife of no units"):
        jackknife_interval([], mean)
    with pytest.raises(BadInput, match="level=2"):
        jackknife_interval([1.0], mean, level=2)
