"""BLEU of translations worked by hand, and what longer training gains."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import UNK
from companion.claims.presupposed import presuppositions
from companion.results.frames import Table
from companion.runs.suite import spec_of
from notebooks.attend.translators import experiment
from notebooks.shared import translators
from notebooks.shared.translators import with_target
from tests.attnlib.models.model_builders import batch_of
from tests.notebooks.worked import assert_answer


def test_a_perfect_translation_of_known_words_alone_is_worth_a_hundred(store, monkeypatch):
    monkeypatch.setattr(translators, "greedy", lambda model, batch, steps: batch)
    short = {"min_length": 6, "max_length": 6, "n_train": 40, "n_held_out": 20}
    trained = store.model(spec_of("one_to_one", "AO", scale="quick", width=8, steps=2, task_options=short))
    measured = translators.measure_translation(trained, samples=20)
    assert measured["bleu"] == pytest.approx(100)
    assert measured["loss"] == trained.history["held_out"]["loss"]

    lacking = Corpus.from_ids([np.array([4, 5, 4, 5, 4])] * 9, [np.array([4, 5, 4, 5, UNK])] * 9)
    measured = translators.measure_translation(
        replace(trained, task=replace(trained.task, held_out=lacking)), samples=9
    )
    # Of five words four are right; of pairs three of four, then two of three and one of two.
    assert measured["bleu"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


@pytest.mark.parametrize(
    ("longer", "bleu", "counts"),
    [
        pytest.param((1.99, 3.99), 10, True, id="of-use-and-does-not-gain"),
        pytest.param((1.95, 4.04), 30, True, id="one-gains-and-the-other-loses"),
        pytest.param((2.0, 3.8), 30, False, id="the-second-gains"),
        pytest.param((2.5, 5.0), 9.9, False, id="of-no-use"),
        pytest.param((2.5, None), 30, False, id="one-is-not-trained-for-longer"),
    ],
)
def test_only_a_kind_of_useful_translators_that_have_converged_counts(monkeypatch, longer, bleu, counts):
    specs = [spec_of("multi30k_en_fr", "AO", scale="quick", seed=seed) for seed in (0, 1)]
    specs.append(spec_of("one_to_one", "AO", scale="quick"))

    def answers(measurements, store):
        (spec,) = (measurement.spec for measurement in measurements)
        losses = (2.0, 4.0) if spec.steps == specs[0].steps else longer
        loss = losses[spec.seed]
        return [] if loss is None else [({}, {"loss": loss, "bleu": bleu})]

    monkeypatch.setattr(translators, "answers", answers)
    assert len(translators.translator_measurements(specs, 5)) == 4
    counting = translators.translators_that_count(specs, 5, None)
    assert counting == ({("multi30k_en_fr", "AO")} if counts else set())


def networks_of(*rows):
    """Networks of one kind by length, learning rate, seed and loss, each with BLEU of ten times its loss."""
    named = [
        {"task": "captions", "architecture": "AO", "bleu": 10 * row[-1]}
        | dict(zip(TRAINED, row, strict=True))
        for row in rows
    ]
    columns = experiment.NETWORK | experiment.TRAINED | translators.TRANSLATION
    return Table(pd.DataFrame(named).reindex(columns=list(columns)), columns, "a trained network")


TRAINED = ("length", "learning_rate", "seed", "loss")
PLANNED = [(1.0, 0.01, 0, 2.0), (1.0, 0.01, 1, 3.0)]
SLOW = (1.0, 0.002, 0, 4.0)


@pytest.mark.parametrize(
    ("longer", "gain", "n"),
    [
        pytest.param([(2.0, 0.01, 0, 1.5)], 0.25, 1, id="loses-a-quarter-of-its-loss"),
        pytest.param([(2.0, 0.01, 1, 3.3)], -0.1, 1, id="over-fits"),
        pytest.param([(2.0, 0.01, 0, 1.5), (2.0, 0.01, 1, 3.3)], 0.075, 2, id="each-beside-itself"),
        pytest.param([], None, 0, id="not-trained-for-longer"),
    ],
)
def test_gain_of_training_for_twice_as_long(longer, gain, n):
    row = estimated("gain_of_twice", *PLANNED, SLOW, *longer)
    assert row["value"] == pytest.approx(gain)
    assert row["n"] == n


def test_bleu_that_longer_training_gains():
    row = estimated("bleu_of_twice", *PLANNED, (2.0, 0.01, 0, 1.5), (2.0, 0.01, 1, 3.3))
    assert row["value"] == pytest.approx((-5 + 3) / 2)


def estimated(quantity, *rows):
    """What longer training gains these networks, by one measure."""
    estimates = experiment.estimates(networks_of(*rows))["longer_training"]
    (row,) = (row for row in estimates.records() if row["quantity"] == quantity)
    return row


def test_the_loss_of_a_kind_is_that_of_its_networks_trained_as_planned():
    quality = experiment.estimates(networks_of(*PLANNED, SLOW, (2.0, 0.01, 0, 1.5)))["quality"]
    assert [row["value"] for row in quality.records() if row["quantity"] == "loss"] == [2.5]


def test_losses_at_other_learning_rates_have_the_rate_in_their_key():
    networks = networks_of(*PLANNED, SLOW)
    tables = {"networks": networks} | experiment.estimates(networks)
    values = experiment.values(experiment.PROFILES["tiny"], tables)
    assert values["by_task"]["captions"]["AO"]["loss_at_rate"] == {"0p002": 4.0}


def test_every_translator_is_held_to_what_makes_a_translator_count():
    for presupposition in presuppositions("aitken2021")["learned"]:
        names = presupposition.except_for or presupposition.only_for
        assert {*translators.TRANSLATIONS} <= {*names}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Shifted by one, behind the start mark, and no end mark is read.
        pytest.param(
            (batch_of(pairs=[[[4], [4]], [[5], [5]]]), torch.tensor([[4, 2, 0], [5, 6, 7]])),
            {
                "target_input": [[1, 4, 0], [1, 5, 6]],
                "target_mask": [[True, True, False], [True, True, True]],
            },
            id="shifted_behind_the_start_mark",
        )
    ],
)
def test_with_target_by_hand(given, expected):
    assert_answer(with_target(*given), expected)
