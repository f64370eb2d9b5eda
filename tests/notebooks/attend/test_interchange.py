"""The transplant: sentences, their twins with the other opening, and where attention goes."""

import pytest

from companion.runs.store import load_task
from notebooks.attend.interchange import experiment
from notebooks.attend.interchange.experiment import OTHER_OPENING, measure_transplant, twins_of
from notebooks.shared import suite

OPTIONS = {"n_train": 600, "n_held_out": 60}
SPEC = suite.each_planned(
    suite.SuiteConfig(width=8, steps=4), "reordering_100", "AED", 1, task_options=OPTIONS
)[0]


@pytest.fixture(scope="module")
def task():
    return load_task(SPEC.task, SPEC.task_options)


def test_twins_differ_in_their_first_word_alone(task):
    twins = twins_of(task, samples=20)
    words = task.source_vocabulary.decode
    assert len(twins) == 20
    for sample in range(20):
        first, second = (
            words(twins.first.source(sample).tolist()),
            words(twins.second.source(sample).tolist()),
        )
        assert (OTHER_OPENING[first[0]], *first[1:]) == tuple(second)


def test_phrases_of_a_twin_come_in_the_opposite_order(task):
    """A phrase is two words, after the opening: the last one of either sentence is the first of the other."""
    twins = twins_of(task, samples=20)
    for sample, (first, second) in enumerate(zip(*twins.places, strict=True)):
        length = twins.first.target_lengths[sample]
        assert first[0] == second[0] == 0
        assert first[1:3].tolist() == second[length - 2 : length].tolist()


def test_a_sentence_that_is_its_own_twin_moves_no_attention(store, monkeypatch):
    model = store.model(SPEC)
    assert measure_transplant(model, fit_samples=600, samples=60)["both"]["variation"] > 1e-3
    same = {opening: opening for opening in OTHER_OPENING}
    places = twins_of(model.task, 60).places
    monkeypatch.setattr(experiment, "OTHER_OPENING", same)
    twins = twins_of(model.task, 60)
    twins.places[1] = places[1]  # or no word would be judged
    monkeypatch.setattr(experiment, "twins_of", lambda task, samples: twins)
    found = measure_transplant(model, fit_samples=600, samples=60)
    for transplant in experiment.TRANSPLANTS:
        assert found[transplant]["variation"] == pytest.approx(0, abs=1e-5)


def test_keys_that_turn_attention_oftener_than_queries_have_a_positive_difference():
    shares = {"own": 0.5, "other": 0.1, "variation": 0.2}
    found = dict.fromkeys(experiment.TRANSPLANTS, shares) | {"keys": shares | {"other": 0.4}}
    assert experiment.of_transplant(found)["keys_minus_query"] == pytest.approx(0.3)
