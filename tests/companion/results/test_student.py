"""Student's t against scipy, by hand, and where the percentile bootstrap fails."""

import math

import numpy as np
import pytest
from scipy import special, stats

from attnlib.errors import BadInput
from companion.results.statistics import (
    incomplete_beta,
    mean_interval,
    percentile_bootstrap,
    t_cdf,
    t_quantile,
)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30, 299, 2.5])
@pytest.mark.parametrize("probability", [0.01, 0.25, 0.5, 0.9, 0.95, 0.975, 0.9995])
def test_quantiles_match_scipy(degrees, probability):
    assert t_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-10, abs=1e-12
    )


@pytest.mark.parametrize("degrees", [1, 2, 7, 100])
@pytest.mark.parametrize("t", [-5.0, -0.1, 0.0, 0.7, 3.0, 40.0])
def test_cdf_matches_scipy(t, degrees):
    assert t_cdf(t, degrees) == pytest.approx(stats.t.cdf(t, degrees), abs=1e-13)


@pytest.mark.parametrize(
    ("a", "b", "x"), [(0.5, 0.5, 0.3), (2, 3, 0.9), (50, 0.5, 0.99), (1, 1, 0.25), (3, 2, 1.0)]
)
def test_incomplete_beta_matches_scipy(a, b, x):
    assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), abs=1e-13)


def test_hand_worked_interval():
    """Values 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.3027, half width 4.3027 / sqrt(3)."""
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.value == 2.0
    assert interval.high - 2 == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert interval.low + interval.high == pytest.approx(4.0)
    assert interval.as_dict().keys() == {"value", "low", "high", "n"}


def test_one_value_has_no_interval():
    interval = mean_interval([0.4])
    assert interval.value == 0.4
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_with_three_seeds_student_covers_and_the_bootstrap_does_not():
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(400, 3))
    student = np.mean([abs(row.mean()) <= mean_interval(row).high - row.mean() for row in draws])
    boots = [percentile_bootstrap(row, generator, resamples=200) for row in draws[:200]]
    bootstrap = np.mean([boot.low <= 0 <= boot.high for boot in boots])
    assert 0.92 < student < 0.98
    assert bootstrap < 0.85


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [[1.0], [2.0]]])
def test_bad_values(values):
    with pytest.raises(BadInput, match="finite"):
        mean_interval(values)


def test_bad_level_and_probability():
    with pytest.raises(BadInput, match="level=95"):
        mean_interval([1.0, 2.0], level=95)
    with pytest.raises(BadInput, match="probability"):
        t_quantile(1.0, 3)
