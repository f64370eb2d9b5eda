"""Average attention: typicality is the decomposition's, by other samples, within a bound of memory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.analysis import averages
from attnlib.analysis.averages import AverageAttention
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


@settings(max_examples=20)
@given(matrices(), st.integers(0, 12))
def test_halves_merged_are_the_whole_and_padding_is_not_read(summed, cut):
    halves = [averages_of(half) for half in (summed[:cut], summed[cut:]) if half]
    merged = halves[0] + halves[-1] if len(halves) > 1 else halves[0]
    moved = AverageAttention().update(*padded(summed, before=3))
    for other in (merged, moved):
        found = other.typicality(*padded(summed), minimum=1)
        torch.testing.assert_close(found, averages_of(summed).typicality(*padded(summed), minimum=1))


def test_hand_worked():
    """The average of (1, 0) and (0, 1) is (1/2, 1/2): (1, 0) is half a distribution away, (1/2, 1/2) none."""
    average = averages_of([torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])])
    judged = [torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0]])]
    found = average.typicality(*padded(judged), minimum=2)
    assert found[:2].tolist() == [0.5, 1.0]
    assert math.isnan(found[2])  # no sample of one position was summed
    assert average.typicality(*padded(judged), minimum=3).isnan().all()


def test_thirty_samples_make_an_average():
    one = torch.ones(1, 1)
    assert averages_of([one] * 29).typicality(*padded([one])).isnan().all()
    assert averages_of([one] * 30).typicality(*padded([one])).tolist() == [1.0]


# Memory.


def entries(average):
    return sum(matrix.numel() for matrix in average.cells.sums.values())


@settings(max_examples=30)
@given(matrices(), matrices(), st.integers(0, 30))
def test_no_more_entries_than_the_bound(summed, others, bound):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(averages, "ENTRIES", bound)
        first, second = AverageAttention(), AverageAttention()
        for some, average in ((summed, first), (others, second)):
            for matrix in some:
                average.update(*padded([matrix]))
        for average in (first, second, first + second):
            assert entries(average) <= bound
        kept = list(dict.fromkeys(matrix.shape for matrix in summed))  # by first sight
        fits = [matrix for matrix in summed if matrix.shape == kept[0]]
        if fits[0].numel() <= bound:
            columns, rows = fits[0].shape[1], fits[0].shape[0]
            assert first.cells.counts[columns, rows] == len(fits)


def test_a_size_that_came_first_is_kept_and_goes_on_being_counted(monkeypatch):
    """Room for six entries: 2 by 2 and 1 by 2 fill it, 3 by 3 finds none, nor does 1 by 1."""
    monkeypatch.setattr(averages, "ENTRIES", 6)
    sizes = [(2, 2), (3, 3), (1, 2), (1, 1), (2, 2)]
    average = AverageAttention()
    for size in sizes:
        average.update(*padded([torch.ones(size)]))
    assert average.cells.counts == {(2, 2): 2, (2, 1): 1}
    one_batch = AverageAttention().update(*padded([torch.ones(size) for size in sizes]))
    assert one_batch.cells.counts == average.cells.counts


# Files.


@settings(max_examples=20)
@given(matrices(), matrices())
def test_tensors_make_the_same_averages_that_go_on_the_same(summed, others):
    before = averages_of(summed)
    after = AverageAttention.of_tensors(before.tensors())
    for average in (before, after):
        average.update(*padded(others))
    for name, tensor in before.tensors().items():
        assert torch.equal(after.tensors()[name], tensor)


def test_no_averages_in_tensors():
    empty = AverageAttention.of_tensors(AverageAttention().tensors())
    assert empty.cells.counts == {}
