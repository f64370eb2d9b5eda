"""Typicality: by hand, against a loop that leaves one out, and its fixed points."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import AttentionCells, typicality
from tests.attnlib.decomposition.component_builders import attention_matrices, padded


def typicality_loop(matrices, minimum):
    """Each sample against the plain mean of the others of its shape; NaN in small cells."""
    values = []
    for k, matrix in enumerate(matrices):
        others = [other for j, other in enumerate(matrices) if j != k and other.shape == matrix.shape]
        if len(others) + 1 < minimum:
            values.append(math.nan)
        else:
            average = torch.stack(others).double().mean(0)
            values.append(1 - float((matrix.double() - average).abs().sum(-1).mean()) / 2)
    return values


def test_hand_worked():
    """Three samples of one row: (1, 0), (1, 0), (0, 1). Others' means: (1/2, 1/2) twice, (1, 0) once."""
    rows = [torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])]
    result = typicality(rows, minimum=3)
    assert result.per_sample.tolist() == [0.5, 0.5, 0.0]
    assert result.value == pytest.approx(1 / 3)
    assert (result.coverage, result.cells, result.samples) == (1.0, 1, 3)


def test_cells_of_thirty():
    result = typicality([torch.eye(3)] * 30 + [torch.eye(2)] * 29)
    assert (result.value, result.coverage, result.cells) == (1.0, 30 / 59, 1)
    assert math.isnan(typicality([torch.eye(3)] * 29).value)
    assert math.isnan(typicality([]).coverage)


def test_uniform_attention_is_typical_by_construction_and_disjoint_attention_never():
    uniform = [torch.full((target, source), 1 / source) for target, source in [(2, 3)] * 30 + [(4, 7)] * 31]
    assert typicality(uniform).value == pytest.approx(1.0, abs=1e-15)
    disjoint = [row[None] for row in torch.eye(30).double()]  # each looks where no other does
    assert typicality(disjoint).value == pytest.approx(0.0, abs=1e-15)


@settings(max_examples=40)
@given(attention_matrices(), st.integers(2, 8), st.integers(1, 9))
def test_lists_padded_batches_and_a_loop_agree(matrices, minimum, size):
    expected = torch.tensor(typicality_loop(matrices, minimum), dtype=torch.float64)
    listed = typicality(matrices, minimum=minimum)
    assert torch.allclose(listed.per_sample, expected, atol=1e-12, equal_nan=True)

    batches = [padded(matrices[start : start + size]) for start in range(0, len(matrices), size)]
    first, second = AttentionCells(), AttentionCells()
    for k, batch in enumerate(batches):
        (first, second)[k % 2].update(*batch)
    cells = second.merge(first)
    judged = torch.cat([cells.judge(*batch, minimum=minimum) for batch in batches])
    streamed = cells.result(judged, minimum=minimum)
    assert torch.allclose(judged, expected, atol=1e-12, equal_nan=True)
    assert streamed.value == pytest.approx(listed.value, nan_ok=True)
    assert (streamed.coverage, streamed.cells) == (listed.coverage, listed.cells)


def test_average_attention_of_a_cell():
    cells = AttentionCells().update(*padded([torch.eye(2), torch.eye(2).flip(0), torch.eye(3)]))
    assert cells.average_attention((2, 2)).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert torch.equal(cells.average_attention((3, 3)), torch.eye(3, dtype=torch.float64))
