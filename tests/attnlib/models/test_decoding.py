"""Free running: the words written are those the network finds likeliest after its own."""

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.search import greedy, with_target
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import BOS, EOS, PAD

CORPUS = Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5, 6, 7]])


def model_of(architecture, seed=0):
    config = ModelConfig(architecture, source_size=9, target_size=8, width=6, embedding_scale=2.0)
    return EncoderDecoder(config, torch.Generator().manual_seed(seed)).double().eval()


@pytest.mark.parametrize("architecture", ["VED", "AED", "AO"])
def test_every_word_is_the_likeliest_after_those_before(architecture):
    model = model_of(architecture)
    free = greedy(model, collate(CORPUS, np.arange(3)), max_steps=6)
    logits = model(free).logits.detach()
    logits[..., [PAD, BOS]] = -torch.inf
    assert torch.equal(logits.argmax(-1)[free.target_mask], free.target_output[free.target_mask])


def test_a_sample_ends_with_its_end_mark():
    model = model_of("AED")
    with torch.no_grad():
        model.readout.weight.zero_()
        model.readout.bias.zero_()
        model.readout.bias[EOS] = 1.0
    free = greedy(model, collate(CORPUS, np.arange(3)), max_steps=6)
    assert free.target_output.tolist() == [[EOS]] * 3
    assert free.target_input.tolist() == [[BOS]] * 3


def test_with_target_shifts_by_one_and_reads_no_end_mark():
    batch = with_target(collate(CORPUS, np.arange(2)), torch.tensor([[4, EOS, PAD], [5, 6, 7]]))
    assert batch.target_input.tolist() == [[BOS, 4, PAD], [BOS, 5, 6]]
    assert batch.target_mask.tolist() == [[True, True, False], [True, True, True]]


def test_no_steps_are_refused():
    with pytest.raises(BadInput, match="max_steps is 0"):
        greedy(model_of("AO"), collate(CORPUS, np.arange(1)), max_steps=0)
