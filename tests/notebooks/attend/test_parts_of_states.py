"""Interchange, regularisation, robustness: parts of states exchanged, explained and remembered."""

from dataclasses import replace

import pytest
import torch

from attnlib.decomposition import STATE_PARTS, Parts
from attnlib.models.vocabulary import BOS, PAD
from notebooks.attend.regularisation.experiment import measure_residual_contents
from notebooks.attend.robustness import experiment
from notebooks.shared import measure, suite, translators
from tests.attnlib.models.model_builders import batch_of, encoder_decoder

# One length: position and end mark are not confounded, and few held-out samples make cells of thirty.
SHORT = {"min_length": 7, "max_length": 7, "n_train": 600, "n_held_out": 100}
SPEC = suite.each_planned(suite.SuiteConfig(width=8, steps=4), "one_to_one", "AED", 1, task_options=SHORT)[0]
BOTH = SPEC, replace(SPEC, architecture="AO")  # with recurrence, and without
SIDES = "encoder", "decoder"


# Parts exchanged in the forward pass: what moves where.


def test_parts_come_from_valid_places_of_the_sample_or_of_the_batch():
    mask = torch.tensor([[True, True, True], [True, True, False]])
    numbers = torch.arange(1.0, 7).view(2, 3, 1) * mask[..., None]
    parts = Parts(numbers, 10 * numbers, 100 * numbers, mask=mask)
    exchanged = measure.exchanged(parts, torch.Generator().manual_seed(0))
    for sample, places in enumerate(([1, 2, 3], [4, 5, 0])):
        assert sorted(exchanged["temporal"][sample].flatten().tolist()) == sorted(places)
        assert sorted(exchanged["state"][sample].flatten().tolist()) == sorted(111 * n for n in places)
    for name, scale in (("input", 10), ("residual", 100)):
        assert sorted(exchanged[name][mask].flatten().tolist()) == [scale * n for n in (1, 2, 3, 4, 5)]
        assert exchanged[name][~mask].abs().sum() == 0
    assert exchanged["temporal"][1, 2] == 0


@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_states_that_are_left_alone_give_the_network_itself(kind):
    model = encoder_decoder(kind, embedding_scale=2.0)
    trace = model(batch_of())
    states = {"decoder": trace.decoder_states, "encoder": trace.encoder_states}
    attention, words = measure.attend(model, trace, states)
    torch.testing.assert_close(attention, trace.attention)
    assert torch.equal(words, trace.logits.argmax(-1))


def test_a_part_that_is_exchanged_for_itself_changes_nothing(store, monkeypatch):
    measured = measure.measure_interchange(store.model(SPEC), fit_samples=600, samples=100)

    def itself(parts, draw):
        return dict(zip(STATE_PARTS, parts, strict=True)) | {"state": parts.total()}

    monkeypatch.setattr(measure, "exchanged", itself)
    same = measure.measure_interchange(store.model(SPEC), fit_samples=600, samples=100)
    for side in SIDES:
        assert measured["exchanged"][side]["state"]["variation"] > 0
        for outcome in same["exchanged"][side].values():
            assert outcome["variation"] == pytest.approx(0, abs=1e-5)
            assert (outcome["moved"], outcome["changed"]) == (pytest.approx(0, abs=0.01),) * 2
            assert outcome["accuracy"] == pytest.approx(same["accuracy"], abs=0.01)
    assert same["removed"] == measured["removed"]


# What residuals hold, in networks in which it is known, and levels of decay.


@pytest.fixture(scope="module")
def contents(store):
    """What residuals of a network with recurrence consist of, and those of one without."""
    return [measure_residual_contents(store.model(spec), fit_samples=600, samples=600) for spec in BOTH]


def test_residuals_with_recurrence_are_of_preceding_words(contents):
    recurrent, alone = contents
    for side in SIDES:
        assert recurrent["explained"][side]["history"] > 0.3
        assert 0 < recurrent["share"][side] < 1
        assert alone["explained"][side]["history"] < 0.2


def test_residuals_without_recurrence_are_the_interaction(contents):
    """States of AO depend on position and present word alone, so their interaction is the whole residual."""
    _, alone = contents
    for side in SIDES:
        assert alone["explained"][side]["interaction"] == pytest.approx(1, abs=1e-3)


def test_residuals_of_another_sentence_rebuild_attention_less_well(contents):
    recurrent, _ = contents
    assert recurrent["foreign"]["samples"] == 100  # all of one length: everyone has a partner
    assert recurrent["foreign"]["similarity"] < 1


def test_the_interaction_rebuilds_attention_without_recurrence(contents):
    _, alone = contents
    rebuilt = {name: attention["similarity"] for name, attention in alone["rebuilt"].items()}
    assert rebuilt["interaction"] == pytest.approx(1, abs=1e-3)
    assert rebuilt["none"] - 1e-6 <= rebuilt["temperature"]
    assert rebuilt["none"] < 1


# Memory by hand, networks that write by themselves, and the headline counted.


def test_words_before_are_found_at_their_lag():
    tokens = [2, 0, 1, 2]
    lags = measure.lagged_words(torch.tensor([tokens]), torch.ones(1, 4, dtype=torch.bool), 3)
    there = [(place, lag - 1, tokens[place - lag]) for place in range(4) for lag in range(1, place + 1)]
    assert [tuple(at) for at in lags.view(4, measure.LAGS, 3).nonzero().tolist()] == there
    assert lags.sum() == len(there)


@pytest.fixture(scope="module")
def robustness(store):
    return [experiment.measure_robustness(store.model(spec), samples=600) for spec in BOTH]


def test_shares_of_a_network_sum_to_one(robustness):
    recurrent, _ = robustness
    for way in ("teacher_forced", "free_running"):
        assert sum(recurrent[way]["covariance_share"].values()) == pytest.approx(1, abs=1e-4)
    for side in SIDES:
        assert sum(recurrent["variance"][side].values()) == pytest.approx(1, abs=1e-4)


def test_typicality_is_a_share(robustness):
    recurrent, _ = robustness
    for way in ("teacher_forced", "free_running"):
        assert 0 < recurrent[way]["typicality"] <= 1


def test_a_network_without_recurrence_remembers_nothing(robustness):
    """What preceding words explain of its states is noise."""
    recurrent, without = robustness
    for side in SIDES:
        assert recurrent["memory"][side] > 0.3
        assert without["memory"][side] < 0.1


def test_a_network_without_recurrence_has_the_smaller_residual(robustness):
    recurrent, without = robustness
    for side in SIDES:
        assert without["variance"][side]["residual"] < recurrent["variance"][side]["residual"]


def test_a_network_that_wrote_the_right_words_is_the_teacher_forced_one(store, monkeypatch):
    monkeypatch.setattr("notebooks.attend.robustness.experiment.greedy", lambda model, batch, steps: batch)
    measured = experiment.measure_robustness(store.model(SPEC), samples=60)
    assert measured["same_words"] == 1
    assert measured["free_running"] == measured["teacher_forced"]


@pytest.mark.parametrize("kind", ["VED", "AED", "AO"])
def test_every_word_written_is_the_likeliest_after_those_before(kind):
    model = encoder_decoder(kind, embedding_scale=2.0)
    free = translators.greedy(model, batch_of(), max_steps=6)
    logits = model(free).logits.detach()
    logits[..., [PAD, BOS]] = -torch.inf
    assert torch.equal(logits.argmax(-1)[free.target_mask], free.target_output[free.target_mask])
