"""Quantiles of Student's distribution against scipy."""

import math

import pytest
import torch

from attnlib.analysis.students_quantile import students_quantile

stats = pytest.importorskip("scipy.stats")

DEGREES = [
    1,
    1 + 1e-9,
    1.01,
    1.5,
    2,
    2 + 1e-9,
    2.3,
    3,
    4,
    5,
    7.7,
    10,
    31,
    100,
    499,
    499.9,
    500,
    1e3,
    1e5,
    1e9,
]


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_quantile_is_that_of_scipy(degrees):
    assert students_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-9, rel=0)


def test_infinitely_many_degrees_are_normal():
    assert students_quantile(math.inf) == pytest.approx(stats.norm.ppf(0.975), abs=1e-12)


@pytest.mark.parametrize("degrees", [math.nan, 0.0, 0.99])
def test_fewer_than_one_degree_has_no_interval(degrees):
    assert math.isnan(students_quantile(degrees))


def test_a_tensor_has_the_quantile_of_each():
    degrees = torch.tensor([[1.0, 5.0], [math.nan, 700.0]], dtype=torch.float64)
    expected = torch.tensor(
        [[students_quantile(n) for n in row] for row in degrees.tolist()], dtype=torch.float64
    )
    assert torch.equal(torch.nan_to_num(students_quantile(degrees)), torch.nan_to_num(expected))
