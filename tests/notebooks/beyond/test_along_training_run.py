"""Parameters kept along the way: where the looks are, and that each is the network of that update."""

import torch

from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.corpus import Corpus, collate
from companion.runs.recipe import RecipeSpec
from notebooks.beyond.along_training.along_training import (
    UniformEncoderDecoder,
    load_task,
    network_at,
    new_network,
    spaced_looks,
)

OPTIONS = (("length", 4), ("n_held_out", 6), ("n_train", 60))
TINY = {"task": "copying_sample", "options": OPTIONS, "width": 6, "batch_size": 16, "looks_per_doubling": 1}


def test_looks_are_spaced_by_a_ratio_and_end_with_the_last():
    assert spaced_looks(40, 5, 1) == (0, 5, 10, 20, 40)
    assert spaced_looks(41, 5, 1) == (0, 5, 10, 20, 40, 41)
    assert spaced_looks(3, 5, 1) == (0, 3)
    assert spaced_looks(8, 1, 3) == (0, 1, 2, 3, 4, 5, 6, 8)


def test_each_look_is_the_network_of_that_update(store):
    """A shorter training of the same settings is the beginning of a longer one."""
    short, long = (store.recording(RecipeSpec.of("along_training", steps=steps, **TINY)) for steps in (4, 9))
    assert short["steps"].tolist() == [0, 2, 4]
    assert long["steps"].tolist() == [0, 2, 4, 8, 9]
    batch = collate(load_task(long.spec.resolved).held_out, [0, 1])
    for look in range(3):
        one, other = network_at(short, look)(batch), network_at(long, look)(batch)
        torch.testing.assert_close(one.logits, other.logits)
    assert not torch.allclose(network_at(long, 0)(batch).logits, network_at(long, -1)(batch).logits)


def test_the_first_look_is_the_untrained_network_of_learned_and_uniform_alike(store):
    batch = collate(load_task(RecipeSpec.of("along_training", **TINY).resolved).held_out, [0])
    states = []
    for attention in ("learned", "uniform"):
        recording = store.recording(RecipeSpec.of("along_training", steps=2, attention=attention, **TINY))
        first = network_at(recording, 0)
        fresh = new_network(recording.spec.resolved, 10, 10)
        assert isinstance(first, UniformEncoderDecoder) == (attention == "uniform")
        torch.testing.assert_close(first(batch).logits, fresh(batch).logits)
        states.append(first(batch).encoder_states)
    torch.testing.assert_close(*states)


def test_a_uniform_network_reads_out_the_mean_of_valid_states_and_has_its_twins_parameters():
    config = ModelConfig("AED", source_size=8, target_size=9, width=6)
    learned, uniform = (
        kind(config, torch.Generator().manual_seed(3)) for kind in (EncoderDecoder, UniformEncoderDecoder)
    )
    batch = collate(Corpus.from_ids([[4, 5, 6], [7]], [[4, 5], [6, 7, 4]]), [0, 1])
    one, other = learned(batch), uniform(batch)
    for sample, length in ((0, 4), (1, 2)):  # end marks included
        mean = other.encoder_states[sample, :length].mean(0)
        torch.testing.assert_close(other.context[sample], mean.expand(4, 6))
        assert not other.attention[sample, :, length:].any()
    torch.testing.assert_close(one.encoder_states, other.encoder_states)
    torch.testing.assert_close(one.decoder_states, other.decoder_states)
    features = torch.cat([other.decoder_states, other.context], -1)
    torch.testing.assert_close(other.logits, learned.readout(features))
    assert not torch.allclose(other.attention, one.attention)
