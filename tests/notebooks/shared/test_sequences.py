"""What is kept of a network on any task, sample by sample, and a Transformer whose queries are its keys."""

import numpy as np
import pytest
import torch

from attnlib.models.corpus import Corpus, collate
from attnlib.models.search import greedy_search
from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from attnlib.models.transformer import Transformer
from attnlib.models.vocabulary import PAD
from companion.runs.procedure import Recording, RunSpec
from notebooks.shared.sequence_course import judged_samples, load_task, snapshot_of, written
from notebooks.shared.trainings.transformer_sequences import (
    new_network,
    record,
    recorded_network,
    tie_encoder,
)
from tests.attnlib.models.model_builders import SMALL, batch_of, generator

CORPUS = Corpus.from_ids([[4, 5, 6], [7, 8, 4, 5, 6], [5]], [[4, 5], [6, 7, 4, 4], [5]])


@pytest.fixture(params=[4, PAD])
def word(request):
    """The word that a network always says; that of the padding is right nowhere."""
    return request.param


@pytest.fixture
def network(word):
    network = SequenceToSequence(SequenceConfig(9, 8, width=6), generator()).eval()
    with torch.no_grad():
        network.readout.bias[word] = 20.0  # always likeliest
    return network


def test_snapshots_are_those_of_each_sample_by_itself(network, word):
    snapshot = snapshot_of(network, CORPUS)
    for i in range(3):
        alone = collate(CORPUS, [i])
        logs = network(alone).logits.detach().log_softmax(-1)[0]
        length = logs.shape[0]
        chosen = -logs[torch.arange(length), alone.target_output[0]]
        torch.testing.assert_close(snapshot["loss"][i, :length], chosen)
        assert snapshot["right"][i, :length].tolist() == [int(w == word) for w in alone.target_output[0]]


def test_snapshots_are_zero_at_padding(network):
    snapshot = snapshot_of(network, CORPUS)
    for i in range(3):
        length = len(CORPUS.target(i)) + 1
        assert not snapshot["loss"][i, length:].any()
        assert not snapshot["right"][i, length:].any()


def test_what_is_written_is_what_each_source_gets_alone():
    network = SequenceToSequence(SequenceConfig(9, 8, width=6), generator(2)).eval()
    rows = written(network, CORPUS)
    most = 2 * int(CORPUS.target_lengths.max()) + 10
    for i in range(3):
        alone = collate(CORPUS, [i])
        words = greedy_search(network, alone.source, alone.source_mask, max_steps=most).words[0, 0]
        row = rows[i].numpy()
        assert np.array_equal(row[row != PAD], words[words != PAD].numpy())


@pytest.mark.parametrize("tied", [False, True])
def test_the_recorded_network_is_the_trained_one(tmp_path, tied):
    spec = RunSpec.of(
        "transformer_sequences", tied=tied, task="lexicon_summary", width=8, heads=2, layers=1, steps=4,
        options=(("max_length", 7), ("n_train", 60), ("n_held_out", 20)), batch_size=8, snapshots=2,
    )  # fmt: skip
    recorded, judged = record(spec.resolved, tmp_path), judged_samples(spec.resolved)
    network = recorded_network(Recording(spec, recorded, {}))
    torch.testing.assert_close(snapshot_of(network, judged)["loss"], recorded["loss"][-1])
    assert ("network.encoder.0.self_attention.key_map.weight" in recorded) is not tied
    task = load_task(spec.resolved)
    start = new_network(spec.resolved, len(task.source_vocabulary), len(task.target_vocabulary)).eval()
    torch.testing.assert_close(snapshot_of(start, judged)["loss"], recorded["loss"][0])


def test_a_tied_encoder_is_the_free_one_whose_key_map_is_the_query_map():
    free, tied = (Transformer(SMALL, generator(3)) for _ in range(2))
    state = tie_encoder(tied).state_dict()
    left = {name for name in free.state_dict() if "encoder" in name and ".self_attention.key_map." in name}
    assert set(state) == set(free.state_dict()) - left
    with torch.no_grad():
        for layer in free.encoder:
            layer.self_attention.key_map.load_state_dict(layer.self_attention.query_map.state_dict())
    torch.testing.assert_close(tied(batch_of()).logits, free(batch_of()).logits, rtol=0, atol=0)
    query, key = tied.projections("encoder_self", layer=0, head=1)
    torch.testing.assert_close(query.weight * SMALL.head_width**0.5, key.weight)
