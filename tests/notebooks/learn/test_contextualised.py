"""Contextualised agreement by hand, against a plain search, and the choice of a checkpoint."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean
from notebooks.learn.agreement.contextualised import Chosen, ComparisonRun, Contextualised, best_checkpoint

RUN = ComparisonRun((0, 50, 100, 500), (0.1, 0.4, 0.3, 0.6), (0.2, 0.5, 0.6, 0.9))

numbers = st.integers(0, 20).map(lambda number: number / 20)


def test_by_hand():
    assert RUN.contextualise(0.05) == Contextualised(0.2, 0, True)
    assert RUN.contextualise(0.1) == Contextualised(0.5, 50, True)  # more, not as much
    assert RUN.contextualise(0.35) == Contextualised(0.5, 50, True)  # the first, though step 100 falls below
    assert RUN.contextualise(0.4) == Contextualised(0.9, 500, True)
    assert RUN.contextualise(0.6) == Contextualised(0.9, 500, False)  # ξ*


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), numbers)
def test_it_is_a_search_through_the_checkpoints(curve, agreement):
    run = ComparisonRun(tuple(range(0, 10 * len(curve), 10)), *zip(*curve, strict=True))
    above = [place for place, (reached, _) in enumerate(curve) if reached > agreement]
    found = run.contextualise(agreement)
    place = min(above, default=len(curve) - 1)
    assert found == Contextualised(curve[place][1], 10 * place, bool(above))


def test_a_checkpoint_without_rows_exceeds_nothing():
    run = ComparisonRun((0, 1), (math.nan, 0.5), (0.1, 0.2))
    assert run.contextualise(0.0) == Contextualised(0.2, 1, True)


def test_the_mean_of_runs():
    other = ComparisonRun(RUN.steps, (0.3, 0.2, 0.5, 0.8), (0.4, 0.5, 0.6, 0.7))
    mean = ComparisonRun.mean([RUN, other])
    assert mean.steps == RUN.steps
    assert mean.agreement == pytest.approx((0.2, 0.3, 0.4, 0.7))
    assert mean.performance == pytest.approx((0.3, 0.5, 0.6, 0.8))
    assert ComparisonRun.mean([RUN]) == RUN


def test_one_half_chooses_and_the_other_reports():
    selecting = [RowMean(2, 10), RowMean(7, 10), RowMean(7, 10)]
    reporting = [RowMean(1, 5), RowMean(2, 5), RowMean(5, 5)]
    assert best_checkpoint((0, 10, 20), selecting, reporting) == Chosen(0.4, 10, 12 / 15)


def test_the_optimistic_choice_is_never_below_any_checkpoint():
    draw = np.random.default_rng(0)
    steps = tuple(range(8))
    for _ in range(50):
        first, second = ([RowMean(hits, 20) for hits in draw.integers(0, 20, 8)] for _ in range(2))
        chosen = best_checkpoint(steps, first, second)
        everything = [(one + other).value for one, other in zip(first, second, strict=True)]
        assert chosen.optimistic == max(everything) >= everything[chosen.step]
        assert first[chosen.step].value == max(half.value for half in first)


def test_choosing_on_what_is_reported_is_optimistic_on_pure_noise():
    """Every checkpoint agrees half of the time; the maximum over 20 says more, a fresh half does not."""
    draw = np.random.default_rng(1)
    found = [
        best_checkpoint(range(20), *[[RowMean(n, 50) for n in draw.binomial(50, 0.5, 20)] for _ in range(2)])
        for _ in range(300)
    ]
    assert np.mean([chosen.value for chosen in found]) == pytest.approx(0.5, abs=0.015)
    assert np.mean([chosen.optimistic for chosen in found]) > 0.56


def test_checkpoints_without_rows_are_passed_over():
    chosen = best_checkpoint((0, 1), [RowMean(undefined=3), RowMean(1, 2)], [RowMean(1, 2), RowMean(2, 2)])
    assert (chosen.value, chosen.step) == (1, 1)


def test_without_a_row_there_is_nothing_to_contextualise_or_choose():
    with pytest.raises(BadInput, match="is NaN"):
        RUN.contextualise(math.nan)
    with pytest.raises(BadInput, match="no checkpoint has a row"):
        best_checkpoint((0,), [RowMean()], [RowMean()])
