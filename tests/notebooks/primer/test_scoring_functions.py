"""Scores, directions and decoders: numbers by hand, measures on tiny networks, and the experiment by hand."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.flop_counter import FlopCounterMode

from attnlib.models.corpus import Corpus
from attnlib.models.sequence_to_sequence import SequenceToSequence
from attnlib.models.vocabulary import EOS, Vocabulary
from companion.results.config import override
from notebooks.primer.scoring_functions import experiment
from notebooks.primer.scoring_functions.experiment import updates_to
from notebooks.primer.scoring_functions.trainings import asked_before
from tests.attnlib.models.model_builders import SEQUENCES, batch_of, sequence_network
from tests.attnlib.models.test_networks import check_against_definition
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import recording_of, tiny
from tests.notebooks.worked import assert_answer

TINY = tiny("scoring_functions")


def recorded(store, *kind, config=TINY):
    return store.recording(experiment.specs_of_kind(config, experiment.Kind("reordering", *kind))[0])


@pytest.mark.parametrize("decoder", ["luong", "bahdanau", experiment.BEFORE])
def test_scores_are_those_of_the_state_that_asks_alone(store, decoder):
    asking, silent = ("present", "previous") if decoder == "luong" else ("previous", "present")
    measured = experiment.measure_asking_state(recorded(store, decoder, 1, "dot"))
    assert measured[asking] < 1e-5
    assert measured[silent] > 0.05


@pytest.mark.parametrize("decoder", ["luong", "bahdanau", experiment.BEFORE])
def test_some_weight_falls_on_gold_links(store, decoder):
    measured = experiment.measure_asking_state(recorded(store, decoder, 1, "dot"))
    assert 0 < measured["weight_on_gold"] < 1


def test_a_state_knows_later_words_in_two_directions_only(store):
    """Of networks that have hardly been trained: what is there is there by construction."""
    wide = override(TINY, {"width": 32, "n_train": 100, "steps": 1, "snapshots": 1})
    bits = {}
    for directions in (1, 2):
        recording = recorded(store, "bahdanau", directions, "additive", config=wide)
        measured = experiment.measure_context_of_states(recording, size=3, samples=1_000)
        bits[directions] = dict(zip(experiment.OFFSETS, measured["bits"], strict=True))
    assert bits[1][1] < 0.05
    assert bits[2][1] > 1
    assert min(bits[key][0] for key in bits) > 2.5  # a modifier is one of eight words


def test_cost_is_that_of_a_sentence_of_mean_length(store):
    dot, additive = (
        experiment.measure_cost(recorded(store, "luong", 1, score)) for score in ("dot", "additive")
    )
    width, source, target = 6, dot["source"], dot["target"]
    assert 6 <= source == target <= 8  # five words or seven, and the end mark
    assert dot["score_parameters"] == 0
    assert additive["score_parameters"] == 2 * width**2 + width
    assert additive["parameters"] - dot["parameters"] == additive["score_parameters"]
    assert dot["score"] == source * target * width
    assert additive["score"] == dot["score"] + (source + target) * width**2
    assert dot["rest"] == additive["rest"]


def test_bleu_is_held_against_the_words_of_the_text(monkeypatch):
    lines = [("a", "Ein Hund schläft."), ("b", "Zwei Hunde spielen im Schnee.")]
    words = [["ein", "hund", "schläft", "."], ["zwei", "hunde", "spielen", "im", "schnee", "."]]
    vocabulary = Vocabulary.of([*words[0], *words[1][:4]], open=True)  # "schnee" is too rare
    ids = [vocabulary.encode(sentence) for sentence in words]
    judged = Corpus.from_ids([[4], [5]], ids)
    monkeypatch.setattr(experiment, "judged_samples", lambda settings: judged)
    monkeypatch.setattr(experiment, "load_task", lambda _: SimpleNamespace(target_vocabulary=vocabulary))
    monkeypatch.setattr(experiment, "read_translation", lambda name: SimpleNamespace(validation=lines))

    def bleu_of(*rows):
        written = pad_sequence([torch.tensor([*row, EOS]) for row in rows], batch_first=True)
        return experiment.measure_bleu(recording_of({"written": written}, task="captions", task_options=()))

    measured = bleu_of(*ids)
    assert measured["sentences"] == 2
    assert 60 < measured["bleu"] < 100  # all but the rare word
    assert bleu_of(*ids[::-1])["bleu"] < 20
    lines.reverse()
    assert_refused(lambda: bleu_of(*ids), "not its validation sentences")


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
@torch.no_grad()
def test_asked_before_is_luongs_network_asked_by_the_state_of_the_step_before(cell, layers):
    before, present = (
        sequence_network(network=kind, scoring="general", cell=cell, layers=layers)
        for kind in (asked_before.PreviousStateQueries, SequenceToSequence)
    )
    torch.testing.assert_close(before.state_dict(), present.state_dict(), rtol=0, atol=0)
    check_against_definition(before, previous_query=True)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_products_are_those_that_torch_counts(kind):
    """A product of (n, k) with (k, m) takes n k m multiplications and as many additions."""
    model = sequence_network(kind)  # in double precision: the counter does not know the LSTM of single
    with FlopCounterMode(display=False) as counter:
        model(batch_of(pairs=[([4, 5, 6, 7], [4, 5, 6, 7, 4, 5])]))
    scaling = 30 if model.config.scoring == "scaled_dot" else 0  # 5 · 6 entries, which torch does not count
    assert sum(experiment.sample_products(model, 5, 7).values()) == counter.get_total_flops() // 2 + scaling


RISING = {"steps": [0, 10, 20, 30], "token_accuracy": [0.1, 0.4, 0.8, 0.4]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The first time that a course reaches the threshold.
        pytest.param((0.5, RISING), 12.5, id="between_two_snapshots"),
        pytest.param((0.1, RISING), 0, id="at_the_start"),
        pytest.param((0.9, RISING), None, id="never"),
    ],
)
def test_updates_to_by_hand(given, expected):
    assert_answer(updates_to(*given), expected)
