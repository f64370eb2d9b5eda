"""Batches that come in another order at the second reading are refused, before anything is fitted."""

import pytest
import torch
from torch.utils.data import DataLoader

from attnlib import HuggingFace, Stream, TokenBatch, analyse
from attnlib.errors import BadInput
from tests.attnlib.adapters import adapter_builders as toys

PAIRS = [([5 + n % 40, 6, 7], [8 + n % 40, 9, 3]) for n in range(64)]


def batch_of(pairs):
    sources, targets = zip(*pairs, strict=True)
    return TokenBatch.of_rows(sources, targets)


def mapping_of(pairs):
    sources, targets = zip(*pairs, strict=True)
    return {"input_ids": torch.tensor(sources), "labels": torch.tensor(targets)}


def stream_of(collate, shuffle):
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(PAIRS, batch_size=8, shuffle=shuffle, collate_fn=collate, generator=order)
    return Stream(HuggingFace(toys.model_of("Bart")).trace, loader, probed=0)


@pytest.mark.parametrize("collate", [batch_of, mapping_of])
def test_a_loader_that_shuffles_is_refused(collate):
    with pytest.raises(BadInput, match="shuffle=False"):
        analyse(stream_of(collate, shuffle=True))


@pytest.mark.parametrize("collate", [batch_of, mapping_of])
def test_a_loader_in_one_order_is_analysed(collate):
    assert analyse(stream_of(collate, shuffle=False)).held_out
