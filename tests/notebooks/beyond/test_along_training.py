"""The measure against plain loops, the order of takeovers by hand, and the experiment on tiny networks."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch

from attnlib.models.corpus import collate
from companion.runs.procedure import RunSpec
from notebooks.beyond.along_training.experiment import last_values, takeover_step
from notebooks.beyond.along_training.trainings import along_training
from notebooks.beyond.along_training.trainings.along_training import (
    load_task,
    network_at,
    new_network,
    spaced_checkpoints,
)
from tests.attnlib.models.model_builders import batch_of, encoder_decoder, generator
from tests.notebooks.worked import assert_answer

FIGURE = "along_training"


def test_the_probe_is_what_the_network_says_with_all_attention_on_one_position(recording):
    network, task = network_at(recording, -1), load_task(recording.spec.resolved)
    batch = collate(task.held_out, range(6))
    trace = network(batch)
    probe = along_training.log_probe(network, trace).exp()
    for t in range(batch.source.shape[1]):
        context = trace.encoder_states[:, t, None].expand_as(trace.decoder_states)
        logits = network.readout(torch.cat([trace.decoder_states, context], -1))
        right = logits.softmax(-1).gather(-1, batch.target_output[..., None])[..., 0]
        valid = batch.target_mask & batch.source_mask[:, t, None]
        torch.testing.assert_close(probe[:, :, t][valid], right[valid])
        assert not probe[:, :, t][~valid].any()


def test_the_measure_is_that_of_a_loop_over_words(recording):
    """Sample by sample without padding, at the last snapshot."""
    measured = along_training.measure_along_training(recording, fitted=40, judged=10)
    network, task = network_at(recording, -1), load_task(recording.spec.resolved)
    rows = []
    for sample in range(10):
        batch = collate(task.held_out, [sample])
        with torch.no_grad():
            trace = network(batch)
        probe, attention = along_training.log_probe(network, trace)[0].exp(), trace.attention[0]
        source = batch.source[0].tolist()
        for place, target in task.gold[sample]:
            same = [t for t, word in enumerate(source) if word == source[place]]
            right = trace.logits[0, target].argmax() == batch.target_output[0, target]
            on_word = attention[target, same].sum(), attention[target, -1]
            known = probe[target, same].sum() / probe[target].sum()
            rows.append([len(same) / len(source), known, *on_word, right])
    names = ("translation", "on_word", "on_end", "token_accuracy")
    numbers = [measured["chance"], *(measured[name][-1] for name in names)]
    assert numbers == pytest.approx(np.mean(rows, axis=0), abs=1e-6)


def test_text_without_gold_links_is_linked_by_its_counts(tmp_path):
    """Pairs of words of a lexicon, the second one first in the target: IBM Model 1 finds who is who."""
    lexicon = {"red": "rouge", "owl": "hibou", "sees": "voit", "two": "deux"}
    lines = list(combinations(lexicon, 2)) * 20
    for name, side in (("a", lines), ("b", [[lexicon[word] for word in line[::-1]] for line in lines])):
        (tmp_path / name).write_text("\n".join(map(" ".join, side)) + "\n", encoding="utf-8")
    options = (("source", str(tmp_path / "a")), ("target", str(tmp_path / "b")))
    assert load_task(along_training.Settings(task="parallel", options=options)).gold is None
    assert along_training._links("parallel", options, 8) == (frozenset({(0, 1), (1, 0)}),) * 8


# The three measures by hand: two rows of three positions, one with a word that stands twice, and padding.

MASK = torch.tensor([[True, True, True, False]])
LINKS = torch.zeros(1, 4, 4, dtype=torch.bool)
LINKS[0, 0, 2] = LINKS[0, 1, 1] = True  # word 7 at its second place, word 8; the rest has no link
WORDS = along_training.positions_of_words(torch.tensor([[7, 8, 7, 0]]), LINKS)
PROBE = torch.tensor([[0.1, 0.2, 0.1, 0], [0.3, 0.1, 0.1, 0], [0.2, 0.2, 0.2, 0], [0, 0, 0, 0]])[None].log()


def test_measures_are_those_by_hand():
    knowledge = along_training.word_knowledge(PROBE, WORDS, MASK)
    assert knowledge.share[0, :2].tolist() == pytest.approx([0.5, 0.2])
    assert knowledge.chance[0, :2].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert knowledge.right[0, :2].tolist() == [0, 0]
    logs = [math.log(0.2 / (0.4 / 3)), math.log(0.3 / (0.5 / 3)), 0]
    assert knowledge.best_over_mean[0, :3].tolist() == pytest.approx(logs, abs=1e-6)


def test_the_share_of_uniform_probes_is_at_chance():
    even = torch.full((1, 4, 4), 0.25).log().masked_fill(~MASK[:, None], -torch.inf)
    knowledge = along_training.word_knowledge(even, WORDS, MASK)
    torch.testing.assert_close(knowledge.share[0, :2], knowledge.chance[0, :2])


def test_uniform_probes_share_their_ties():
    even = torch.full((1, 4, 4), 0.25).log().masked_fill(~MASK[:, None], -torch.inf)
    knowledge = along_training.word_knowledge(even, WORDS, MASK)
    torch.testing.assert_close(knowledge.right[0, :2], knowledge.chance[0, :2])


# Parameters kept along the way: where the snapshots are, and that each is the network of that update.

OPTIONS = (("length", 4), ("n_held_out", 6), ("n_train", 60))
COPY = {"task": "copying_sample", "options": OPTIONS, "width": 6}
COPY |= {"batch_size": 16, "snapshots_per_doubling": 1}


def test_each_snapshot_is_the_network_of_that_update(store):
    """A shorter training of the same settings is the beginning of a longer one."""
    short, long = (store.recording(RunSpec.of("along_training", steps=steps, **COPY)) for steps in (4, 9))
    assert short["steps"].tolist() == [0, 2, 4]
    assert long["steps"].tolist() == [0, 2, 4, 8, 9]
    batch = collate(load_task(long.spec.resolved).held_out, [0, 1])
    for snapshot in range(3):
        shorter, other = network_at(short, snapshot)(batch), network_at(long, snapshot)(batch)
        torch.testing.assert_close(shorter.logits, other.logits)
    assert not torch.allclose(network_at(long, 0)(batch).logits, network_at(long, -1)(batch).logits)


def snapshot_at_0(store, attention):
    recording = store.recording(RunSpec.of("along_training", steps=2, attention=attention, **COPY))
    return recording, network_at(recording, 0)


@pytest.fixture
def held_out_sample():
    return collate(load_task(RunSpec.of("along_training", **COPY).resolved).held_out, [0])


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_first_snapshot_is_the_untrained_network(store, held_out_sample, attention):
    recording, first = snapshot_at_0(store, attention)
    fresh = new_network(recording.spec.resolved, 10, 10)
    assert isinstance(first, along_training.UniformEncoderDecoder) == (attention == "uniform")
    torch.testing.assert_close(first(held_out_sample).logits, fresh(held_out_sample).logits)


def test_the_first_snapshots_of_learned_attention_encode_as_those_of_uniform(store, held_out_sample):
    (_, learned), (_, uniform) = (snapshot_at_0(store, attention) for attention in ("learned", "uniform"))
    torch.testing.assert_close(
        learned(held_out_sample).encoder_states, uniform(held_out_sample).encoder_states
    )


def test_a_uniform_network_has_the_mean_of_valid_states_as_context():
    learned = encoder_decoder(seed=3)
    uniform = along_training.UniformEncoderDecoder(learned.config, generator(3)).double()
    other = uniform(batch_of())
    for sample, length in enumerate((4, 6, 2)):  # end marks included
        mean = other.encoder_states[sample, :length].mean(0)
        torch.testing.assert_close(other.context[sample], mean.expand(5, 6))
        assert not other.attention[sample, :, length:].any()


def test_a_uniform_network_has_the_states_of_its_twin():
    learned = encoder_decoder(seed=3)
    uniform = along_training.UniformEncoderDecoder(learned.config, generator(3)).double()
    of_twin, other = learned(batch_of()), uniform(batch_of())
    torch.testing.assert_close(of_twin.encoder_states, other.encoder_states)
    torch.testing.assert_close(of_twin.decoder_states, other.decoder_states)


def test_a_uniform_network_has_the_readout_of_its_twin():
    learned = encoder_decoder(seed=3)
    uniform = along_training.UniformEncoderDecoder(learned.config, generator(3)).double()
    other = uniform(batch_of())
    features = torch.cat([other.decoder_states, other.context], -1)
    torch.testing.assert_close(other.logits, learned.readout(features))


def test_a_uniform_network_attends_otherwise_than_its_twin():
    learned = encoder_decoder(seed=3)
    uniform = along_training.UniformEncoderDecoder(learned.config, generator(3)).double()
    of_twin, other = learned(batch_of()), uniform(batch_of())
    assert not torch.allclose(other.attention, of_twin.attention)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # By a ratio, and the last.
        pytest.param((40, 5, 1), [0, 5, 10, 20, 40], id="last_is_a_power"),
        pytest.param((41, 5, 1), [0, 5, 10, 20, 40, 41], id="last_is_no_power"),
        pytest.param((3, 5, 1), [0, 3], id="fewer_updates_than_the_first"),
        pytest.param((8, 1, 3), [0, 1, 2, 3, 4, 5, 6, 8], id="ratio_below_one_step"),
    ],
)
def test_spaced_checkpoints_by_hand(given, expected):
    assert_answer(spaced_checkpoints(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # A late rise begins at the first snapshot past half of the updates.
        pytest.param(
            (
                {"steps": [0, 2, 4, 5, 8], "token_accuracy": [0, 0.125, 0.25, 0.5, 1], "chance": 0.1},
                ["token_accuracy"],
            ),
            {"token_accuracy": 1, "chance": 0.1, "late_rise": 0.75},
            id="a_rise_past_half_of_the_updates",
        )
    ],
)
def test_last_values_by_hand(given, expected):
    assert_answer(last_values(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The middle of 0.2 and 1 is 0.6, a fifth of the way from 0.5 to 1, where log2 goes from 2 to 4:
        # 2^(2 + 2/5) − 1.
        pytest.param(
            {"steps": [0, 3, 15], "values": [0.2, 0.5, 1], "least": 0.05},
            4.27803164,
            id="between_two_snapshots",
        ),
        # The first crossing counts, and a snapshot on the middle is one.
        pytest.param(
            {"steps": [0, 1, 3, 7, 15], "values": [0, 0, 0.5, 0.1, 1], "least": 0.05},
            3,
            id="first_of_two_crossings",
        ),
        # It may overshoot and come back: 2^1.2 − 1.
        pytest.param(
            {"steps": [0, 1, 3, 7], "values": [0, 0, 1, 0.4], "least": 0.05}, 1.29739671, id="overshoots"
        ),
        # What is past the middle at the first look after the start got there when nobody saw it.
        pytest.param(
            {"steps": [0, 1, 3], "values": [0, 1, 0.4], "least": 0.05}, None, id="past_at_the_first_look"
        ),
        pytest.param(
            {"steps": [0, 1, 3], "values": [0, 0.9, 0.04], "least": 0.05},
            None,
            id="past_at_the_first_look_then_gone",
        ),
        pytest.param(
            {"steps": [0, 1, 3], "values": [0.5, 0.7, 0.1], "least": 0.05}, None, id="begins_past_the_middle"
        ),
        pytest.param(
            {"steps": [0, 1, 3], "values": [0, 0.3, math.nan], "least": 0.05}, None, id="ends_undefined"
        ),
    ],
)
def test_takeover_step_by_hand(given, expected):
    assert_answer(takeover_step(**given), expected)
