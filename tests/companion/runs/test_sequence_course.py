"""What is kept of a network on its way: against each sample by itself, and nothing at padding."""

import numpy as np
import torch

from attnlib.models.search import greedy_search
from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import PAD
from companion.runs.sequence_course import look_at, written

CORPUS = Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5]])


def network_that_says(word):
    """Random but for one word, which it always finds likeliest."""
    network = SequenceToSequence(SequenceConfig(9, 8, width=6), torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        network.readout.bias[word] = 20.0
    return network


def test_looks_are_those_of_each_sample_by_itself_and_zero_at_padding():
    # It says the word of the padding too, which is right nowhere.
    for word in (4, PAD):
        network = network_that_says(word)
        found = look_at(network, CORPUS)
        for i in range(3):
            alone = collate(CORPUS, [i])
            logs = network(alone).logits.detach().log_softmax(-1)[0]
            length = logs.shape[0]
            chosen = -logs[torch.arange(length), alone.target_output[0]]
            torch.testing.assert_close(found["loss"][i, :length], chosen)
            assert found["right"][i, :length].tolist() == [int(w == word) for w in alone.target_output[0]]
            assert not found["loss"][i, length:].any()
            assert not found["right"][i, length:].any()


def test_what_is_written_is_what_each_source_gets_alone():
    network = SequenceToSequence(SequenceConfig(9, 8, width=6), torch.Generator().manual_seed(2)).eval()
    rows = written(network, CORPUS)
    most = 2 * int(CORPUS.target_lengths.max()) + 10
    for i in range(3):
        alone = collate(CORPUS, [i])
        words = greedy_search(network, alone.source, alone.source_mask, most).words[0, 0]
        own = rows[i].numpy()
        assert np.array_equal(own[own != PAD], words[words != PAD].numpy())
