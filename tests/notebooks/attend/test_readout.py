"""The readout taken apart: parts that sum to the network's own logits, and words found by hand."""

import copy
from dataclasses import replace

import pytest
import torch

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from companion.data.registry import load
from companion.data.task import Task
from companion.runs.evaluate import evaluate, traces
from notebooks.attend.readout import experiment
from notebooks.attend.readout.experiment import Ablation, Dictionary, followers
from notebooks.shared.measure import fit_components
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer


@pytest.fixture(scope="module", params=["AED", "AO"])
def trained(request, store):
    config = tiny("readout", architecture=request.param)
    return store.model(experiment.measurements(config)[0].spec)


@pytest.fixture(scope="module")
def measured(trained):
    return experiment.measure_readout(trained, 100)


def test_parts_with_the_bias_sum_to_the_logits(trained):
    fitted = fit_components(trained, 100)
    trace = next(traces(trained.model, trained.task.held_out, batch_size=16))
    parts = experiment.OutputLayer(trained, fitted).parts(trace)
    total = experiment.ablated(parts, Ablation()) + trained.model.readout.bias.detach()
    torch.testing.assert_close(total, trace.logits[trace.target_mask], atol=1e-4, rtol=1e-4)
    alone = experiment.ablated(parts, Ablation(decoder=frozenset(), context=frozenset({"input"})))
    torch.testing.assert_close(alone, parts[1, 1])


def test_the_whole_network_is_as_accurate_as_evaluation_says(trained, measured):
    expected = evaluate(trained.model, trained.task.held_out)["token_accuracy"]
    assert measured["accuracy"]["zero"]["full"] == pytest.approx(expected, abs=1e-6)
    assert measured["accuracy"]["mean"]["full"] == measured["accuracy"]["zero"]["full"]


def test_every_ablation_has_its_accuracy(measured):
    assert set(measured["accuracy"]["zero"]) == set(experiment.ABLATIONS)


def test_shares_of_the_readout_sum_to_one(measured):
    for share in ("margin_share", "margin_covariance", "logit_share"):
        assert sum(measured[share].values()) == pytest.approx(1, abs=1e-4)


@pytest.fixture(scope="module")
def decided(trained):
    """A network whose words differ from row to row, after three updates too."""
    network = copy.deepcopy(trained.model)
    torch.nn.init.normal_(network.readout.weight, std=3, generator=torch.Generator().manual_seed(0))
    return replace(trained, model=network)


@pytest.fixture(scope="module")
def accuracy(decided):
    """The accuracy of that network under every ablation, by what takes the place of a part."""
    return experiment.measure_readout(decided, 100)["accuracy"]


def test_mean_replacement_changes_nothing_where_the_temporal_part_stays(accuracy):
    temporal = {n for n, kept in experiment.ABLATIONS.items() if "temporal" in kept.decoder & kept.context}
    assert temporal >= {"full", "context_without_residual"}
    assert all(accuracy["zero"][name] == accuracy["mean"][name] for name in temporal)


def test_mean_replacement_is_the_mean_state_where_the_temporal_part_goes(decided, accuracy):
    network = decided.model
    mean, right, rows = experiment.mean_state(fit_components(decided, 100).encoder).float(), 0, 0
    for trace in traces(network, decided.task.held_out):
        features = torch.cat([trace.decoder_states, mean.expand_as(trace.decoder_states)], dim=-1)
        words = network.readout(features).argmax(-1)
        right += int((words == trace.target_outputs)[trace.target_mask].sum())
        rows += int(trace.target_mask.sum())
    assert accuracy["mean"]["context_none"] == pytest.approx(right / rows, abs=1e-4)


def test_margins_of_a_hand_worked_row():
    outputs = torch.tensor([2, 4, 5])
    parts = torch.zeros(2, 3, 1, 6)
    parts[1, 1, 0, 4] = 3.0  # the context's input part votes for word 4
    parts[0, 0, 0, 5] = -3.0  # the decoder's temporal part against word 5
    margins = experiment.Margins(outputs)
    margins.update(parts.expand(-1, -1, 2, -1), torch.zeros(6), torch.tensor([4, 3]))
    assert margins.rows == 1  # a word never said in training has no margin
    result = margins.result()
    # Centred over three words: 3 − 1 = 2 from the one, 0 + 1 = 1 from the other.
    assert result["mean_margin"] == pytest.approx(3)
    assert result["margin_share"]["context_input"] == pytest.approx(2 / 3)
    assert result["margin_share"]["decoder_temporal"] == pytest.approx(1 / 3)


def test_translations_come_from_links_grammar_or_co_occurrence():
    reversal, scan = load("reversal", n_train=20, n_held_out=20), load("scan", n_train=20)
    assert experiment.translations(reversal) == ({4: 4, 5: 5, 6: 6}, "gold")
    translated, known_from = experiment.translations(scan)
    left, twice = scan.source_vocabulary.encode(["left", "twice"]).tolist()
    assert (known_from, scan.target_vocabulary.words[translated[left]]) == ("grammar", "I_TURN_LEFT")
    assert twice not in translated
    corpus = Corpus.from_ids([[4, 5], [4, 6], [5]], [[6, 5], [6, 4], [5]])
    text = Task("text", Vocabulary.of("abc"), Vocabulary.of("abc"), corpus, corpus)
    assert experiment.translations(text) == ({4: 6, 5: 5, 6: 4}, "dice")
    english = Vocabulary.of([*scan.source_vocabulary.words[4:], "dog"])  # text with all of SCAN's words
    text = Task("text", english, Vocabulary.of("abc"), corpus, corpus)
    assert experiment.translations(text)[1] == "dice"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of the start mark, of two words; and the end mark follows.
        pytest.param(
            (Corpus.from_ids([[4], [4]], [[4, 5], [4, 5]]),), {1: 4, 4: 5, 5: 2}, id="start_mark_and_words"
        )
    ],
)
def test_followers_by_hand(given, expected):
    assert_answer(followers(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Id 0 is never said, so it does not compete.
        pytest.param(
            Dictionary(
                logits=torch.tensor(
                    [
                        [0.0, 0, 0, 0, 0, 0],
                        [0.0, 0, 0, 0, 0, 0],
                        [0.0, 0, 0, 0, 0, 0],
                        [0.0, 0, 0, 0, 0, 0],
                        [0.0, 0, 0, 0, 0, 1],
                        [9.0, 0, 0, 0, 1, 0],
                    ]
                ),
                expected={4: 5, 5: 2, 3: 4},
                counts=torch.tensor([0, 0, 0, 0, 3, 1]),
                token_names="......",
                word_names="abcdef",
                outputs=torch.tensor([2, 4, 5]),
            ),
            {
                "words": 2,
                "accuracy": 0.5,
                "frequency_weighted": 0.75,
                "listed": [{"top.0": "f"}, {"top.0": "e"}],
            },
            id="a_word_never_said_does_not_compete",
        )
    ],
)
def test_a_dictionary_is_judged_as_by_hand(given, expected):
    assert_answer(given.judged(), expected)
