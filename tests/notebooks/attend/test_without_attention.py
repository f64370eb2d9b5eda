"""Networks without attention: a network whose memory is known by hand, and the experiment on tiny models."""

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import MARKS
from companion.runs.store import TrainedModel
from notebooks.attend.without_attention import measure
from notebooks.attend.without_attention.experiment import _in_turn
from notebooks.shared.synthetic import one_to_one

LENGTH, WORDS = 3, 4


class Queue(torch.nn.Module):
    """Keeps word t in block t of its state and says block s at step s; reading words changes nothing."""

    def __init__(self):
        super().__init__()
        self.readout = torch.nn.Linear(1, 1)  # only its device is asked for

    def encode(self, source, source_mask):
        words = torch.nn.functional.one_hot(source[:, :LENGTH] - len(MARKS), WORDS).float()
        states = torch.zeros(len(source), LENGTH + 1, LENGTH * WORDS)
        for t in range(LENGTH):
            states[:, t:, t * WORDS : (t + 1) * WORDS] = words[:, t : t + 1]
        return states, states[:, -1]

    def decode(self, target_input, start):
        return start[:, None].expand(-1, target_input.shape[1], -1)

    def attend(self, batch, encoder_states, decoder_states):
        logits = torch.zeros(*decoder_states.shape[:2], WORDS + len(MARKS))
        for s in range(LENGTH):
            logits[:, s, len(MARKS) :] = 9 * decoder_states[:, s, s * WORDS : (s + 1) * WORDS]
        logits[:, LENGTH, 2] = 9  # the end mark
        return type("Trace", (), {"logits": logits})()

    def forward(self, batch):
        return self.attend(batch, None, self.decode(batch.target_input, self.encode(batch.source, None)[1]))


@pytest.fixture(scope="module")
def queue():
    task = one_to_one(n_words=WORDS, min_length=LENGTH, max_length=LENGTH, n_train=300, n_held_out=20)
    return TrainedModel(None, task, Queue(), {"held_out": {"token_accuracy": 1.0, "exact_match": 1.0}})


def test_memory_of_a_queue_is_even_and_whole(queue):
    found = measure.measure_memory(queue, fit_samples=300)
    assert found["last"]["fitted"] == pytest.approx(1)
    assert found["last"]["held_out"] == pytest.approx(1)
    assert sum(found["last"]["share"]) == pytest.approx(1, abs=0.05)
    assert found["last"]["share"] == pytest.approx([1 / 3] * 3, abs=0.03)
    encoder = np.array(found["encoder"])
    assert not np.triu(encoder, 1).any()  # nothing of what has not been read
    assert encoder[0, 0] == pytest.approx(1)
    assert found["accuracy"] == [1.0] * (LENGTH + 1)
    assert not np.array(found["crossed"]["read"]).round(3).any()  # it keeps nothing of what it reads


def test_a_queue_says_each_exchanged_word_at_its_own_step(queue):
    found = measure.measure_swap(queue, fit_samples=300)
    for way in ("component", "read_too", "real"):
        flips = np.array(found[way]["flip"])
        assert flips.shape == (LENGTH, LENGTH + 1)
        assert np.array_equal(flips, np.eye(LENGTH, LENGTH + 1))
        assert np.array(found[way]["margin"])[:, :-1].diagonal() == pytest.approx(18, abs=1e-3)
    assert _in_turn(found["component"]["variation"]) == 1


def test_sentences_of_several_lengths_are_refused():
    with pytest.raises(BadInput, match="2 lengths"):
        measure.one_length(Corpus.from_ids([[4], [4, 5]], [[4], [4, 5]]))
