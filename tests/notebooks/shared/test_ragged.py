"""Rows of different lengths, met in batches: every value once, in its place."""

from itertools import pairwise

import torch

from notebooks.shared.ragged import RaggedRows, joined_cells, valid_cells


def test_every_value_is_met_once_whatever_the_size_of_the_batches():
    offsets = torch.tensor([0, 4, 5, 5, 12, 14])
    flat = torch.arange(14.0)
    for cells in (1, 6, 8, 100):
        seen = {}
        for places, mask, samples in RaggedRows.of_texts(offsets).batches(cells):
            assert mask.numel() <= max(cells, int(offsets.diff().max()))
            for row, valid, sample in zip(flat[places], mask, samples.tolist(), strict=True):
                seen[sample] = row[valid].tolist()
        assert seen == {i: flat[a:b].tolist() for i, (a, b) in enumerate(pairwise(offsets))}


def test_rows_of_pairs_lie_where_the_cells_are_joined():
    source = torch.tensor([[True, True, False], [True, True, True]])
    target = torch.tensor([[True, True], [True, False]])
    padded = torch.arange(12.0).reshape(2, 2, 3)
    flat = joined_cells([(torch.arange(2), padded, valid_cells(source, target))])
    rows = RaggedRows.of_pairs(source, target)
    found = [flat[a : a + n].tolist() for a, n in zip(rows.starts, rows.lengths, strict=True)]
    assert found == [[0.0, 1.0], [3.0, 4.0], [6.0, 7.0, 8.0]]
    assert rows.samples.tolist() == [0, 0, 1]


def test_what_meets_the_rows_is_made_where_they_are():
    offsets, mask = torch.tensor([0, 2, 5]), torch.ones(2, 3, dtype=torch.bool)
    with torch.device("meta"):  # what is made without saying where could not be read
        rows = [RaggedRows.of_texts(offsets), RaggedRows.of_pairs(mask, mask)]
        assert all(places.device.type == "cpu" for own in rows for places, *_ in own.batches())
