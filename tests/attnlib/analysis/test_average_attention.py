"""Average attention: typicality is the decomposition's, by other samples, within a bound of memory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.analysis import fit
from attnlib.analysis.fit import AverageAttention
from attnlib.decomposition import typicality


@st.composite
def matrices(draw, most=12):
    """Attention matrices (target, source) of a few shapes, some many, some few, mixed."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4))
    found = [
        torch.randn(shape, generator=generator).softmax(-1)
        for shape in shapes
        for _ in range(draw(st.integers(1, most)))
    ]
    return [found[k] for k in torch.randperm(len(found), generator=generator)]


def padded(matrices, *, before=0):
    """One batch of all with its masks; NaN at padding, of which ``before`` columns stand in front."""
    target, source = (max(sizes) for sizes in zip(*(m.shape for m in matrices), strict=True))
    attention = torch.full((len(matrices), target, before + source), torch.nan)
    masks = torch.zeros(len(matrices), target).bool(), torch.zeros(len(matrices), before + source).bool()
    for k, matrix in enumerate(matrices):
        rows, columns = matrix.shape
        attention[k, :rows, before : before + columns] = matrix
        masks[0][k, :rows] = True
        masks[1][k, before : before + columns] = True
    return attention, *masks


def averages_of(matrices):
    return AverageAttention().update(*padded(matrices))


@settings(max_examples=40)
@given(matrices(), matrices(most=2), st.integers(1, 5))
def test_typicality_is_that_of_one_sample_among_those_summed(summed, judged, minimum):
    """The definition takes the sample out of its own average: so put it in first."""
    found = averages_of(summed).typicality(*padded(judged), minimum=minimum)
    expected = [typicality([*summed, one], minimum=minimum + 1).per_sample[-1] for one in judged]
    torch.testing.assert_close(found, torch.stack(expected), equal_nan=True)


def test_hand_worked():
    """The average of (1, 0) and (0, 1) is (1/2, 1/2): (1, 0) is half a distribution away, (1/2, 1/2) none."""
    average = averages_of([torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])])
    judged = [torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0]])]
    found = average.typicality(*padded(judged), minimum=2)
    assert found[:2].tolist() == [0.5, 1.0]
    assert math.isnan(found[2])  # no sample of one position was summed
    assert average.typicality(*padded(judged), minimum=3).isnan().all()


# Memory.


def entries(average):
    return sum(matrix.numel() for matrix in average.cells.sums.values())


def kept_of(summed, bound):
    """What has to be kept, from all sizes at once: those up to the longest side for which all sizes fit."""
    sizes = {tuple(matrix.shape) for matrix in summed}
    longest = 0
    while longest < 9 and sum(t * s for t, s in sizes if max(t, s) <= longest + 1) <= bound:
        longest += 1
    return {(s, t) for t, s in sizes if max(t, s) <= longest}


@settings(max_examples=60)
@given(matrices(), matrices(), st.integers(0, 40), st.randoms(use_true_random=False))
def test_shards_and_orders_make_no_difference_within_the_bound(some, others, bound, random):
    """Sizes kept, how many samples of each, their sums, and what is judged: of halves, of the whole, and of
    any order; halves go through files."""
    shuffled = [*some, *others]
    random.shuffle(shuffled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "ENTRIES", bound)
        halves = []
        for half in (some, others):
            average = AverageAttention()
            for matrix in half:
                average.update(*padded([matrix]))
                assert entries(average) <= bound
            halves.append(AverageAttention.of_tensors(average.tensors()))
        added = [halves[0] + halves[1], halves[1] + AverageAttention() + halves[0]]
        one_batch = averages_of([*some, *others])
        one_by_one = AverageAttention()
        for matrix in shuffled:
            one_by_one.update(*padded([matrix]))
        for average in (one_batch, one_by_one, *added):
            assert entries(average) <= bound
            assert average.cells.counts.keys() == kept_of(shuffled, bound)
            assert average.cells.counts == one_batch.cells.counts
            for cell, total in average.cells.sums.items():
                torch.testing.assert_close(total, one_batch.cells.sums[cell])
            beyond = average.beyond(*padded(shuffled)[1:]).tolist()
            assert beyond == [tuple(m.shape)[::-1] not in kept_of(shuffled, bound) for m in shuffled]
        for cell, count in one_batch.cells.counts.items():  # whole, not from when it was kept on
            assert count == sum(tuple(matrix.shape) == cell[::-1] for matrix in shuffled)


def test_sizes_up_to_a_longest_side_hand_worked(monkeypatch):
    """Room for six entries: 1 by 1, 1 by 2 and 2 by 1 take five, and 2 by 2 does not fit beside them."""
    monkeypatch.setattr(fit, "ENTRIES", 6)
    average = AverageAttention()
    for size in [(2, 2), (1, 2), (2, 2)]:
        average.update(*padded([torch.ones(size)]))
    assert average.cells.counts == {(2, 2): 2, (2, 1): 1}
    assert average.longest is None
    for size in [(1, 1), (1, 1), (2, 2), (3, 1)]:
        average.update(*padded([torch.ones(size)]))
    assert average.cells.counts == {(1, 1): 2}
    assert average.longest == 1
    found = average.typicality(*padded([torch.ones(1, 1), torch.ones(2, 2)]), minimum=1)
    assert found[0] == 1
    assert math.isnan(found[1])
    assert average.beyond(*padded([torch.ones(1, 1), torch.ones(2, 1)])[1:]).tolist() == [False, True]
