"""Bootstrap intervals: exact small cases, nesting, reproducibility."""

import math

import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.results.spearman import spearman_of_points
from companion.results.statistics import hierarchical_bootstrap, percentile_bootstrap


def test_same_generator_same_interval():
    values = [0.1, 0.5, 0.2, 0.9]
    first, second = (percentile_bootstrap(values, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    assert first.low < first.value < first.high
    assert first.n == 4


def test_constant_values_have_no_width():
    interval = percentile_bootstrap([2.0] * 5, np.random.default_rng(0))
    assert (interval.value, interval.low, interval.high) == (2.0, 2.0, 2.0)


def test_mean_of_zero_and_one_follows_the_binomial():
    """50 zeros and 50 ones: the resampled mean is Binomial(100, 1/2) / 100, 2.5 % points 0.40 and 0.60."""
    interval = percentile_bootstrap([0.0, 1.0] * 50, np.random.default_rng(0), resamples=5000)
    assert interval.low == pytest.approx(0.40, abs=0.011)
    assert interval.high == pytest.approx(0.60, abs=0.011)


def test_seeds_that_agree_within_a_task_do_not_narrow_the_interval():
    groups = {"a": [0.0] * 20, "b": [1.0] * 20}
    nested = hierarchical_bootstrap(groups, np.random.default_rng(0))
    flat = percentile_bootstrap(np.concatenate(list(groups.values())), np.random.default_rng(0))
    assert (nested.low, nested.high) == (0.0, 1.0)  # both draws the same task: one time in two
    assert flat.high - flat.low < 0.4
    assert nested.n == flat.n == 40


def test_one_group_is_the_flat_bootstrap():
    values = np.arange(6.0)
    assert hierarchical_bootstrap([values], np.random.default_rng(1)) == percentile_bootstrap(
        values, np.random.default_rng(1)
    )


def test_points_under_a_correlation():
    points = [np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 3.0], [4.0, 5.0]])]
    interval = hierarchical_bootstrap(
        points, np.random.default_rng(0), statistic=spearman_of_points, resamples=300
    )
    assert interval.value == interval.low == interval.high == pytest.approx(1.0)


def test_all_resamples_undefined():
    points = np.array([[1.0, 1.0], [1.0, 2.0]])
    interval = percentile_bootstrap(
        points, np.random.default_rng(0), statistic=spearman_of_points, resamples=10
    )
    assert math.isnan(interval.value)
    assert math.isnan(interval.low)


def test_bad_groups():
    generator = np.random.default_rng(0)
    with pytest.raises(BadInput, match="Group 'scan' has no rows"):
        hierarchical_bootstrap({"scan": []}, generator)
    with pytest.raises(BadInput, match="one width"):
        hierarchical_bootstrap([[1.0], [[1.0, 2.0]]], generator)
    with pytest.raises(BadInput, match="0 groups"):
        hierarchical_bootstrap([], generator)
    with pytest.raises(BadInput, match="resamples=0"):
        percentile_bootstrap([1.0], generator, resamples=0)
