"""What a summary of the first paper names: words with rebuilt attention, by hand and by a plain loop."""

import math

import numpy as np
import pytest
import torch

from attnlib.decomposition.terms import alignment_terms
from companion.runs.evaluate import evaluate, traces
from notebooks.attend.second_hand import experiment
from notebooks.shared.measure import fit_components
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer

SAMPLES = 20


@pytest.fixture(scope="module", params=["AED", "AO"])
def trained(request, store):
    config = tiny("second_hand", architecture=request.param)
    return store.model(experiment.measurements(config)[0].spec)


# -- words with rebuilt attention --


@pytest.fixture(scope="module")
def words(trained):
    """Words of a network whose output layer has large weights, so that they depend on the context."""
    torch.nn.init.normal_(trained.model.readout.weight, std=3, generator=torch.Generator().manual_seed(0))
    fitted = fit_components(trained, 100)
    return experiment.RebuiltWords(trained.model, fitted, trained.task.held_out.subset(np.arange(SAMPLES)))


def accuracy_by_loops(trained, chosen):
    """The share of right words with attention from some terms, one source position after the other."""
    fitted = fit_components(trained, 100)
    right = rows = 0
    for trace in traces(trained.model, trained.task.held_out.subset(np.arange(SAMPLES))):
        terms = alignment_terms(*fitted.split(trace)).flatten(0, 1)
        for sample in range(len(trace.source_mask)):
            length = int(trace.source_mask[sample].sum())
            for step in range(int(trace.target_mask[sample].sum())):
                scores = [
                    sum(float(terms[term, sample, step, place]) for term in chosen) for place in range(length)
                ]
                weights = [math.exp(score - max(scores)) for score in scores]
                context = sum(
                    weight / sum(weights) * trace.encoder_states[sample, place]
                    for place, weight in enumerate(weights)
                )
                features = torch.cat([trace.decoder_states[sample, step], context])
                word = int(trained.model.readout(features).argmax())
                right += word == int(trace.target_outputs[sample, step])
                rows += 1
    return right / rows


@pytest.mark.parametrize("chosen", [[], [0], [4], [8, 0], [1, 3, 5], range(9)], ids=str)
def test_words_with_some_terms_are_those_of_a_plain_loop(trained, words, chosen):
    assert words.accuracy(list(chosen)) == pytest.approx(accuracy_by_loops(trained, list(chosen)))


def test_words_with_all_nine_terms_are_those_of_the_network(trained, words):
    held_out = trained.task.held_out.subset(np.arange(SAMPLES))
    assert words.accuracy(range(9)) == pytest.approx(evaluate(trained.model, held_out)["token_accuracy"])


def test_every_next_term_is_the_best_of_those_that_are_left(words):
    order = experiment.best_order(words)
    assert sorted(order) == list(range(9))
    for number, term in enumerate(order):
        best = max(words.accuracy([*order[:number], other]) for other in order[number:])
        assert words.accuracy([*order[:number], term]) == best


class Scripted(experiment.RebuiltWords):
    """Words of which each set of terms makes a given share right; all other sets make none right."""

    def __init__(self, accuracies):
        self.accuracies = accuracies

    def accuracy(self, chosen):
        return self.accuracies.get(frozenset(chosen), 0.0)


def test_the_best_pair_need_not_come_first():
    given = {frozenset({4}): 0.5, frozenset({0}): 0.4, frozenset({4, 7}): 0.6, frozenset({0, 1}): 0.9}
    assert experiment.best_order(Scripted(given))[:2] == [4, 7]


def test_equally_good_terms_are_taken_in_the_order_of_the_pairs():
    assert experiment.best_order(Scripted({})) == list(range(9))


FOUND = {
    "quality": {"token_accuracy": 0.9},
    "order": ["input_input", *(f"term {number}" for number in range(2, 10))],
    "accuracy": [0.4, 0.5, 0.7, 0.86, 0.84, 0.9, 0.9, 0.9, 0.9, 0.9],
    "alone": {"temporal_temporal": 0.3},
}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Attention gains 0.9 − 0.4 = 0.5; the first term keeps 0.1 of it, and 0.86 is above 0.4 + 0.9 · 0.5.
        pytest.param(
            FOUND,
            {
                "token_accuracy": 0.9,
                "uniform": 0.4,
                "first_term": "input_input",
                "kept_by_first": 0.2,
                "kept_by_temporal": -0.2,
                "terms_needed": 3,
            },
            id="attention_gains_a_half",
        ),
        pytest.param(
            FOUND | {"accuracy": [0.9] * 10},
            {"kept_by_first": None, "kept_by_temporal": None, "terms_needed": None},
            id="attention_gains_nothing",
        ),
    ],
)
def test_what_terms_keep_by_hand(found, expected):
    assert_answer(experiment.words_kept(found), expected)


def test_what_is_kept_goes_from_none_of_the_gain_to_all_of_it():
    rows = experiment.kept_by_number(FOUND)
    assert [row["number"] for row in rows] == list(range(10))
    assert [rows[0]["term"], rows[1]["term"]] == ["none", "input_input"]
    assert [rows[0]["kept"], rows[-1]["kept"]] == [0, 1]
