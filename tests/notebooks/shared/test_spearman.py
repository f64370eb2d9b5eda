"""Spearman's correlation against scipy, by hand, and its invariance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnlib.errors import BadInput
from notebooks.shared.spearman import average_ranks, spearman, stratified_spearman

pairs = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=40).filter(
    lambda rows: all(len(set(side)) > 1 for side in zip(*rows, strict=True))
)


@given(pairs)
def test_matches_scipy_with_ties(rows):
    x, y = np.array(rows, dtype=float).T
    assert average_ranks(x).tolist() == stats.rankdata(x).tolist()
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(pairs)
def test_only_ranks_matter(rows):
    x, y = np.array(rows, dtype=float).T
    assert spearman(np.exp(x), y) == spearman(x, y) == -spearman(x, -y)


def test_hand_worked():
    """Ranks 1 2 3 4 against 1 2 4 3: 1 - 6 * 2 / (4 * 15) = 0.8."""
    assert spearman([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)


def test_undefined_and_bad():
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))
    with pytest.raises(BadInput, match="one length"):
        spearman([1, 2], [1, 2, 3])
    with pytest.raises(BadInput, match="NaN"):
        spearman([1, math.nan], [1, 2])


def test_strata_that_differ_do_not_count():
    generator = np.random.default_rng(0)
    strata = np.repeat(np.arange(4), 50)
    inside = generator.normal(size=200)
    x, y = inside + 10 * strata, -inside - 10 * (3 - strata)
    assert stratified_spearman(x, y, strata.tolist()) == pytest.approx(-1)
    assert spearman(x, y) > 0.5  # what leaving the strata out would say
    alone = stratified_spearman(x[:50], y[:50] + x[50:100], strata[:50].tolist())
    assert alone == pytest.approx(spearman(x[:50], y[:50] + x[50:100]))


def test_small_strata_are_left_out():
    values = np.arange(10.0)
    assert np.isnan(stratified_spearman(values, values, ["a"] * 10))
