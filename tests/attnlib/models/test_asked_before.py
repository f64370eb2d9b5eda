"""Luong's decoder asked by the previous state: what asks, and that nothing else differs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import AskedBefore, SequenceConfig, SequenceToSequence
from attnlib.training.corpus import Corpus, collate

BATCH = collate(Corpus.from_ids([[4, 5, 6], [7, 8, 4]], [[4, 5, 6, 7], [6, 7, 4, 4]]), np.arange(2))
CONFIG = SequenceConfig(9, 8, width=6, scoring="general", embedding_scale=1.0)


def model_of(kind, config=CONFIG):
    return kind(config, torch.Generator().manual_seed(0)).double()


def test_parameters_and_states_are_those_of_luongs_network():
    before, present = (model_of(kind) for kind in (AskedBefore, SequenceToSequence))
    for name, value in before.state_dict().items():
        assert torch.equal(value, present.state_dict()[name])
    torch.testing.assert_close(before(BATCH).decoder_states, present(BATCH).decoder_states)


def test_the_state_of_the_step_before_asks():
    model = model_of(AskedBefore)
    trace = model(BATCH)
    start = model.encode(BATCH.source, BATCH.source_mask)[1].hidden[:, -1:]
    torch.testing.assert_close(trace.queries, torch.cat([start, trace.decoder_states[:, :-1]], dim=1))
    torch.testing.assert_close(trace.scores, model.score(trace.queries, trace.encoder_states))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_word_by_word_and_all_at_once_are_the_same(cell, layers):
    model = model_of(AskedBefore, replace(CONFIG, cell=cell, layers=layers))
    reading, logits = model.begin(BATCH.source, BATCH.source_mask), []
    for words in BATCH.target_input.T:
        found, reading = model.write(words, reading)
        logits.append(found)
    torch.testing.assert_close(torch.stack(logits, 1), model(BATCH).logits)


@pytest.mark.parametrize(("kind", "knows"), [(AskedBefore, False), (SequenceToSequence, True)])
def test_only_the_present_state_has_read_the_last_word_when_it_asks(kind, knows):
    model, words = model_of(kind), BATCH.target_input.clone()
    words[:, 2] = 7 - (words[:, 2] == 7).long()
    one, other = model(BATCH).attention, model(replace(BATCH, target_input=words)).attention
    assert torch.equal(one[:, :2], other[:, :2])
    assert torch.allclose(one[:, 2], other[:, 2]) != knows
    assert not torch.allclose(one[:, 3], other[:, 3])


@pytest.mark.parametrize(
    "changes", [{"decoder": "bahdanau"}, {"input_feeding": True}, {"link": "initial", "scoring": "dot"}]
)
def test_a_network_without_a_present_state_that_asks_is_refused(changes):
    with pytest.raises(BadInput, match="in Bahdanau's it asks anyway"):
        model_of(AskedBefore, replace(CONFIG, **changes))
