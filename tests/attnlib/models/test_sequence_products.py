"""Multiplications of the primer's networks against torch's own counter."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence, sample_products
from attnlib.training.corpus import Corpus, collate

KINDS = {
    **NAMED,
    "plain": {},
    "lstm": {"cell": "lstm"},
    "bahdanau_concat": {"decoder": "bahdanau", "scoring": "concat", "layers": 2},
    "two_ways": {"bidirectional": True, "scoring": "general", "layers": 2},
}


BATCH = collate(Corpus.from_ids([[4, 5, 6, 7]], [[4, 5, 6, 7, 4, 5]]), np.arange(1))


def model_of(kind):
    model = SequenceToSequence(SequenceConfig(9, 8, width=6, **KINDS[kind]), torch.Generator().manual_seed(0))
    return model.double()  # in single precision an LSTM is one operation, which the counter does not know


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_that_torch_counts(kind):
    """A product of (n, k) with (k, m) takes n k m multiplications and as many additions."""
    model = model_of(kind)
    with FlopCounterMode(display=False) as counter:
        model(BATCH)
    assert sum(sample_products(model, 5, 7).values()) == counter.get_total_flops() // 2


def test_a_sample_has_at_least_one_step_on_each_side():
    with pytest.raises(BadInput, match="0 source and 3 target steps"):
        sample_products(model_of("plain"), 0, 3)
