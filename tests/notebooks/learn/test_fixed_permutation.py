"""Fixed permutations: what is read off courses and pairs of networks, worked by hand."""

import math

import pandas as pd
import pytest

from notebooks.learn.fixed_permutation.experiment import furthest, late_rise
from notebooks.shared.doublings import before_learning, between_snapshots
from tests.notebooks.worked import assert_answer


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of the last quarter.
        pytest.param(({"accuracy": [0, 0.1, 0.2, 0.3, 0.9]},), 0.6, id="of_the_last_quarter")
    ],
)
def test_late_rise_by_hand(given, expected):
    assert_answer(late_rise(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(({"steps": [0, 10, 40], "accuracy": [0, 0, 1]},), 10, id="half_way_up"),
        pytest.param(({"steps": [0, 10, 40], "accuracy": [1, 1, 1]},), 0, id="right_from_the_start"),
        pytest.param(({"steps": [0, 10, 40], "accuracy": [0, 0, 0]},), 40, id="never_right"),
    ],
)
def test_before_learning_by_hand(given, expected):
    assert_answer(before_learning(*given), expected)


ONE_SNAPSHOT = [0, -0.5, 0.25]
NO_END = [3, 2, math.inf]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # All at one snapshot: no interval over pairs, and what snapshots leave open.
        pytest.param(
            ([ONE_SNAPSHOT, ONE_SNAPSHOT],),
            {"value": 0, "low": -0.5, "high": 0.25, "n": 2},
            id="all_at_one_snapshot",
        ),
        # One that is never seen to get there leaves no upper end.
        pytest.param(
            ([NO_END, NO_END],),
            {"value": 3, "low": 2, "high": None, "n": 2, "at_least": True},
            id="one_never_gets_there",
        ),
        # Of a difference nothing is known where what is subtracted has no end.
        pytest.param(
            ([[1, -math.inf, 2], [1, 0, 2]],),
            {"value": 1, "low": None, "high": None, "n": 2},
            id="what_is_subtracted_has_no_end",
        ),
    ],
)
def test_between_snapshots_by_hand(given, expected):
    assert_answer(between_snapshots(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The widest gap on the way, held against that between two networks of one order.
        pytest.param(
            (
                pd.DataFrame({0: [0, 0.5, 0.9], 1: [0, 0.6, 1]}),
                pd.DataFrame({0: [0, 0.8, 1], 1: [0, 0.9, 1]}),
            ),
            {"value": -0.3, "steps": 1, "looks": 3, "n": 2, "among": 0.1},
            id="widest_gap_on_the_way",
        )
    ],
)
def test_furthest_by_hand(given, expected):
    assert_answer(furthest(*given), expected)
