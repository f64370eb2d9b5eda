"""Agreement by hand, against a plain loop, and by what must hold of any rows."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, UnknownName
from attnlib.probes.agreement import RowMean, agreement, chance_agreement, places


def plain(first: list[float], second: list[float], percent: int = 5) -> float:
    """Equation 10 as it is printed, with the exact bound."""
    larger = sum(value > second[int(np.argmax(first))] for value in second)
    return float(100 * larger < percent * len(second))


@st.composite
def pairs(draw):
    length = draw(st.integers(1, 50))
    rows = st.lists(st.integers(-3, 3).map(float), min_size=length, max_size=length)
    return draw(rows), draw(rows)


def tensors(pair):
    return (torch.tensor([row], dtype=torch.float64) for row in pair)


def test_by_hand():
    """41 positions allow two larger entries, 40 allow one."""
    second = torch.arange(41.0)[None]
    for position, expected in [(40, 1.0), (39, 1.0), (38, 1.0), (37, 0.0)]:
        first = torch.zeros(1, 41)
        first[0, position] = 1
        assert agreement(first, second).item() == expected
    first = torch.zeros(1, 40)
    first[0, 37] = 1
    assert agreement(first, torch.arange(40.0)[None]).item() == 0.0
    first[0, 38] = 2
    assert agreement(first, torch.arange(40.0)[None]).item() == 1.0


@given(pairs(), st.integers(1, 100))
def test_it_is_the_loop(pair, percent):
    assert agreement(*tensors(pair), percent=percent).item() == plain(*pair, percent)


@given(pairs())
def test_what_must_hold_of_any_two_rows(pair):
    first, second = tensors(pair)
    assert agreement(first, first).item() == 1
    assert agreement(first, torch.zeros_like(first)).item() == 1  # a constant has no larger entry
    found = agreement(first, second)
    assert torch.equal(found, agreement(first.exp(), 3 * second - 7))  # ranks are all it looks at
    assert agreement(first, second, percent=100).item() == 1
    assert found <= agreement(first, second, percent=30)


@given(pairs(), st.integers(0, 5))
def test_padding_is_not_looked_at(pair, padding):
    first, second = tensors(pair)
    junk = torch.tensor([[torch.nan, 99.0, torch.inf, -5.0, 0.0]], dtype=torch.float64)[:, :padding]
    mask = torch.cat((torch.ones_like(first, dtype=torch.bool), torch.zeros_like(junk, dtype=torch.bool)), 1)
    long = [torch.cat((side, junk), 1) for side in (first, second)]
    for ties in ("first", "shared"):
        assert torch.equal(agreement(*long, mask, ties=ties), agreement(first, second, ties=ties))
    assert torch.equal(chance_agreement(long[1], mask), chance_agreement(second))


@given(pairs())
def test_chance_is_the_mean_over_every_place_the_top_can_have(pair):
    _, second = tensors(pair)
    tops = torch.eye(second.shape[1], dtype=torch.float64)
    expected = agreement(tops, second).mean().item()
    assert chance_agreement(second).item() == pytest.approx(expected)
    assert agreement(torch.zeros_like(second), second, ties="shared").item() == pytest.approx(expected)
    distinct = second + torch.arange(second.shape[1]) / 1000
    length = second.shape[1]
    assert chance_agreement(distinct).item() == pytest.approx(math.ceil(length / 20) / length)


def test_shuffles_come_to_chance_on_average():
    generator = torch.Generator().manual_seed(3)
    second = torch.rand(1, 30, generator=generator)
    found = agreement(torch.rand(20_000, 30, generator=generator), second).mean().item()
    assert found == pytest.approx(2 / 30, abs=0.006)
    assert chance_agreement(second).item() == pytest.approx(2 / 30)


def test_ties_of_the_first_argument():
    first, second = torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([[0.0, 1.0, 2.0]])
    assert agreement(first, second).item() == 0  # position 0 speaks for the tie
    assert agreement(first, second, ties="shared").item() == 0.5
    low = torch.tensor([[-torch.inf, -torch.inf]])
    mask = torch.tensor([[False, True]])
    assert agreement(low, torch.tensor([[9.0, 1.0]]), mask).item() == 1  # padding does not win a tie at -inf


def test_a_single_position_always_agrees():
    assert agreement(torch.tensor([[0.2]]), torch.tensor([[-5.0]])).item() == 1
    assert chance_agreement(torch.tensor([[-5.0]])).item() == 1


def test_nan_pairs_are_left_out_and_counted_and_padding_rows_are_not():
    first = torch.tensor([[1.0, 0.0], [torch.nan, 0.0], [1.0, 0.0], [1.0, torch.nan]])
    second = torch.tensor([[1.0, 0.0], [1.0, 0.0], [torch.nan, 0.0], [0.0, 1.0]])
    mask = torch.tensor([[True, True]] * 3 + [[False, False]])
    found = agreement(first, second, mask)
    assert found.isnan().tolist() == [False, True, True, True]
    assert RowMean.of(found, mask.any(-1)) == RowMean(total=1.0, rows=1, undefined=2)
    mask[3, 0] = True  # a NaN at padding is no NaN of the row
    assert agreement(first, second, mask)[3] == 1


def test_masks_broadcast_over_the_rows_of_a_sentence():
    generator = torch.Generator().manual_seed(0)
    attention, probe = (torch.rand(3, 4, 6, generator=generator) for _ in range(2))
    mask = torch.arange(6) < torch.tensor([2, 6, 4])[:, None]
    found = agreement(attention, probe, mask[:, None, :])
    assert found.shape == (3, 4)
    for sample, length in enumerate([2, 6, 4]):
        for step in range(4):
            rows = (side[sample, step, :length].tolist() for side in (attention, probe))
            assert found[sample, step] == plain(*rows)


def test_a_mean_over_batches_is_the_mean_over_all():
    values = torch.tensor([1.0, 0.0, torch.nan, 1.0, 1.0])
    assert RowMean.of(values[:2]) + RowMean.of(values[2:]) == RowMean.of(values)
    assert RowMean.of(values).value == 0.75
    assert math.isnan(RowMean().value)


def test_what_cannot_be_compared_is_said():
    row = torch.zeros(1, 3)
    with pytest.raises(BadInput, match="the same length"):
        agreement(row, torch.zeros(1, 1))
    with pytest.raises(BadInput, match="percent is 0"):
        agreement(row, row, percent=0)
    with pytest.raises(UnknownName, match="rule for ties"):
        agreement(row, row, ties="last")
    with pytest.raises(BadInput, match="one truth value a row"):
        RowMean.of(torch.zeros(3), torch.ones(2, dtype=torch.bool))
    assert places(torch.tensor([0, 100])).tolist() == [0, 5]
