"""Contextualised agreement by hand, against a plain search, and the choice of a checkpoint."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from notebooks.learn.agreement.contextualised import best_checkpoint, contextualise

numbers = st.integers(0, 20).map(lambda number: number / 20)


@pytest.mark.parametrize(
    ("agreement", "expected"),
    [
        (0.05, (0.2, False)),
        (0.1, (0.5, False)),  # more, not as much
        (0.35, (0.5, False)),  # the first, though the third falls below
        (0.4, (0.9, False)),
        (0.6, (0.9, True)),  # ξ*
    ],
)
def test_by_hand(agreement, expected):
    assert contextualise(agreement, (0.1, 0.4, 0.3, 0.6), (0.2, 0.5, 0.6, 0.9)) == expected


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), numbers)
def test_it_is_a_search_through_the_checkpoints(curve, agreement):
    above = [performance for reached, performance in curve if reached > agreement]
    expected = (above[0], False) if above else (curve[-1][1], True)
    assert contextualise(agreement, *zip(*curve, strict=True)) == expected


def test_checkpoints_without_rows_are_passed_over():
    assert contextualise(0.0, (math.nan, 0.5), (0.1, 0.2)) == (0.2, False)
    assert best_checkpoint([math.nan, 0.5, 0.7, 0.7]) == 2


def test_choosing_on_what_is_reported_is_optimistic_on_pure_noise():
    """Every checkpoint agrees half of the time; the maximum over 20 says more, a fresh half does not."""
    selecting, reporting = np.random.default_rng(1).binomial(50, 0.5, (2, 300, 20)) / 50
    chosen = [fresh[best_checkpoint(half)] for half, fresh in zip(selecting, reporting, strict=True)]
    assert np.mean(chosen) == pytest.approx(0.5, abs=0.015)
    assert np.mean([half[best_checkpoint(half)] for half in selecting]) > 0.56


def test_without_a_row_there_is_nothing_to_contextualise_or_choose():
    with pytest.raises(BadInput, match="is NaN"):
        contextualise(math.nan, [0.1], [0.2])
    with pytest.raises(BadInput, match="no checkpoint has a row"):
        best_checkpoint([math.nan])
