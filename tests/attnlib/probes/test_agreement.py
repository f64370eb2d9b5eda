"""Agreement and Kendall's τ-b by hand, against loops, all orders of ties and scipy; what must hold."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnlib import agreement
from attnlib.probes.agreement import (
    RowMean,
    agreement_with_ties_broken,
    chance_agreement,
    halves,
    tied_at_top,
)
from attnlib.probes.kendall import kendall
from tests.attnlib.refusals import refused


def plain(first: list[float], second: list[float], percent: int, ties: str = "first") -> float:
    """Equation 10 as it is printed, with the exact bound."""
    if not first or any(map(math.isnan, first + second)):
        return math.nan
    tops = [k for k, value in enumerate(first) if value == max(first)]
    agrees = [100 * sum(value > second[top] for value in second) < percent * len(second) for top in tops]
    return float(agrees[0]) if ties == "first" else float(np.mean(agrees))


def tau(first: list[float], second: list[float]) -> float:
    if len(first) < 2 or any(map(math.isnan, first + second)):
        return math.nan  # scipy warns of a single position
    return stats.kendalltau(first, second, variant="b").statistic


@st.composite
def ragged_rows(draw):
    """Two rows for each of three masks, which broadcast; some entries no number; anything at padding."""
    shape = 3, 2, draw(st.integers(1, 45))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.sampled_from([[-2, 0, 3], [-math.inf, 0, 1, 2], [math.inf, -math.inf], range(99)]))
    sides = [torch.from_numpy(rng.choice(np.array(values, dtype=float), shape)) for _ in range(2)]
    mask = torch.from_numpy(rng.random((3, 1, shape[2])) < draw(st.sampled_from([0.1, 0.5, 1.0])))
    for side in sides:
        side[torch.from_numpy(rng.random(shape) < draw(st.sampled_from([0, 0.02])))] = torch.nan
        side[~mask.expand(shape)] = draw(st.sampled_from([torch.nan, 99.0, torch.inf, -torch.inf, 0.0]))
    return *sides, mask


@given(ragged_rows(), st.integers(1, 100))
def test_each_row_has_what_loops_find_at_its_valid_positions(rows, percent):
    first, second, mask = rows
    found = {
        "first": agreement(*rows, percent=percent),
        "shared": agreement(*rows, percent=percent, ties="shared"),
        "chance": chance_agreement(second, mask, percent=percent),
        "broken": agreement_with_ties_broken(*rows, percent=percent),
        "tau": kendall(*rows),
        "tied": tied_at_top(first, mask),
    }
    for sample, step in np.ndindex(3, 2):
        u, v = (side[sample, step][mask[sample, 0]].tolist() for side in (first, second))
        alone = torch.tensor([u, v], dtype=torch.float64)  # of which the test below has all orders
        expected = {
            "first": plain(u, v, percent),
            "shared": plain(u, v, percent, "shared"),
            "chance": plain([0.0] * len(v), v, percent, "shared"),
            "broken": float(agreement_with_ties_broken(*alone, percent=percent)) if u else math.nan,
            "tau": tau(u, v),
            "tied": float(len(u) > 1 and sorted(u)[-2:] == [max(u)] * 2 and not any(map(math.isnan, u))),
        }
        here = {name: float(own[sample, step]) for name, own in found.items()}
        assert here == pytest.approx(expected, abs=1e-12, nan_ok=True)


def integers(longest, least=-3):
    rows = st.integers(1, longest).flatmap(lambda n: st.lists(st.integers(least, 3), min_size=n, max_size=n))
    return rows.map(lambda row: torch.tensor([row], dtype=torch.float64))


@given(integers(50))
def test_chance_is_the_mean_over_every_place_the_top_can_have(second):
    length = second.shape[1]
    tops = torch.eye(length, dtype=torch.float64)
    assert chance_agreement(second).item() == pytest.approx(agreement(tops, second).mean().item())
    share = math.ceil(length / 20) / length
    assert chance_agreement(second + torch.arange(length) / 1000).item() == pytest.approx(share)
    broken = agreement_with_ties_broken(tops, second)  # then chance is that share whatever is tied
    assert broken.mean().item() == pytest.approx(share)
    assert (broken <= agreement(tops, second)).all()


@given(integers(5, least=1), st.sampled_from([5, 30, 60]), st.integers(0, 4))
def test_ties_broken_is_the_mean_over_all_orders_of_what_is_tied(second, percent, top):
    length = second.shape[1]
    first = torch.arange(length) == min(top, length - 1)
    orders = torch.tensor(list(permutations(range(length))), dtype=torch.float64) / 100
    expected = agreement(first.double(), second + orders, percent=percent).mean().item()
    found = agreement_with_ties_broken(first.double(), second, percent=percent)
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("measure", [agreement, agreement_with_ties_broken, kendall])
def test_rows_without_a_number_are_counted_and_padding_rows_are_not(measure):
    first = torch.tensor([[2.0, 1.0], [torch.nan, 1.0], [2.0, 1.0], [1.0, torch.nan]])
    second = torch.tensor([[2.0, 1.0], [1.0, 2.0], [torch.nan, 1.0], [1.0, 2.0]])
    mask = torch.tensor([[True, True]] * 3 + [[False, False]])
    assert RowMean.of(measure(first, second, mask), mask.any(-1)) == RowMean(total=1.0, rows=1, undefined=2)


def test_a_mean_over_batches_is_the_mean_over_all():
    values = torch.tensor([1.0, 0.0, torch.nan, 1.0, 1.0])
    assert RowMean.of(values[:2]) + RowMean.of(values[2:]) == RowMean.of(values)
    assert RowMean.of(values).value == 0.75
    assert math.isnan(RowMean().value)
    assert RowMean() + RowMean.of(values) == RowMean.of(values)


def test_halves_are_a_partition_that_the_seed_decides():
    selecting, reporting = halves(11, seed=4)
    assert (len(selecting), len(reporting)) == (5, 6)
    assert sorted(selecting.tolist() + reporting.tolist()) == list(range(11))
    assert torch.equal(selecting, halves(11, seed=4)[0])
    assert not torch.equal(selecting, halves(11, seed=5)[0])


def test_tau_by_hand():
    """Of six pairs five differ in u and five in v; four of them in both, and all four go the same way."""
    first, second = torch.tensor([[1.0, 1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.0, 3.0, 3.0]])
    assert kendall(first, second).item() == pytest.approx(4 / 5)
    assert kendall(first, -second).item() == pytest.approx(-4 / 5)


ROW, SHORT = torch.zeros(1, 3), torch.zeros(1, 1)

test_what_cannot_be_is_refused = refused(
    (lambda: agreement(ROW, SHORT), "the same length"),
    (lambda: agreement_with_ties_broken(ROW, SHORT), "the same length"),
    (lambda: kendall(ROW, SHORT), "the same length"),
    (lambda: agreement(ROW, ROW, percent=0), "percent is 0"),
    (lambda: agreement(ROW, ROW, percent=101), "percent is 101"),
    (lambda: agreement(ROW, ROW, ties="last"), "no rule for ties 'last'"),
    (lambda: RowMean.of(torch.zeros(3), torch.ones(2).bool()), "one truth value a row"),
)
