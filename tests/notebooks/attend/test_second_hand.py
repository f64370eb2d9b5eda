"""What a summary of the first paper names: each measurement by hand and by a plain loop."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.decomposition.components import Components
from attnlib.decomposition.terms import alignment_terms
from attnlib.models.vocabulary import EOS, MARKS
from companion.runs.evaluate import evaluate, traces
from notebooks.attend.second_hand import experiment
from notebooks.attend.second_hand.drawing import of_learned
from notebooks.shared import temporal_peaks
from notebooks.shared.measure import fit_components
from notebooks.shared.translations import translations
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
    ("measured", "expected"),
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
def test_what_terms_keep_by_hand(measured, expected):
    assert_answer(experiment.words_kept(measured), expected)


def test_what_is_kept_goes_from_none_of_the_gain_to_all_of_it():
    rows = experiment.kept_by_number(FOUND)
    assert [row["number"] for row in rows] == list(range(10))
    assert [rows[0]["term"], rows[1]["term"]] == ["none", "input_input"]
    assert [rows[0]["kept"], rows[-1]["kept"]] == [0, 1]


# -- offset of temporal components --


def peaks(measured):
    return dict(zip(temporal_peaks.PEAKS, measured.tolist(), strict=True))


def test_peaks_on_the_diagonal_are_at_no_distance():
    diagonal = torch.arange(5)
    measured = peaks(temporal_peaks.compared_peaks(diagonal, diagonal, 5))
    assert (measured["near_diagonal"], measured["near_average"], measured["average_near_diagonal"]) == (
        5,
        5,
        5,
    )
    assert (measured["offset"], measured["distance"]) == (0, 0)


def test_peaks_by_hand():
    # Three steps over five positions: the diagonal is 0, 2, 4.
    temporal, average = torch.tensor([1, 4, 4]), torch.tensor([0, 1, 4])
    measured = peaks(temporal_peaks.compared_peaks(temporal, average, 5))
    assert measured["near_diagonal"] == 2  # 1 is beside 0, and 4 is 4
    assert measured["near_average"] == 2  # 4 is three positions from 1
    assert measured["average_near_diagonal"] == 3
    assert measured["offset"] == 1 + 2 + 0
    assert measured["distance"] == 1 + 3 + 0
    assert measured["chance"] == pytest.approx(2 / 5 + 3 / 5 + 2 / 5)  # positions beside 0, 1 and 4


def test_peaks_of_a_network_are_those_of_a_plain_loop(trained):
    fitted = fit_components(trained, 100)
    matrices = {}
    for trace in traces(trained.model, trained.task.held_out):
        for sample, attention in enumerate(trace.attention):
            source, target = int(trace.source_mask[sample].sum()), int(trace.target_mask[sample].sum())
            matrices.setdefault((source, target), []).append(attention[:target, :source].double())
    near = steps = 0
    for (source, target), samples in matrices.items():
        if len(samples) < 30:
            continue
        average = sum(samples) / len(samples)
        for step in range(target):
            products = [
                float(fitted.decoder.temporal[step] @ key) for key in fitted.encoder.temporal[:source]
            ]
            near += len(samples) * (abs(products.index(max(products)) - int(average[step].argmax())) <= 1)
            steps += len(samples)
    measured = temporal_peaks.measure_temporal_offset(trained, 100)
    assert measured["near_average"] == pytest.approx(near / steps, rel=1e-6)


def test_peaks_of_the_most_frequent_lengths_have_a_row_for_each_step(trained):
    measured = temporal_peaks.measure_temporal_offset(trained, 100)
    rows = experiment.steps_of_cell(measured)
    assert [row["step"] for row in rows] == list(range(measured["cell"]["target_length"]))
    assert max(row["average"] for row in rows) < measured["cell"]["source_length"]


# -- variance of words --


def test_the_spread_of_words_by_hand():
    # All at one position, whose mean is 0: χ is 2 for word 4 and −4 for word 5, and word 4 varies by ±1.
    states = torch.tensor([1.0, 3.0, -4.0])[:, None, None]
    tokens = torch.tensor([4, 4, 5])[:, None]
    mask = torch.ones(3, 1, dtype=torch.bool)
    components = Components(1, n_tokens=6, n_positions=1).update(states, tokens, mask)
    sums = experiment.WordSums(components)
    sums.update(components.split(states, tokens, mask).residual, tokens, mask)
    expected = {
        "spread": (1 + 1 + 0) / (4 + 4 + 16),
        "by_word": (1 / 8 + 0) / 2,
        "words": 2,
        "listed": [{"word": "e", "count": 2, "spread": 1 / 8}, {"word": "f", "count": 1, "spread": 0}],
    }
    assert_answer(sums.result("abcdef"), expected)


def test_the_spread_of_a_network_is_that_of_a_plain_loop(trained):
    fitted = fit_components(trained, 100)
    within, between = [], []
    chi = fitted.encoder.input
    for trace in traces(trained.model, trained.task.held_out):
        parts = fitted.encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask)
        for sample, place in trace.source_mask.nonzero().tolist():
            word = int(trace.source_tokens[sample, place])
            if word >= len(MARKS):
                within.append(float(parts.residual[sample, place].double().square().sum()))
                between.append(chi[word].double())
    spread = torch.stack(between).var(0, correction=0).sum()
    measured = experiment.measure_word_variance(trained, 100)
    assert measured["encoder"]["spread"] == pytest.approx(np.mean(within) / float(spread), rel=1e-4)


def test_marks_are_no_words(trained):
    measured = experiment.measure_word_variance(trained, 100)
    words = {word["word"] for side in experiment.SIDES for word in measured[side]["listed"]}
    assert words & set(MARKS) == set()


# -- angles with the readout --


def test_angles_by_hand():
    vectors = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, -3.0]])
    rows = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    measured = experiment.angles(vectors, rows, torch.tensor([0, 1, 1]))
    half = math.sqrt(0.5)
    # Equally close to both rows, a vector is not closest to the one that is expected.
    assert measured.flatten().tolist() == pytest.approx([1, 0, 1, half, half, 0, -1, 0, 0])


def test_angles_of_a_network_are_those_of_a_plain_loop(trained):
    fitted = fit_components(trained, 100)
    width = trained.model.config.width
    outputs = sorted({EOS, *np.unique(trained.task.train.target_ids).tolist()})
    context_rows = trained.model.readout.weight.detach()[:, width:]
    mean = sum(context_rows[word] for word in outputs) / len(outputs)
    expected, _ = translations(trained.task)
    aligned = {}
    for trace in traces(trained.model, trained.task.held_out):
        for sample, place in trace.source_mask.nonzero().tolist():
            word = int(trace.source_tokens[sample, place])
            if word not in expected:
                continue
            state = trace.encoder_states[sample, place] - fitted.encoder.temporal[place].float()
            cosines = [float(torch.cosine_similarity(state, context_rows[row] - mean, 0)) for row in outputs]
            best = outputs[cosines.index(max(cosines))]
            aligned.setdefault(word, []).append(best == expected[word])
    measured = experiment.measure_readout_angles(trained, 100)
    assert measured["words"] == len(aligned)
    assert measured["pooled"]["aligned"] == pytest.approx(
        np.mean([np.mean(hits) for hits in aligned.values()])
    )


def test_the_gain_is_what_the_residual_adds_to_the_cosine():
    part = {"cosine": 0.25, "best_other": 0.5, "aligned": 0.0}
    measured = {"input": part, "pooled": part | {"cosine": 0.75}, "words": 3, "chance": 0.1}
    assert experiment.compared_angles(measured)["cosine_gain"] == 0.5


@pytest.mark.parametrize(
    ("kinds", "learned"),
    [
        pytest.param([("scan", "AED"), ("reordering_100", "AO")], [("scan", "AED")], id="one-has-not"),
        pytest.param([("reordering_100", "AO")], [], id="none-has"),
        pytest.param([], [], id="nothing-was-measured"),
    ],
)
def test_rows_of_networks_that_do_not_learn_their_task_are_left_out(kinds, learned):
    left = of_learned(pd.DataFrame(kinds, columns=["task", "kind"]))
    assert [*left.itertuples(index=False, name=None)] == learned
    assert list(left.columns) == ["task", "kind"]
