"""Differences seed by seed: the right sign, the right pairs, and nothing where a number is undefined."""

import pytest

from companion.results.aggregate import matched, paired


def points(values):
    return [({"seed": seed}, {"x": value}) for seed, value in values.items()]


def test_the_first_less_the_second_of_shared_seeds():
    found = paired(points({0: 5.0, 1: 7.0, 2: 100.0}), points({1: 4.0, 0: 4.0, 9: -50.0}), lambda m: m["x"])
    assert (found["n"], found["value"]) == (2, pytest.approx((1 + 3) / 2))
    # Student's 97.5 % point with one degree of freedom is 12.706; the differences 1 and 3 have an error of 1
    assert (found["low"], found["high"]) == (
        pytest.approx(2 - 12.706, abs=1e-3),
        pytest.approx(2 + 12.706, abs=1e-3),
    )


def test_undefined_numbers_and_strangers_are_left_out():
    assert matched(points({0: 1.0}), points({1: 1.0})) == []
    found = paired(points({0: None, 1: 3.0}), points({0: 1.0, 1: 2.0}), lambda m: m["x"])
    assert (found["n"], found["value"]) == (1, 1.0)
