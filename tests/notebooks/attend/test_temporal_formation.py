"""States without words, clocks set apart and longer sentences: what must hold whatever a network learned."""

from functools import partial

import numpy as np
import pytest
import torch

from attnlib.models.corpus import collate
from notebooks.attend.temporal_formation import experiment
from notebooks.attend.temporal_formation.experiment import _between, compared, expectation, plane
from notebooks.shared.measure import fit_components
from notebooks.shared.unrolled import UnrolledComponents
from tests.attnlib.models.model_builders import batch_of
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer


@pytest.fixture(scope="module")
def trained(store):
    """One network of each kind, by the name the chapter gives it."""
    planned = experiment.measurements(tiny("temporal_formation", cell="gru,lstm"))
    return {
        experiment.name_of(measurement.spec)["kind"]: store.model(measurement.spec) for measurement in planned
    }


@pytest.mark.parametrize("kind", ["AED", "AED-lstm", "AO", "AO-none"])
def test_average_input_by_position_of_a_corpus_of_one_sentence_is_that_sentence(trained, kind):
    """With one sample μ_t is its state, and the average input at each position its word: the two agree."""
    fitted = fit_components(trained[kind], 1)
    curves = experiment.wordless_states(trained[kind], fitted, "average_by_position")
    encoder, decoder = curves.encoder, curves.decoder
    for curve, components in ((encoder, fitted.encoder), (decoder, fitted.decoder)):
        seen = components.position_counts > 0
        torch.testing.assert_close(curve[seen].double(), components.temporal[seen], atol=1e-5, rtol=1e-4)


def test_average_input_is_weighted_by_counts(trained):
    fitted, corpus = fit_components(trained["AO"], 50), trained["AO"].task.train
    embedding = trained["AO"].model.source_embedding.weight.detach()
    ids = np.concatenate([np.append(corpus.source(i), 2) for i in range(50)])
    embedded = experiment.wordless_input(embedding, fitted.encoder, "average", 30)
    torch.testing.assert_close(embedded[0], embedding[ids].mean(0), atol=1e-6, rtol=1e-5)
    assert embedded.shape == (30, 8)
    assert not experiment.wordless_input(embedding, fitted.encoder, "null", 3).any()


def test_without_position_codes_no_clock_can_be_set(trained):
    network = trained["AO-none"]
    fitted, corpus = fit_components(network, 50), network.task.held_out.subset(range(20))
    for condition in experiment.measure_offsets(network.model, fitted, corpus).values():
        assert all(record["similarity"] == pytest.approx(1) for record in condition["by_offset"])
        assert condition["slope"] in (None, 0)


def test_without_position_codes_states_of_a_token_are_equal(trained):
    network = trained["AO-none"]
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


COURSE = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
COUNTS = torch.tensor([1, 1])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # An offset, 5² + 5² at both positions over a variance of 1; twice the course; and none.
        pytest.param(
            (torch.tensor([[5.0, 5.0], [7.0, 5.0]]), COURSE, COUNTS),
            {"r2": -49, "r2_centred": 1, "cosine": 1},
            id="an_offset",
        ),
        pytest.param(
            (torch.tensor([[0.0, 0.0], [4.0, 0.0]]), COURSE, COUNTS),
            {"r2_centred": 0, "cosine": 1},
            id="twice_the_course",
        ),
        pytest.param(
            (COURSE, torch.tensor([[0.0, 0.0], [0.0, 0.0]]), COUNTS), {"cosine": None}, id="no_course"
        ),
    ],
)
def test_compared_by_hand(given, expected):
    assert_answer(compared(*given), expected)


REVERSED = torch.tensor(
    [
        [
            [0.0, 0, 0, 0, 0, 1, 0],
            [0.0, 0, 0, 0, 1, 0, 0],
            [0.0, 0, 0, 1, 0, 0, 0],
            [0.0, 0, 1, 0, 0, 0, 0],
            [0.0, 1, 0, 0, 0, 0, 0],
            [1.0, 0, 0, 0, 0, 0, 0],
            [0.0, 0, 0, 0, 0, 0, 1],
        ]
    ]
)
SENTENCE = batch_of(pairs=[[[4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4]]])
TWO_BACK = {0: {0: {0: -2, 1: -2, 2: -2, 3: -2}}, 1: [[True, True, True, True, False, False, False]]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of a reversed sentence of six words, with either side two places ahead: two places back there is a
        # word, and two steps on a word is said.
        pytest.param((REVERSED, SENTENCE, 2, "encoder"), TWO_BACK, id="encoder_two_ahead"),
        pytest.param((REVERSED, SENTENCE, 2, "decoder"), TWO_BACK, id="decoder_two_ahead"),
    ],
)
def test_expectation_by_hand(given, expected):
    assert_answer(expectation(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of a course along (3, 4, 0), whose sign it keeps: directions, of which the first is this, and the
        # centre.
        pytest.param(
            (
                torch.tensor([[0.0, 0, 0], [3.0, 4, 0], [6.0, 8, 0], [9.0, 12, 0], [12.0, 16, 0]]),
                torch.tensor([1.0, 1, 1, 1, 1]),
            ),
            {0: {0: {0: 0.6}, 1: {0: 0.8}}, 1: [6, 8, 0]},
            id="a_course_along_one_direction",
        )
    ],
)
def test_plane_by_hand(given, expected):
    assert_answer(plane(*given), expected)


PLACES = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((torch.tensor([[0.0], [2.0], [4.0], [6.0]]), PLACES), 4 / 5, id="two_places_apart"),
        pytest.param((torch.tensor([[0.0], [0.0], [0.0], [0.0]]), PLACES), None, id="no_variance"),
    ],
)
def test_between_by_hand(given, expected):
    assert_answer(_between(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param((3000, 20, 8), "at most 4,096: take shorter sentences", id="too many contexts")],
)
def test_unrolled_components_refuses(given, message):
    assert_refused(partial(UnrolledComponents, *given), message)
