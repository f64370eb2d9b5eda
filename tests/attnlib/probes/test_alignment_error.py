"""Alignment error rate by hand, soft measures and the diagonal."""

import math

import pytest
import torch

from attnlib.probes.alignment_error import AlignmentSums, diagonal, gold_links, words_only


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
    first, second = (
        AlignmentSums().update(*(own[part] for own in (attention, gold, rows, columns)))
        for part in (slice(2), slice(2, 6))
    )
    assert (first + second).result() == whole.result()
    assert math.isnan(AlignmentSums().result().error_rate)


def test_the_diagonal_stretches_to_the_longer_side():
    """Two target words halve four source words, whose middles are 1 and 3; four halve two the other way."""
    expected = {(3, 3): [0, 1, 2], (2, 2): [0, 1], (2, 4): [1, 3], (4, 2): [0, 0, 1, 1]}
    rows, columns = (torch.arange(4) < torch.tensor(side)[:, None] for side in zip(*expected, strict=True))
    found = diagonal(rows, columns)
    assert [
        own[: len(places)].argmax(-1).tolist() for own, places in zip(found, expected.values(), strict=True)
    ] == list(expected.values())
    assert float(found.sum()) == int(rows.sum())  # none at padding


def test_a_mask_without_end_marks():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert words_only(mask).tolist() == [[True, True, False], [False, False, False]]
