"""Average attention: typicality is the decomposition's, by other samples, within a bound of memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.analysis import fit
from attnlib.analysis.fit import AverageAttention
from attnlib.decomposition import typicality
from tests.attnlib.decomposition.component_builders import attention_matrices, padded


def averages_of(matrices, at_once=None):
    average = AverageAttention()
    size = at_once or len(matrices)
    for start in range(0, len(matrices), size):
        average.update(*padded(matrices[start : start + size]))
        assert sum(matrix.numel() for matrix in average.cells.sums.values()) <= fit.ENTRIES
    return average


@settings(max_examples=40)
@given(attention_matrices(), attention_matrices(most=2), st.integers(1, 5))
def test_typicality_is_that_of_one_sample_among_those_summed(summed, judged, minimum):
    """The definition takes the sample out of its own average: so put it in first."""
    found = averages_of(summed).typicality(*padded(judged), minimum=minimum)
    expected = [typicality([*summed, one], minimum=minimum + 1).per_sample[-1] for one in judged]
    torch.testing.assert_close(found, torch.stack(expected), equal_nan=True)


def kept_of(summed, bound):
    """What has to be kept, from all sizes at once: those up to the longest side for which all sizes fit."""
    sizes = {tuple(matrix.shape) for matrix in summed}
    longest = 0
    while longest < 9 and sum(t * s for t, s in sizes if max(t, s) <= longest + 1) <= bound:
        longest += 1
    return {(s, t) for t, s in sizes if max(t, s) <= longest}


@settings(max_examples=60)
@given(attention_matrices(), attention_matrices(), st.integers(0, 40), st.randoms(use_true_random=False))
def test_shards_and_orders_make_no_difference_within_the_bound(some, others, bound, random):
    """Sizes kept, how many samples of each, their sums, and what is judged: of halves through files, of the
    whole, and of any order."""
    every = [*some, *others]
    shuffled = random.sample(every, len(every))
    kept = kept_of(every, bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "ENTRIES", bound)
        halves = (averages_of(half, at_once=1).tensors() for half in (some, others))
        first, second = map(AverageAttention.of_tensors, halves)
        whole = averages_of(every)
        merged = first + second, second + AverageAttention() + first
        for average in (whole, averages_of(shuffled, at_once=1), *merged):
            counts = {cell: sum(matrix.shape == cell[::-1] for matrix in every) for cell in kept}
            assert average.cells.counts == counts
            assert average.cells.sums.keys() == kept
            for cell, total in average.cells.sums.items():
                torch.testing.assert_close(total, whole.cells.sums[cell])
            beyond = average.beyond(*padded(shuffled)[1:]).tolist()
            assert beyond == [tuple(matrix.shape)[::-1] not in kept for matrix in shuffled]
