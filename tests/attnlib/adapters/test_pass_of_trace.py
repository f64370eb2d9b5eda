"""The pass of a network with one attention, whose score is the dot product of its states."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import pass_of_trace
from attnlib.errors import BadInput
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.corpus import Corpus, collate

CORPUS = Corpus.from_ids([[4, 5, 6, 4], [7, 8], [5]], [[4, 5], [6, 7, 4, 4], [5]])


def trace_of(architecture):
    config = ModelConfig(architecture, source_size=9, target_size=9, width=8, embedding_scale=2.0)
    network = EncoderDecoder(config, torch.Generator().manual_seed(0)).eval()
    return network(collate(CORPUS, range(3)))  # with its gradient, as in training


@pytest.mark.parametrize("architecture", ["AED", "AO"])
def test_scores_and_attention_are_those_of_the_network(architecture):
    trace = trace_of(architecture)
    found = pass_of_trace(trace)
    (one,) = found.attended
    torch.testing.assert_close(one.scores[:, 0], trace.scores)
    own = found.softmax(one, 0)[found.target_mask]
    torch.testing.assert_close(own, trace.attention[found.target_mask])
    assert found.unchecked == ()


def test_a_score_of_another_scale_is_refused():
    trace = trace_of("AED")
    with pytest.raises(BadInput, match=r"cross\.0, head 0: attention from the caught projections is up to"):
        pass_of_trace(trace, scale=0.5)
    halved = (trace.scores / 2).masked_fill(~trace.source_mask[:, None], -torch.inf).softmax(-1)
    assert pass_of_trace(replace(trace, attention=halved), scale=0.5).attended[0].scale == 0.5
