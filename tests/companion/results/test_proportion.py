"""The interval of a share, against scipy's Wilson interval."""

import pytest
from scipy.stats import binomtest

from attnlib.errors import BadInput
from companion.results.statistics import share_interval


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 20), (7, 20), (20, 20), (1, 1), (0, 1)])
def test_it_is_wilsons(successes, n, level):
    found = share_interval(successes, n, level=level)
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (found.value, found.n) == (successes / n, n)


def test_nothing_and_everything_have_an_end_at_the_share_itself():
    assert share_interval(0, 7).low == 0
    assert share_interval(7, 7).high == 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 4)])
def test_what_is_no_share_is_refused(successes, n):
    with pytest.raises(BadInput, match=f"{successes} of {n}"):
        share_interval(successes, n)


def test_a_level_without_a_quantile_is_refused():
    with pytest.raises(BadInput, match="expected one of"):
        share_interval(1, 2, level=0.8)
