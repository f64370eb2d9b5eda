"""Kendall's τ-b by hand, against scipy, and by what must hold of any rows."""

import math
from itertools import permutations

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean
from attnlib.probes.kendall import kendall


@st.composite
def pairs(draw):
    length = draw(st.integers(1, 25))
    rows = st.lists(st.integers(-4, 4).map(float), min_size=length, max_size=length)
    return tuple(torch.tensor([draw(rows)], dtype=torch.float64) for _ in range(2))


def test_by_hand():
    """Of six pairs five differ in u and five in v; four of them in both, and all four go the same way."""
    first, second = torch.tensor([[1.0, 1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.0, 3.0, 3.0]])
    assert kendall(first, second).item() == pytest.approx(4 / 5)
    assert kendall(first, -second).item() == pytest.approx(-4 / 5)


@pytest.mark.parametrize("row", [(1.0, 2.0, 2.0, 5.0), (3.0, 1.0, 2.0, 4.0)])
def test_over_all_orders_of_a_row_it_is_zero_on_average(row):
    orders = torch.tensor(list(permutations((0.1, 0.7, 0.1, 0.1, 0.4)[: len(row)])))
    found = kendall(torch.tensor([row]), orders)
    assert float(found.mean()) == pytest.approx(0, abs=1e-12)
    assert float(found.abs().max()) > 0.5  # of single orders it is not


@given(pairs())
def test_it_is_scipys(pair):
    first, second = pair
    assume(first.shape[1] > 1)  # scipy warns of a single position
    expected = stats.kendalltau(first[0].numpy(), second[0].numpy(), variant="b").statistic
    assert kendall(first, second).item() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_it_is_scipys_on_long_rows_without_ties_under_a_mask_that_broadcasts():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.rand(5, 2, 300, generator=generator) for _ in range(2))
    mask = torch.arange(300) < torch.tensor([300, 299, 150, 2, 40])[:, None]
    found = kendall(first, second + first, mask[:, None, :])
    assert found.shape == (5, 2)
    for row, step in ((row, step) for row in range(5) for step in range(2)):
        sides = (side[row, step][mask[row]].numpy() for side in (first, second + first))
        assert found[row, step].item() == pytest.approx(stats.kendalltau(*sides).statistic)


@given(pairs(), st.integers(0, 4))
def test_what_must_hold_of_any_two_rows(pair, padding):
    first, second = pair
    found = kendall(first, second)
    assert torch.equal(found.isnan(), torch.tensor([len(set(p[0].tolist())) == 1 for p in pair]).any()[None])
    assert torch.allclose(kendall(second, first), found, equal_nan=True)
    assert torch.allclose(kendall(first, -second), -found, equal_nan=True)
    assert torch.equal(kendall(first.exp(), 2 * second + 1).nan_to_num(), found.nan_to_num())
    junk = torch.tensor([[torch.nan, torch.inf, 9.0, -9.0]], dtype=torch.float64)[:, :padding]
    mask = torch.cat((torch.ones_like(first), torch.zeros_like(junk)), 1).bool()
    padded = kendall(torch.cat((first, junk), 1), torch.cat((second, junk), 1), mask)
    assert torch.equal(padded.nan_to_num(), found.nan_to_num())


def test_undefined_rows_are_counted():
    first = torch.tensor([[1.0, 2.0], [1.0, 1.0], [torch.nan, 1.0], [1.0, 2.0], [1.0, 2.0]])
    second = torch.tensor([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0], [2.0, 4.0], [1.0, 2.0]])
    mask = torch.tensor([[True, True]] * 3 + [[True, False], [False, False]])
    found = kendall(first, second, mask)
    assert found[0] == -1
    assert RowMean.of(found, mask.any(-1)) == RowMean(total=-1.0, rows=1, undefined=3)
    assert math.isnan(kendall(torch.zeros(1, 1), torch.zeros(1, 1)).item())
    assert math.isnan(kendall(torch.tensor([[torch.nan, 1.0, 2.0]]), torch.tensor([[1.0, 2.0, 3.0]])).item())


def test_infinities_have_their_place():
    first = torch.tensor([[-torch.inf, 0.0, torch.inf, torch.inf]])
    assert kendall(first, torch.tensor([[0.0, 1.0, 2.0, 2.0]])).item() == pytest.approx(1)


def test_lengths_that_differ_are_said():
    with pytest.raises(BadInput, match="the same length"):
        kendall(torch.zeros(1, 3), torch.zeros(1, 1))
