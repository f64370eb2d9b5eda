"""Average attention in bounded memory, against the exact typicality, by hand, and on real lengths."""

import gzip
import os
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from attnlib.decomposition import typicality
from attnlib.decomposition.joined_sizes import RESIZINGS, SummedMatrices, average_of_sizes, laid_on
from attnlib.decomposition.typicality import MINIMUM_CELL, MOST_ENTRIES, AverageAttention
from attnlib.errors import BadInput
from tests.attnlib.decomposition.component_builders import attention_matrices, padded
from tests.attnlib.models.model_builders import generator


def averages_of(matrices, at_once=None, limit=MOST_ENTRIES):
    average = AverageAttention(limit=limit)
    size = at_once or len(matrices)
    for start in range(0, len(matrices), size):
        average.update(*padded(matrices[start : start + size]))
        assert sum(matrix.numel() for matrix in average.sums.values()) <= limit
    return average


@given(attention_matrices(), attention_matrices(most=2), st.integers(1, 5))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_typicality_is_that_of_one_sample_among_those_summed(summed, judged, minimum):
    """The definition takes the sample out of its own average: so put it in first."""
    typical, exact = averages_of(summed).typicality(*padded(judged), minimum=minimum)
    expected = [typicality([*summed, sample], minimum=minimum + 1).per_sample[-1] for sample in judged]
    torch.testing.assert_close(typical.where(exact, torch.nan), torch.stack(expected), equal_nan=True)
    assert typical.isnan().all() == typical.isnan().any() == (len(summed) < minimum)


def test_averages_that_were_judged_by_are_forgotten_with_an_update():
    first, second = torch.eye(2)[None], torch.full((1, 2, 2), 0.5)
    everywhere = torch.ones(1, 2, dtype=torch.bool)
    average = AverageAttention().update(first, everywhere, everywhere)
    for _ in range(2):
        assert average.typicality(first, everywhere, everywhere, minimum=1)[0].tolist() == [1.0]
    average.update(second, everywhere, everywhere)
    assert average.typicality(first, everywhere, everywhere, minimum=1)[0].tolist() == [0.75]


@given(attention_matrices(), attention_matrices(most=2))
def test_nearest_sizes_are_joined_where_one_alone_is_too_rare(summed, judged):
    even = [torch.full_like(matrix, 1 / matrix.shape[1]) for matrix in (*summed, *judged)]
    typical, _ = averages_of(even).typicality(*padded(even), minimum=len(even))
    torch.testing.assert_close(typical, torch.ones_like(typical))


def test_a_matrix_laid_on_another_size_by_hand():
    """Two places into three. Stretched, a weight of the first goes two to one to the first and the second."""
    matrix = np.eye(2)[None] * [[4.0], [5.0]]
    stretched = [[8 / 3, 4 / 3, 0], [4 / 3, 3 / 2, 5 / 3], [0, 5 / 3, 10 / 3]]
    counted = {
        (1, 1): [[4, 0, 0], [0, 5, 0], [0, 0, 0]],
        (-1, -1): [[0, 0, 0], [0, 4, 0], [0, 0, 5]],
        (1, -1): [[0, 4, 0], [0, 0, 5], [0, 0, 0]],
        (-1, 1): [[0, 0, 0], [4, 0, 0], [0, 5, 0]],
    }
    for way, expected in {None: stretched, **counted}.items():
        np.testing.assert_allclose(laid_on(matrix, 3, 3, way=way)[0], expected)
        np.testing.assert_allclose(
            laid_on(matrix, 2, 2, way=way), matrix
        )  # nothing is moved on the same size


def average_with_distance(matrices, head, way):
    """The average of a head in 3 x 4 positions, and its distance from all matrices, resized back."""
    total = sum(laid_on(summed.total, 3, 4, way=way)[head] for summed in matrices)
    average = total / total.sum(-1, keepdims=True)
    distance = 0
    for summed in matrices:
        _, rows, columns = summed.total.shape
        original = summed.total[head] / summed.count
        for row, expected in zip(laid_on(average[None], rows, columns, way=way)[0], original, strict=True):
            distance += summed.count / rows * np.abs(row - expected).sum()
    return average, distance


def test_each_head_has_the_way_of_joining_sizes_that_is_nearest():
    rng, heads = np.random.default_rng(0), 200
    sizes = {(2, 6): 3, (5, 2): 1}  # (target, source): samples
    matrices = [
        SummedMatrices(count * rng.dirichlet(np.ones(columns), (heads, rows)), count)
        for (rows, columns), count in sizes.items()
    ]
    averages = average_of_sizes(matrices, 3, 4)
    for head in range(heads):
        ways = [average_with_distance(matrices, head, way) for way in RESIZINGS]
        nearest, _ = min(ways, key=lambda way: way[1])
        np.testing.assert_allclose(averages[head], nearest)


@pytest.mark.signatures
def test_the_nearest_way_of_joining_sizes_by_hand():
    """An identity of two is nearest to itself counted from the first, where the third row is even."""
    averages = averages_of([torch.eye(2)])
    typical, exact = averages.typicality(*padded([torch.eye(3)]), minimum=1)
    assert (typical.tolist(), exact.tolist()) == (pytest.approx([7 / 9]), [False])


def positional_heads(target, source, draw):
    """Sharp heads by position alone, each in its own way, and one by content alone."""
    step = torch.arange(target)
    apart = (torch.arange(target)[:, None] + 0.5) / target - (torch.arange(source) + 0.5) / source
    places = {
        "from the first": step.clamp(max=source - 1),
        "from the last": (source - target + step).clamp(min=0),
        "the last word": torch.full((target,), source - 1),
        "backwards": (source - 1 - step).clamp(min=0),
        "content": torch.randint(source, (target,), generator=draw),
    }
    sharp = {name: F.one_hot(place, source).float() for name, place in places.items()}
    return sharp | {"relative": (-(apart**2) / (2 * 0.08**2)).softmax(-1)}


def test_typicality_tells_heads_by_position_from_heads_by_content():
    draw = generator(0)
    sizes = torch.randint(8, 15, (400, 2), generator=draw).tolist()
    samples = [positional_heads(*size, draw) for size in sizes]
    heads = {name: padded([values[name] for values in samples]) for name in samples[0]}
    matrices, masks = torch.stack([values for values, *_ in heads.values()]), heads["content"][1:]
    average = AverageAttention(len(heads)).update(matrices[:, :300], *(values[:300] for values in masks))
    assert max(average.counts.values()) < MINIMUM_CELL  # sizes are joined for all that follows
    typical, _ = average.typicality(matrices[:, 300:], *(values[300:] for values in masks))
    by_head = dict(zip(heads, typical.mean(1).tolist(), strict=True))
    assert by_head.pop("content") < 0.2
    assert min(by_head.values()) > 0.9, by_head


MULTI30K = Path(os.environ.get("ATTNLIB_DATA", "")) / "multi30k"


def of_real_lengths(count):
    """Of translations that people made: heads by position, by words, by both, and the masks of both sides."""
    draw, vectors, samples, sides = generator(0), {}, [], []
    for side in ("de", "en"):
        with gzip.open(MULTI30K / f"train.{side}.gz", "rt", encoding="utf-8") as lines:
            sides.append([line.split() for line in islice(lines, count)])
    for pair in zip(*sides, strict=True):
        source, target = (
            torch.stack([vectors.setdefault(word, torch.randn(8, generator=draw)) for word in words])
            for words in pair
        )
        shape = len(target), len(source)
        relative, steps = (torch.arange(size) / size for size in shape), map(torch.arange, shape)
        relative, steps = (rows[:, None] - other for rows, other in (relative, steps))
        words = target @ source.T / 8**0.5
        scores = -50 * relative**2, -(steps**2) / 2, words / 2 - 20 * relative**2, 2 * words
        samples.append([head.softmax(-1) for head in scores])
    heads = [padded(head) for head in zip(*samples, strict=True)]
    return torch.stack([head for head, *_ in heads]), heads[0][1:]


@pytest.mark.slow
@pytest.mark.skipif(not MULTI30K.is_dir(), reason="reads Multi30k: set ATTNLIB_DATA")
def test_on_real_lengths_the_nearest_sizes_say_what_the_exact_one_says():
    """A size is left out and judged by its neighbours: half a place is lost, sentences keep their order."""
    heads, masks = of_real_lengths(3000)
    sizes = torch.stack([mask.sum(1) for mask in masks], 1)
    for (target, source), count in Counter(map(tuple, sizes.tolist())).most_common(6):
        assert count > 2 * MINIMUM_CELL
        here = (sizes == torch.tensor([target, source])).all(1)
        average = AverageAttention(4).update(heads[:, ~here], *(mask[~here] for mask in masks))
        near, exact = average.typicality(heads[:, here], *(mask[here] for mask in masks))
        assert not exact.any()
        expected = torch.stack([typicality(values).per_sample for values in heads[:, here, :target, :source]])
        assert float((near - expected).abs().max()) < 0.08
        torch.testing.assert_close(expected[:2], torch.ones_like(expected[:2]))  # by position alone
        for values, other in zip(near[2:], expected[2:], strict=True):
            assert float(values.mean()) == pytest.approx(float(other.mean()), abs=0.01)
            assert float(torch.corrcoef(torch.stack([values, other]))[0, 1]) > 0.95


def fitting_sizes(summed, bound):
    """What has to be kept, from all sizes at once: those up to the longest side for which all sizes fit."""
    sizes = {tuple(matrix.shape) for matrix in summed}
    fits = [n for n in range(10) if sum(t * s for t, s in sizes if max(t, s) <= n) <= bound]
    return {(s, t) for t, s in sizes if max(t, s) <= fits[-1]}


@given(attention_matrices(), attention_matrices(), st.integers(0, 40), st.randoms(use_true_random=False))
def test_averages_within_the_bound_depend_on_no_order(matrices, others, bound, random):
    """Of halves through files, of the whole and of any order: sizes kept, samples, sums, what is beyond."""
    every = [*matrices, *others]
    shuffled = random.sample(every, len(every))
    kept = fitting_sizes(every, bound)
    halves = [averages_of(half, at_once=1, limit=bound).state_dict() for half in (matrices, others)]
    first, second = (AverageAttention(limit=bound).load_state_dict(half) for half in halves)
    whole = averages_of(every, limit=bound)
    merged = first + second, second + AverageAttention(limit=bound) + first
    for average in (whole, averages_of(shuffled, at_once=1, limit=bound), *merged):
        counts = {cell: sum(matrix.shape == cell[::-1] for matrix in every) for cell in kept}
        assert average.counts == counts
        assert average.sums.keys() == kept
        for cell, total in average.sums.items():
            torch.testing.assert_close(total, whole.sums[cell])
        beyond = average.beyond(*padded(shuffled)[1:]).tolist()
        assert beyond == [tuple(matrix.shape)[::-1] not in kept for matrix in shuffled]


def test_averages_of_other_heads_cannot_be_merged():
    with pytest.raises(BadInput, match="same heads"):
        AverageAttention(2) + AverageAttention(3)
