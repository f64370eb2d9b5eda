"""States without words, clocks set apart and longer sentences: what must hold whatever a network learned."""

import numpy as np
import pytest
import torch

from attnlib.models.corpus import collate
from notebooks.attend.temporal_formation import experiment
from notebooks.shared.measure import fit_components
from tests.notebooks.figure_builders import tiny


@pytest.fixture(scope="module")
def trained(store):
    """One network of each kind, by the name the chapter gives it."""
    planned = experiment.measurements(tiny("temporal_formation", cell="gru,lstm"))
    return {experiment.name_of(each.spec)["kind"]: store.model(each.spec) for each in planned}


@pytest.mark.parametrize("kind", ["AED", "AED-lstm", "AO", "AO-none"])
def test_average_input_by_position_of_a_corpus_of_one_sentence_is_that_sentence(trained, kind):
    """With one sample μ_t is its state, and the average input at each position its word: the two agree."""
    fitted = fit_components(trained[kind], 1)
    encoder, decoder = experiment.wordless_states(trained[kind], fitted, "average_by_position")
    for curve, own in ((encoder, fitted.encoder), (decoder, fitted.decoder)):
        seen = own.position_counts > 0
        torch.testing.assert_close(curve[seen].double(), own.temporal[seen], atol=1e-5, rtol=1e-4)


def test_average_input_is_weighted_by_counts(trained):
    fitted, corpus = fit_components(trained["AO"], 50), trained["AO"].task.train
    embedding = trained["AO"].model.source_embedding.weight.detach()
    ids = np.concatenate([np.append(corpus.source(i), 2) for i in range(50)])
    found = experiment.wordless_input(embedding, fitted.encoder, "average", 30)
    torch.testing.assert_close(found[0], embedding[ids].mean(0), atol=1e-6, rtol=1e-5)
    assert found.shape == (30, 8)
    assert not experiment.wordless_input(embedding, fitted.encoder, "null", 3).any()


def test_without_position_codes_no_clock_can_be_set_and_states_of_a_token_are_equal(trained):
    network = trained["AO-none"]
    fitted, corpus = fit_components(network, 50), network.task.held_out.subset(range(20))
    for condition in experiment.measure_offsets(network.model, fitted, corpus).values():
        assert all(record["similarity"] == pytest.approx(1) for record in condition["by_offset"])
        assert condition["slope"] in (None, 0)
    states = network.model.encode(torch.tensor([[4, 5, 4]]), torch.ones(1, 3, dtype=torch.bool))[0][0]
    torch.testing.assert_close(states[0], states[2])


@pytest.mark.parametrize("kind", ["AED", "AED-lstm", "AO"])
def test_an_offset_of_nothing_changes_nothing(trained, kind):
    network = trained[kind]
    batch = collate(network.task.held_out, [0, 7, 99])
    trace = network.model(batch)
    fitted = fit_components(network, 50)
    for shift in experiment.shifts_of(network.model).values():
        states = experiment.shifted_states(network.model, fitted, batch, shift=shift, offset=0)
        torch.testing.assert_close(network.model.attend(batch, *states).attention, trace.attention)


@pytest.mark.parametrize(
    ("shift", "ahead"),
    [
        pytest.param(experiment.Shift(encoder=True), "encoder", id="encoder"),
        pytest.param(experiment.Shift(decoder=True), "decoder", id="decoder"),
        pytest.param(experiment.Shift(encoder=True, decoder=True), "none", id="both"),
        pytest.param(experiment.Shift(), "none", id="neither"),
    ],
)
def test_a_clock_is_ahead_if_it_alone_is_moved(shift, ahead):
    assert shift.ahead == ahead
