"""Alignment error rate by hand, soft measures and the diagonal."""

import math

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.alignment_error import (
    AlignmentSums,
    diagonal,
    gold_links,
    words_only,
)


def judged(attention, gold, null=None):
    """Quality of one sentence pair given as lists."""
    attention = torch.tensor([attention])
    links = gold_links([gold], *attention.shape[1:])
    masks = (torch.ones(1, length, dtype=torch.bool) for length in attention.shape[1:])
    null = None if null is None else torch.tensor([null])
    return AlignmentSums().update(attention, links, *masks, null=null).result()


def test_error_rate_by_hand():
    """Three rows link to 0, 1, 1; of the four gold links two are hit."""
    attention = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.5, 0.4]]
    found = judged(attention, {(0, 0), (1, 1), (1, 2), (2, 2)})
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 4)
    f1 = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert found.error_rate == pytest.approx(1 - f1)
    assert found.error_rate == pytest.approx(1 - 4 / 7)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.mass_on_gold == pytest.approx((0.8 + 0.5 + 0.3 + 0.4) / 3)
    assert (found.made, found.gold, found.rows) == (3, 4, 3)


@pytest.mark.parametrize(
    ("attention", "gold", "null", "expected"),
    [  # a row without a gold link counts against precision alone
        ([[1.0, 0.0], [0.0, 1.0]], {(0, 0)}, None, {"precision": 0.5, "recall": 1.0, "mass_on_gold": 1.0}),
        # a row below null makes no link
        ([[0.9, 0.0], [0.3, 0.2]], {(0, 0)}, [0.1, 0.5], {"made": 1, "error_rate": 0}),
        # ties share their link, and near ties are none
        ([[0.5, 0.5]], {(0, 1)}, None, {"made": 1, "precision": 0.5, "agreement": 0.5}),
        ([[0.5, 0.4999]], {(0, 1)}, None, {"precision": 0}),
    ],
)
def test_corner_cases_by_hand(attention, gold, null, expected):
    found = judged(attention, gold, null)
    assert {name: getattr(found, name) for name in expected} == expected


def test_end_marks_and_padding_are_not_looked_at():
    inside = torch.tensor([[[0.6, 0.4], [0.3, 0.7]]])
    gold = gold_links([{(0, 0), (1, 1)}], 4, 5)
    attention = torch.full((1, 4, 5), 9.0)
    attention[:, :2, :2] = inside
    rows, columns = torch.arange(4)[None] < 2, torch.arange(5)[None] < 2
    found = AlignmentSums().update(attention, gold, rows, columns).result()
    assert (found.error_rate, found.made) == (0.0, 2)
    assert found.mass_on_gold == pytest.approx(0.65)


def test_two_batches_are_one():
    generator = torch.Generator().manual_seed(0)
    attention = torch.rand(6, 4, 5, generator=generator)
    gold = torch.rand(6, 4, 5, generator=generator) < 0.2
    rows, columns = torch.ones(6, 4, dtype=torch.bool), torch.ones(6, 5, dtype=torch.bool)
    whole = AlignmentSums().update(attention, gold, rows, columns)
    halves = [
        AlignmentSums().update(attention[part], gold[part], rows[part], columns[part])
        for part in (slice(0, 2), slice(2, 6))
    ]
    assert (halves[0] + halves[1]).result() == whole.result()
    assert math.isnan(AlignmentSums().result().error_rate)


def test_the_diagonal_of_equal_lengths_is_the_diagonal():
    rows = torch.tensor([[True] * 3 + [False], [True] * 2 + [False] * 2])
    found = diagonal(rows, rows)
    assert found[0, :3, :3].tolist() == torch.eye(3).tolist()
    assert found[1, :2, :2].tolist() == torch.eye(2).tolist()
    assert float(found.sum()) == 5


def test_the_diagonal_stretches_to_the_longer_side():
    """Two target words halve four source words, whose middles are 1 and 3; four halve two the other way."""
    two, four = torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    assert diagonal(two, four)[0].argmax(-1).tolist() == [1, 3]
    assert diagonal(four, two)[0].argmax(-1).tolist() == [0, 0, 1, 1]


def test_a_mask_without_end_marks():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert words_only(mask).tolist() == [[True, True, False], [False, False, False]]


ONE = torch.ones(1, 2, dtype=torch.bool)
PADDED = torch.tensor([[True, False]])


def update(links, length, target_words):
    AlignmentSums().update(torch.ones(1, 2, length), gold_links([links], 2, length), target_words, ONE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gold_links([{(3, 0)}], 3, 2), "leads outside"),
        (lambda: gold_links([{(0, 2)}], 3, 2), "leads outside"),
        (lambda: gold_links([{(-1, 0)}], 3, 2), "leads outside"),
        (lambda: update({(1, 0)}, 2, PADDED), "outside the words"),
        (lambda: update(set(), 3, ONE), "give all three as"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(BadInput, match=message):
        call()
