"""Reciprocity against hand-worked matrices, its definition in a loop, and what leaves it as it is."""

import math

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.reciprocity import ReciprocitySums, doubly_centred, map_symmetry


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def of(matrices, level):
    return ReciprocitySums().update(matrices, level).result()


@pytest.mark.parametrize("level", ["attention", "scores"])
def test_symmetric_and_antisymmetric_matrices(level):
    matrix = draw(2, 6, 6)
    assert of(matrix + matrix.mT, level).value == pytest.approx(1)
    assert of(matrix + matrix.mT, level).ratio == 0
    # Entries off the diagonal of an antisymmetric matrix have mean 0: nothing is subtracted from it.
    assert of(matrix - matrix.mT, "attention").value == pytest.approx(-1)


def test_the_definition_in_a_loop():
    (matrix,) = draw(1, 4, 4, seed=1)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    mean = np.mean([matrix[i, j].item() for i, j in pairs])
    left = {(i, j): matrix[i, j].item() - mean for i, j in pairs}
    expected = sum(left[i, j] * left[j, i] for i, j in pairs) / sum(v**2 for v in left.values())
    assert of(matrix[None], "attention").value == pytest.approx(expected)
    # Pearson's correlation of the pairs read both ways.
    both = np.array([[left[i, j], left[j, i]] for i, j in pairs])
    assert expected == pytest.approx(np.corrcoef(both.T)[0, 1])
    apart = math.sqrt(sum((matrix[i, j] - matrix[j, i]).item() ** 2 for i, j in np.ndindex(4, 4)))
    together = math.sqrt(sum((matrix[i, j] + matrix[j, i]).item() ** 2 for i, j in np.ndindex(4, 4)))
    assert of(matrix[None], "attention").ratio == pytest.approx(apart / together)


def test_it_is_the_symmetric_share_less_the_antisymmetric_one():
    matrix = doubly_centred(draw(1, 5, 5, seed=2))
    off = ~torch.eye(5, dtype=torch.bool)
    symmetric, rest = (((matrix + sign * matrix.mT) / 2 * off).square().sum() for sign in (1, -1))
    expected = (symmetric - rest) / (symmetric + rest)
    assert of(matrix, "scores").value == pytest.approx(expected.item())


def test_what_a_softmax_does_not_see_does_not_count():
    """A number a row changes no attention; log attention is the scores but for a number a row."""
    scores = draw(3, 5, 5, seed=3)
    before = of(scores, "scores").value
    assert of(scores + draw(3, 5, 1, seed=4), "scores").value == pytest.approx(before)
    assert of(scores.softmax(-1).log(), "scores").value == pytest.approx(before)


def test_equal_scores_both_ways_do_not_make_equal_attention():
    """A word that all others like and that likes none of them more: symmetric scores, unequal rows."""
    scores = torch.zeros(1, 6, 6, dtype=torch.float64)
    scores[:, 0, 1:] = scores[:, 1:, 0] = math.log(5)
    attention = scores.softmax(-1)
    assert of(scores, "scores").value == pytest.approx(1)
    torch.testing.assert_close(attention[0, 1, 0].item(), 5 / 10)  # from each of the five
    torch.testing.assert_close(attention[0, 0, 1].item(), 5 / 26)  # to each of the five
    assert of(attention, "attention").value < 0.5


def test_random_scores_have_one_over_the_square():
    for size in (5, 9):
        found = of(draw(20_000, size, size, seed=size), "scores").value
        assert found == pytest.approx(1 / (size - 1) ** 2, abs=0.005)
        assert of(draw(20_000, size, size, seed=size), "attention").value == pytest.approx(0, abs=0.06)


def test_sums_of_parts_are_sums_of_all():
    matrices = draw(6, 4, 4, seed=5)
    parts = ReciprocitySums().update(matrices[:2], "scores").update(matrices[2:], "scores").result()
    whole = of(matrices, "scores")
    assert parts.value == pytest.approx(whole.value)
    assert parts.ratio == pytest.approx(whole.ratio)


def test_maps():
    query, key = draw(3, 7, seed=6), draw(3, 7, seed=7)
    assert map_symmetry(query, query) == pytest.approx(1)
    product = (query.T @ key).numpy()
    expected = np.trace(product @ product) / np.linalg.norm(product) ** 2
    assert map_symmetry(query, key) == pytest.approx(expected)


def test_what_has_no_pairs_is_refused_or_undefined():
    assert math.isnan(ReciprocitySums().result().value)
    assert math.isnan(of(torch.ones(1, 3, 3), "attention").value)
    with pytest.raises(BadInput, match=r"shape \(1, 2, 3\)"):
        ReciprocitySums().update(torch.ones(1, 2, 3), "scores")
