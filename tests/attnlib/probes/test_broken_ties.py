"""Agreement with ties broken: against every order in which they can be broken, and by what must hold."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, agreement_with_ties_broken, tied_at_top


@st.composite
def pairs(draw, longest=5):
    length = draw(st.integers(1, longest))
    rows = st.lists(st.integers(-2, 1).map(float), min_size=length, max_size=length)
    return [torch.tensor([draw(rows)], dtype=torch.float64) for _ in range(2)]


@given(pairs(), st.sampled_from([5, 30, 60]))
def test_it_is_the_mean_over_all_orders_of_what_is_tied(pair, percent):
    first, second = pair
    orders = torch.tensor(list(itertools.permutations(range(first.shape[1]))), dtype=torch.float64) / 100
    expected = [agreement(first, second + one, percent=percent).item() for one in orders]
    found = agreement_with_ties_broken(first, second, percent=percent).item()
    assert found == pytest.approx(sum(expected) / len(expected))


@given(pairs(longest=50))
def test_chance_is_the_share_of_places_whatever_is_tied(pair):
    _, second = pair
    length = second.shape[1]
    tops = torch.eye(length, dtype=torch.float64)
    found = agreement_with_ties_broken(tops, second)
    assert found.mean().item() == pytest.approx(math.ceil(length / 20) / length)
    assert (found <= agreement(tops, second)).all()


def test_without_ties_it_is_agreement():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.rand(3, 20, 30, generator=generator) for _ in range(2))
    assert torch.equal(agreement_with_ties_broken(first, second), agreement(first, second))


@given(pairs(), st.integers(0, 3))
def test_padding_is_not_looked_at_not_even_where_both_are_impossible(pair, padding):
    first, second = pair
    second = second.masked_fill(second == -2, -torch.inf)
    mask = torch.ones(1, first.shape[1] + padding, dtype=torch.bool)
    mask[:, first.shape[1] :] = False
    junk = torch.tensor([[torch.nan, 99.0, -torch.inf]], dtype=torch.float64)[:, :padding]
    long = [torch.cat((side, junk), 1) for side in (first, second)]
    assert torch.equal(agreement_with_ties_broken(*long, mask), agreement_with_ties_broken(first, second))
    assert torch.equal(tied_at_top(long[1], mask), tied_at_top(second, mask[:, : first.shape[1]]))


def test_rows_without_a_number_are_those_of_agreement():
    first = torch.tensor([[1.0, 0.0], [torch.nan, 0.0], [1.0, 0.0]])
    second = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    mask = torch.tensor([[True, True], [True, True], [False, False]])
    found = agreement_with_ties_broken(first, second, mask)
    assert found[0] == 0.5
    assert found[1:].isnan().all()
    with pytest.raises(BadInput, match="same length"):
        agreement_with_ties_broken(first, second[:, :1])


def test_a_tie_below_the_top_is_none():
    values = torch.tensor([[2.0, 1.0, 1.0, 9.0], [1.0, 1.0, 0.0, 9.0]])
    assert tied_at_top(values, torch.tensor([True, True, True, False])).tolist() == [False, True]
