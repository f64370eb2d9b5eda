"""Kendall's τ-b of rows with masks, ties and missing numbers, against scipy's of one row."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from attnlib.errors import BadInput
from notebooks.shared.kendall import kendall
from tests.attnlib.probes.test_probes import ragged_rows


def tau(first: list[float], second: list[float]) -> float:
    if len(first) < 2 or any(map(math.isnan, first + second)):
        return math.nan  # scipy warns of a single position
    return stats.kendalltau(first, second, variant="b").statistic


@given(ragged_rows())
def test_each_row_has_scipys_tau_at_its_valid_positions(rows):
    first, second, mask = rows
    taus = kendall(first, second, mask)
    for sample, step in np.ndindex(3, 2):
        valid = mask[sample, 0]
        expected = tau(first[sample, step][valid].tolist(), second[sample, step][valid].tolist())
        assert float(taus[sample, step]) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_tau_by_hand():
    """Of six pairs five differ in u and five in v; four of them in both, and all four go the same way."""
    first, second = torch.tensor([[1.0, 1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.0, 3.0, 3.0]])
    assert kendall(first, second).item() == pytest.approx(4 / 5)
    assert kendall(first, -second).item() == pytest.approx(-4 / 5)


def test_rows_of_integers_are_rows_of_numbers():
    rows = [[1, 2, 3], [3, 1, 2]]
    numbers = np.array(rows, dtype=float)
    assert torch.equal(kendall(rows, rows[::-1]), kendall(numbers, numbers[::-1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([[0.0, 0.0, 0.0]], [[0.0]], id="lengths"),
        pytest.param(torch.rand(2, 3), torch.rand(3, 3), id="leading axes"),
        pytest.param([["a", "b"]], [["c", "d"]], id="words"),
    ],
)
def test_rows_that_do_not_fit_are_refused(first, second):
    with pytest.raises(BadInput):
        kendall(first, second)
