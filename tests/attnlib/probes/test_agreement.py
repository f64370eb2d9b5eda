"""Agreement and Kendall's τ-b by hand, against a loop, all orders of ties and scipy; what must hold."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from attnlib.probes.agreement import (
    RowMean,
    agreement,
    agreement_with_ties_broken,
    chance_agreement,
    halves,
    tied_at_top,
)
from attnlib.probes.kendall import kendall


def plain(first: list[float], second: list[float], percent: int = 5) -> float:
    """Equation 10 as it is printed, with the exact bound."""
    larger = sum(value > second[int(np.argmax(first))] for value in second)
    return float(100 * larger < percent * len(second))


@st.composite
def pairs(draw, longest=50, least=-3):
    length = draw(st.integers(1, longest))
    rows = st.lists(st.integers(least, 3).map(float), min_size=length, max_size=length)
    return [torch.tensor([draw(rows)], dtype=torch.float64) for _ in range(2)]


@pytest.mark.parametrize(("length", "fewest"), [(41, 38), (40, 38), (20, 19), (1, 0)])
def test_41_positions_allow_two_larger_entries_and_40_one(length, fewest):
    found = agreement(torch.eye(length), torch.arange(float(length))[None])
    assert found.tolist() == [float(position >= fewest) for position in range(length)]


@given(pairs(), st.integers(1, 100))
def test_it_is_the_loop(pair, percent):
    first, second = pair
    found = agreement(first, second, percent=percent)
    assert found.item() == plain(first[0].tolist(), second[0].tolist(), percent)
    assert torch.equal(found, agreement(first.exp(), 3 * second - 7, percent=percent))  # ranks alone matter


@given(pairs() | pairs(longest=5, least=2), st.integers(0, 5))
@example([torch.ones(1, 2, dtype=torch.float64), torch.full((1, 2), 2.0, dtype=torch.float64)], 3)
def test_padding_is_not_looked_at_not_even_where_both_are_impossible(pair, padding):
    first, second = pair[0], pair[1].masked_fill(pair[1] == 2, -torch.inf)
    junk = torch.tensor([[torch.nan, 99.0, torch.inf, -torch.inf, 0.0]], dtype=torch.float64)[:, :padding]
    mask = torch.cat((torch.ones_like(first, dtype=torch.bool), torch.zeros_like(junk, dtype=torch.bool)), 1)
    long = [torch.cat((side, junk), 1) for side in (first, second)]
    for ties in ("first", "shared"):
        assert torch.equal(agreement(*long, mask, ties=ties), agreement(first, second, ties=ties))
    assert torch.equal(agreement_with_ties_broken(*long, mask), agreement_with_ties_broken(first, second))
    assert torch.equal(chance_agreement(long[1], mask), chance_agreement(second))
    assert torch.equal(kendall(*long, mask).nan_to_num(9), kendall(first, second).nan_to_num(9))
    assert torch.equal(tied_at_top(long[1], mask), tied_at_top(second, mask[:, : first.shape[1]]))


@given(pairs())
def test_chance_is_the_mean_over_every_place_the_top_can_have(pair):
    _, second = pair
    length = second.shape[1]
    tops = torch.eye(length, dtype=torch.float64)
    expected = agreement(tops, second).mean().item()
    assert chance_agreement(second).item() == pytest.approx(expected)
    assert agreement(torch.zeros_like(second), second, ties="shared").item() == pytest.approx(expected)
    share = math.ceil(length / 20) / length
    assert chance_agreement(second + torch.arange(length) / 1000).item() == pytest.approx(share)
    broken = agreement_with_ties_broken(tops, second)  # then chance is that share whatever is tied
    assert broken.mean().item() == pytest.approx(share)
    assert (broken <= agreement(tops, second)).all()


@given(pairs(longest=5, least=1), st.sampled_from([5, 30, 60]))
def test_ties_broken_is_the_mean_over_all_orders_of_what_is_tied(pair, percent):
    first, second = pair
    orders = torch.tensor(list(permutations(range(first.shape[1]))), dtype=torch.float64) / 100
    expected = agreement(first, second + orders, percent=percent).mean().item()
    assert agreement_with_ties_broken(first, second, percent=percent).item() == pytest.approx(expected)


def test_ties_of_the_first_argument():
    first, second = torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([[0.0, 1.0, 2.0]])
    assert agreement(first, second).item() == 0  # position 0 speaks for the tie
    assert agreement(first, second, ties="shared").item() == 0.5
    low = torch.tensor([[-torch.inf, -torch.inf]])
    mask = torch.tensor([[False, True]])
    assert agreement(low, torch.tensor([[9.0, 1.0]]), mask).item() == 1  # padding does not win a tie at -inf


def test_a_tie_below_the_top_is_none():
    values = torch.tensor([[2.0, 1.0, 1.0, 9.0], [1.0, 1.0, 0.0, 9.0]])
    assert tied_at_top(values, torch.tensor([True, True, True, False])).tolist() == [False, True]


@pytest.mark.parametrize("measure", [agreement, agreement_with_ties_broken])
def test_nan_pairs_are_left_out_and_counted_and_padding_rows_are_not(measure):
    first = torch.tensor([[1.0, 0.0], [torch.nan, 0.0], [1.0, 0.0], [1.0, torch.nan]])
    second = torch.tensor([[1.0, 0.0], [1.0, 0.0], [torch.nan, 0.0], [0.0, 1.0]])
    mask = torch.tensor([[True, True]] * 3 + [[False, False]])
    found = measure(first, second, mask)
    assert found.isnan().tolist() == [False, True, True, True]
    assert RowMean.of(found, mask.any(-1)) == RowMean(total=1.0, rows=1, undefined=2)
    mask[3, 0] = True  # a NaN at padding is no NaN of the row, and a single position always agrees
    assert measure(first, second, mask)[3] == 1


def test_masks_broadcast_over_the_rows_of_a_sentence():
    generator = torch.Generator().manual_seed(0)
    attention, probe = (torch.rand(3, 4, 6, generator=generator) for _ in range(2))
    mask = torch.arange(6) < torch.tensor([2, 6, 4])[:, None]
    found = agreement(attention, probe, mask[:, None, :])
    assert found.shape == (3, 4)
    for sample, step in np.ndindex(3, 4):
        rows = (side[sample, step][mask[sample]].tolist() for side in (attention, probe))
        assert found[sample, step] == plain(*rows)


def test_a_mean_over_batches_is_the_mean_over_all():
    values = torch.tensor([1.0, 0.0, torch.nan, 1.0, 1.0])
    assert RowMean.of(values[:2]) + RowMean.of(values[2:]) == RowMean.of(values)
    assert RowMean.of(values).value == 0.75
    assert math.isnan(RowMean().value)


def test_halves_are_a_partition_that_the_seed_decides():
    selecting, reporting = halves(11, seed=4)
    assert (len(selecting), len(reporting)) == (5, 6)
    assert sorted(selecting.tolist() + reporting.tolist()) == list(range(11))
    assert torch.equal(selecting, halves(11, seed=4)[0])
    assert not torch.equal(selecting, halves(11, seed=5)[0])


# Kendall's τ-b.


def test_tau_by_hand():
    """Of six pairs five differ in u and five in v; four of them in both, and all four go the same way."""
    first, second = torch.tensor([[1.0, 1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.0, 3.0, 3.0]])
    assert kendall(first, second).item() == pytest.approx(4 / 5)
    assert kendall(first, -second).item() == pytest.approx(-4 / 5)


@given(pairs(longest=25))
def test_tau_is_scipys(pair):
    first, second = pair
    assume(first.shape[1] > 1)  # scipy warns of a single position
    expected = stats.kendalltau(first[0].numpy(), second[0].numpy(), variant="b").statistic
    assert kendall(first, second).item() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_tau_is_scipys_on_long_rows_without_ties_under_a_mask_that_broadcasts():
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.rand(5, 2, 300, generator=generator) for _ in range(2))
    mask = torch.arange(300) < torch.tensor([300, 299, 150, 2, 40])[:, None]
    found = kendall(first, second + first, mask[:, None, :])
    assert found.shape == (5, 2)
    for row, step in np.ndindex(5, 2):
        sides = (side[row, step][mask[row]].numpy() for side in (first, second + first))
        assert found[row, step].item() == pytest.approx(stats.kendalltau(*sides).statistic)


def test_rows_without_tau_are_counted():
    first = torch.tensor([[1.0, 2.0], [1.0, 1.0], [torch.nan, 1.0], [1.0, 2.0], [1.0, 2.0]])
    second = torch.tensor([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0], [2.0, 4.0], [1.0, 2.0]])
    mask = torch.tensor([[True, True]] * 3 + [[True, False], [False, False]])
    found = kendall(first, second, mask)
    assert found[0] == -1
    assert RowMean.of(found, mask.any(-1)) == RowMean(total=-1.0, rows=1, undefined=3)


def test_infinities_have_their_place():
    first = torch.tensor([[-torch.inf, 0.0, torch.inf, torch.inf]])
    assert kendall(first, torch.tensor([[0.0, 1.0, 2.0, 2.0]])).item() == pytest.approx(1)
