"""Intervals over few runs, and rank correlations: by hand, by simulation, and where they do not exist."""

import math
from functools import partial
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from notebooks.shared import intervals
from notebooks.shared.intervals import (
    bounded,
    hierarchical_bootstrap,
    interval_of,
    jackknife_interval,
    kind,
    last_minus_first,
    mean_interval,
    share_interval,
    spearman,
)
from tests.attnlib.refusals import assert_refused
from tests.notebooks.worked import assert_answer

# The jackknife


def products(values):
    pairs = [x * y for x, y in permutations(values, 2)]
    return fmean(pairs) if pairs else math.nan


def test_the_jackknife_by_hand():
    """1, 2, 3: mean product 11/3; without each 6, 3, 2, whose squares about 11/3 sum to 26/3; 2/3 of it."""
    interval = jackknife_interval([1.0, 2.0, 3.0], products)
    assert interval["value"] == pytest.approx(11 / 3)
    assert interval["high"] - interval["value"] == pytest.approx(
        stats.t.ppf(0.975, 2) * math.sqrt(2 / 3 * 26 / 3)
    )
    assert interval["low"] + interval["high"] == pytest.approx(22 / 3)
    assert interval["n"] == 3


@pytest.mark.parametrize("units", [[2.0], [1.0, 2.0]])
def test_where_a_number_needs_every_unit_there_is_none(units):
    interval = jackknife_interval(units, products)
    assert np.isnan([interval["low"], interval["high"]]).all()
    assert interval["n"] == len(units)


# Means and shares, by scipy.stats


@given(st.integers(1, 200), st.data())
def test_the_interval_of_a_share_is_that_of_scipy(n, data):
    successes = data.draw(st.integers(0, n))
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    interval = share_interval(successes, n)
    assert (interval["low"], interval["high"]) == (expected.low, expected.high)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_that_of_scipy(values):
    assume(np.ptp(values) > 1e-3)  # scipy warns of equal values
    interval = mean_interval(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (interval["low"], interval["high"]) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


# The bootstrap


def test_the_mean_of_zeros_with_ones_follows_the_binomial():
    """50 zeros and 50 ones: the resampled mean is Binomial(100, 1/2) / 100, 2.5 % points 0.40 and 0.60."""
    interval, again = (
        hierarchical_bootstrap([[0.0, 1.0] * 50], np.random.default_rng(0), resamples=5000) for _ in "ab"
    )
    assert interval == again  # the same generator, the same interval
    assert interval["low"] == pytest.approx(0.40, abs=0.011)
    assert interval["high"] == pytest.approx(0.60, abs=0.011)


def test_seeds_that_agree_within_a_task_do_not_narrow_the_interval():
    groups = {"a": [0.0] * 20, "b": [1.0] * 20}
    nested = hierarchical_bootstrap(groups, np.random.default_rng(0))
    flat = hierarchical_bootstrap([np.concatenate(list(groups.values()))], np.random.default_rng(0))
    assert (nested["low"], nested["high"]) == (0.0, 1.0)  # both draws the same task: one time in two
    assert flat["high"] - flat["low"] < 0.4
    assert nested["n"] == flat["n"] == 40
    marks = hierarchical_bootstrap({"a": [0.0] * 3, "b": [1.0] * 3}, np.random.default_rng(0), nested=False)
    assert (marks["value"], marks["low"], marks["high"]) == (0.5, 0.5, 0.5)  # of a dial, which are all kept


def resampled_correlation(points):
    how = {"statistic": intervals.spearman_of_points, "resamples": 300}
    return hierarchical_bootstrap(points, np.random.default_rng(0), **how)


def test_points_that_only_rise_correlate_in_every_resample():
    rising = [np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 3.0], [4.0, 5.0]])]
    interval = resampled_correlation(rising)
    assert interval["value"] == interval["low"] == interval["high"] == pytest.approx(1.0)


def test_points_one_above_the_other_have_no_correlation():
    upright = [np.array([[1.0, 1.0], [1.0, 2.0]])]
    interval = resampled_correlation(upright)
    assert np.isnan([interval["value"], interval["low"]]).all()


# Rank correlations

rows_of_pairs = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=40).filter(
    lambda rows: all(len(set(side)) > 1 for side in zip(*rows, strict=True))
)


@given(rows_of_pairs)
def test_matches_scipy_with_ties(rows):
    x, y = np.array(rows, dtype=float).T
    assert intervals.average_ranks(x).tolist() == stats.rankdata(x).tolist()
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert math.isnan(spearman(0 * x, y))


def test_strata_that_differ_do_not_count():
    generator = np.random.default_rng(0)
    strata = np.repeat(np.arange(4), 50)
    inside = generator.normal(size=200)
    x, y = inside + 10 * strata, -inside - 10 * (3 - strata)
    assert intervals.stratified_spearman(x, y, strata.tolist()) == pytest.approx(-1)
    assert spearman(x, y) > 0.5  # what leaving the strata out would say
    alone = intervals.stratified_spearman(x[:50], y[:50] + x[50:100], strata[:50].tolist())
    assert alone == pytest.approx(spearman(x[:50], y[:50] + x[50:100]))
    assert np.isnan(intervals.stratified_spearman(x[:10], x[:10], ["a"] * 10))  # too small a stratum
    assert np.isnan(intervals.stratified_spearman(0 * x, y, strata.tolist()))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Means of the last mark and of the first.
        pytest.param((np.array([[0, 1.0], [0, 3], [1, 9], [4, 7], [4, 5]]),), 4, id="means_of_repeated_marks")
    ],
)
def test_last_minus_first_by_hand(given, expected):
    assert_answer(last_minus_first(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(({"architecture": "AED", "cell": "lstm"},), "AED-lstm", id="a_cell_that_is_named"),
        pytest.param(({"architecture": "AED", "cell": "gru"},), "AED", id="a_gru"),
        pytest.param(({"architecture": "AO", "cell": "none"},), "AO", id="no_cell"),
    ],
)
def test_kind_by_hand(given, expected):
    assert_answer(kind(*given), expected)


FMEAN = fmean


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of a mean it is Student's interval, 0.8 · 2.7764 to either side. Without a unit a number may not
        # exist.
        pytest.param(
            ([3.0, 1.0, 4.0, 1.0, 5.0], FMEAN),
            {"value": 2.8, "low": 0.5788439158, "high": 5.0211560842, "n": 5},
            id="of_a_mean",
        ),
        pytest.param(
            ([1.0], FMEAN), {"value": 1, "low": math.nan, "high": math.nan, "n": 1}, id="of_one_unit"
        ),
    ],
)
def test_jackknife_interval_by_hand(given, expected):
    assert_answer(jackknife_interval(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # What is undefined is left out.
        pytest.param(([1.0, 3.0, None, math.nan],), {"value": 2, "n": 2}, id="what_is_undefined_is_left_out"),
        pytest.param(
            ([None, math.nan],), {"value": None, "low": None, "high": None, "n": 0}, id="nothing_is_defined"
        ),
    ],
)
def test_interval_of_by_hand(given, expected):
    assert_answer(interval_of(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Mean 2, s = 1, Student's 97.5 % point with two degrees of freedom 4.3027, half width 4.3027/√3; and
        # of one value.
        pytest.param(
            ([1.0, 2.0, 3.0],),
            {"value": 2, "low": -0.4841377118, "high": 4.4841377118, "n": 3},
            id="of_three",
        ),
        pytest.param(([0.4],), {"value": 0.4, "low": math.nan, "high": math.nan, "n": 1}, id="of_one"),
    ],
)
def test_mean_interval_by_hand(given, expected):
    assert_answer(mean_interval(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # No further than it can be.
        pytest.param((0, 7), {"value": 0, "low": 0}, id="none_of_seven"),
        pytest.param((7, 7), {"value": 1, "high": 1}, id="all_of_seven"),
        pytest.param((1, 1), {"n": 1}, id="one_of_one"),
    ],
)
def test_share_interval_by_hand(given, expected):
    assert_answer(share_interval(*given), expected)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param((-15.0, 15.0), (0.0, 15.0), id="below_nothing"),
        pytest.param((85.0, 115.0), (85.0, 100.0), id="above_all"),
        pytest.param((40.0, 60.0), (40.0, 60.0), id="within"),
    ],
)
def test_an_interval_of_a_percentage_ends_where_percentages_do(ends, expected):
    low, high = ends
    cut = bounded({"value": (low + high) / 2, "low": low, "high": high, "n": 3})
    assert (cut["low"], cut["high"]) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(({"scan": []}, None), "Group 'scan' has no rows", id="empty group"),
        pytest.param(([[1.0], [[1.0, 2.0]]], None), "one width", id="one_width"),
        pytest.param(([], None), "at least one", id="no group"),
    ],
)
def test_hierarchical_bootstrap_refuses(given, message):
    assert_refused(partial(hierarchical_bootstrap, *given), message)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(([], None), "jackknife of no units", id="no unit")]
)
def test_jackknife_interval_refuses(given, message):
    assert_refused(partial(jackknife_interval, *given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(([],), id="empty"),
        pytest.param(([1.0, math.nan],), id="missing value"),
        pytest.param(([[1.0], [2.0]],), id="rows for values"),
    ],
)
def test_the_interval_of_what_is_no_row_of_numbers_is_refused(given):
    assert_refused(partial(mean_interval, *given), "finite")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((0, 0), "0 of 0", id="nothing was tried"),
        pytest.param((3, 2), "3 of 2", id="more successes than trials"),
        pytest.param((-1, 4), "-1 of 4", id="negative successes"),
    ],
)
def test_share_interval_refuses(given, message):
    assert_refused(partial(share_interval, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(([1, 2], [1, 2, 3]), "one length", id="one_length"),
        pytest.param(([1, math.nan], [1, 2]), "NaN", id="nan"),
    ],
)
def test_spearman_refuses(given, message):
    assert_refused(partial(spearman, *given), message)
