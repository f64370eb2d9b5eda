"""Connected pieces of positions, without products of tables."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnlib.decomposition.two_way import connected_pieces


def pieces_by_search(counts):
    """Indicators of the seen positions that can be reached from each, in the order of their first ones."""
    present = counts > 0
    reached: list[list[bool]] = []
    for start in present.any(0).nonzero()[:, 0].tolist():
        piece = torch.zeros(counts.shape[1], dtype=torch.bool)
        piece[start] = True
        for _ in range(counts.shape[1]):
            tokens = present[:, piece].any(1)
            piece = piece | present[tokens].any(0)
        if piece.tolist() not in reached:
            reached.append(piece.tolist())
    return reached


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (9, 12), (40, 5)])
def test_pieces_are_those_of_a_search(shape, share):
    draw = torch.Generator().manual_seed(0)
    for _ in range(10):
        counts = (torch.rand(shape, generator=draw) < share).long()
        assert connected_pieces(counts).bool().tolist() == pieces_by_search(counts)


@pytest.mark.parametrize("length", [2, 3, 64, 1000])
def test_a_chain_of_any_order_is_one_piece(length):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(length))
    counts = torch.zeros(length - 1, length, dtype=torch.int64)
    tokens = torch.arange(length - 1)
    counts[tokens, order[:-1]] = 1
    counts[tokens, order[1:]] = 1
    assert connected_pieces(counts).tolist() == [[1.0] * length]


def test_tokens_are_joined_however_many_are_listed_at_once(monkeypatch):
    counts = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    monkeypatch.setattr("attnlib.decomposition.two_way._TOKENS_AT_ONCE", 1, raising=False)
    assert connected_pieces(counts).tolist() == [[1, 1, 1, 0]]


def test_no_product_of_tables_is_made():
    with FlopCounterMode(display=False) as operations:
        connected_pieces(torch.eye(300, dtype=torch.int64))
    assert operations.get_total_flops() == 0
