"""What residuals hold: networks in which it is known, and levels of decay that networks have learned at."""

from dataclasses import replace

import pytest

from notebooks.attend.regularisation.experiment import by_decay
from notebooks.attend.regularisation.measure import SIDES, measure_residual_contents
from notebooks.shared.summaries import level_key
from tests.notebooks.attend.test_interchange import SPEC


def test_without_recurrence_position_and_word_are_all_there_is(store):
    """States of AO depend on position and present word alone, so their interaction is the whole residual."""
    model = store.model(replace(SPEC, architecture="AO"))
    found = measure_residual_contents(model, fit_samples=600, samples=600)
    for side in SIDES:
        assert found["explained"][side]["interaction"] == pytest.approx(1, abs=1e-3)
        assert found["explained"][side]["history"] < 0.2
    assert found["rebuilt"]["interaction"]["similarity"] == pytest.approx(1, abs=1e-3)
    assert found["rebuilt"]["none"]["similarity"] < 1
    assert found["rebuilt"]["temperature"]["similarity"] >= found["rebuilt"]["none"]["similarity"] - 1e-6


def test_a_recurrent_network_remembers_words_and_hangs_on_them(store):
    found = measure_residual_contents(store.model(SPEC), fit_samples=600, samples=600)
    for side in SIDES:
        assert found["explained"][side]["history"] > 0.3
        assert 0 < found["share"][side] < 1
    assert found["foreign"]["samples"] == 100  # all of one length: everyone has a partner
    assert found["foreign"]["similarity"] < 1


def test_decay_is_judged_at_the_strongest_level_that_every_network_has_learned():
    def networks(share, *accuracies):
        numbers = [{"accuracy": own, "share": share + seed} for seed, own in enumerate(accuracies)]
        return [({"seed": seed}, own) for seed, own in enumerate(numbers)]

    levels = {0.0: networks(0.5, 1.0, 0.96), 0.1: networks(0.2, 1.0, 0.95), 1.0: networks(0.0, 1.0, 0.9)}
    found = by_decay(levels)
    assert (found["level"], found["share"]["value"], found["share"]["n"]) == (0.1, pytest.approx(-0.3), 2)
    unlearned = by_decay({0.0: networks(0.5, 0.9), 0.1: networks(0.2, 1.0)})
    assert (unlearned["level"], unlearned["share"]["value"], unlearned["share"]["n"]) == (None, None, 0)
    assert level_key(1e-4) == "0p0001"
