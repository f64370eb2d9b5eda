"""Optimal attention: tiny trained networks end to end, the counterexample by hand, the summaries."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from attnlib.models.corpus import Batch, collate
from attnlib.models.translator import Readout, TranslatorConfig
from companion.data import labelled_sets, parallel
from notebooks.learn.optimal_attention import experiment
from notebooks.learn.optimal_attention.experiment import probability_of_right_label
from notebooks.shared.agreement import measure_translation, recorded_batches, recorded_probe
from notebooks.shared.trainings.translation import load_pieces, recorded_network
from tests.attnlib.models.model_builders import generator, translator
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer


@pytest.fixture(scope="module")
def trained(store):
    config = tiny("optimal_attention")
    specs = {form: experiment._translators(config, form) for form in experiment.FORMS}
    made = {form: [store.recording(spec) for spec in planned] for form, planned in specs.items()}
    return lambda form, seed=0: made[form][seed]


@pytest.mark.slow
@torch.no_grad()
def test_batches_from_a_recording_are_those_of_the_data(trained):
    recording = trained("summed")
    data = load_pieces(recording.spec.resolved)
    seen = []
    for batch in recorded_batches(recording, 0, together=5):
        ours = collate(data.validation, batch.indices.tolist())
        for name in ("source", "source_mask", "target_mask", "target_output"):
            assert getattr(batch, name).equal(getattr(ours, name)), name
        assert batch.target_input[batch.target_mask].equal(ours.target_input[ours.target_mask])
        network = recorded_network(recording.spec.resolved, recording.tensors)
        readout, trace = network.readout, network(batch)
        alone = recorded_probe(recording, batch)[:, :, 0]  # β of the first position, by the context itself
        first = readout.from_context(trace.encoder_states[:, :1]) + readout.from_decoder(trace.decoder_states)
        again = readout.logits(first).log_softmax(-1).gather(-1, batch.target_output[..., None])[..., 0]
        torch.testing.assert_close(alone[batch.target_mask], again[batch.target_mask])
        seen += batch.indices.tolist()
    assert sorted(seen) == list(range(12))
    assert sum(len(batch) for batch in recorded_batches(recording, 5)) == 5
    assert_refused(lambda: next(recorded_batches(recording, -1)), "-1 samples")


@pytest.mark.slow
def test_what_is_measured_fits_together(trained):
    summed, other = (trained("summed", seed) for seed in (0, 1))
    measured = experiment.measure_optimal_attention(summed, other, samples=0)
    quality = measure_translation(summed)
    words = int(summed["validation.target_mask"].sum())
    assert (measured["words"], measured["samples"]) == (words, 12)
    assert measured["log_likelihood"]["learned"] == pytest.approx(-quality["loss"], rel=1e-5)
    assert measured["agreement"]["learned_probe"] == pytest.approx(quality["learned_probe"], abs=1.5 / words)
    assert measured["agreement"]["chance"] == pytest.approx(quality["chance"])
    likelihood = measured["log_likelihood"]
    assert likelihood["optimal"] > max(likelihood[name] for name in ("learned", "uniform", "largest_probe"))
    assert measured["residual"] < 1e-6
    assert experiment.measure_optimal_attention(summed, samples=3)["samples"] == 3
    main = trained("joined")
    same = experiment.measure_optimal_attention(summed, summed, main, samples=0)["agreement"]
    assert same["optimal_other_probe"] == pytest.approx(same["optimal_probe"], abs=1.5 / words)
    assert "optimal_main_probe" not in measured["agreement"]
    assert 0 <= same["optimal_main_probe"] < same["optimal_other_probe"]
    assert experiment.measure_probe_identity(summed, samples=0)["all_words"]["largest"] < 1e-10
    assert_refused(lambda: experiment.measure_optimal_attention(main, samples=0), "'joined'")


def test_a_readers_own_set_is_no_other_where_it_is_not_at_hand(monkeypatch):
    for sets in (parallel, labelled_sets):
        monkeypatch.setattr(sets, "available", lambda name: False)
    chosen = {"translation": "iwslt14_de_en", "classification": "my.tsv"}
    assert experiment.data_of(experiment.Config(dataset="iwslt14_de_en", texts="my.tsv")) == chosen


def one_sentence():
    """A network that brings the counterexample's logits from three positions, attended to evenly."""
    readout = Readout(TranslatorConfig(words=3, width=3, form="summed")).double()
    for parameter in readout.parameters():
        parameter.data.zero_()
    readout.context.weight.data[:, :3] = torch.eye(3)
    readout.output.weight.data.copy_(torch.eye(3))
    states = torch.zeros(1, 3, 6, dtype=torch.float64)
    states[0, :, :3] = torch.tensor(experiment.COUNTEREXAMPLE)
    decoder, attention = torch.zeros(1, 1, 3).double(), torch.full((1, 1, 3), 1 / 3).double()

    def network(batch):
        logits = readout.logits(readout.from_context(attention @ states))
        return SimpleNamespace(
            encoder_states=states, decoder_states=decoder, attention=attention, logits=logits
        )

    network.readout = readout
    word = torch.zeros(1, 1, dtype=torch.long)
    masks = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
    batch = Batch(
        torch.tensor([[4, 5, 6]]),
        masks[0],
        word,
        target_output=word,
        target_mask=masks[1],
        indices=torch.tensor([7]),
    )
    return network, batch


@torch.no_grad()
def test_the_counterexample_through_the_measure():
    rows = experiment._Rows(*one_sentence(), {"main_probe": torch.tensor([[[-3.0, -1.0, -1.5]]])})
    numbers = {name: values.item() for name, values in rows.numbers().items()}
    evenly, best = (-math.log(1 + 2 * math.exp(logit)) for logit in (-5 / 3, -2.5))
    expected = {
        "agreement.optimal_probe": 0,
        "agreement.optimal_main_probe": 1,
        "agreement.learned_probe": 1,  # of equal weights the first counts, position 1
        "agreement.learned_optimal": 0,
        "agreement.chance": 1 / 3,
        "agreement.steepest_probe": 0,  # slopes 0, 2.5 and 2.5
        "agreement.steepest_main_probe": 1,
        "largest_probe.weight": 0,
        "largest_probe.unused": 1,
        "largest_probe.lost": math.log(3) + best,
        "positions": 2,
        "log_likelihood.largest_probe": -math.log(3),
        "log_likelihood.optimal": best,
        "log_likelihood.learned": evenly,
        "log_likelihood.uniform": evenly,
        "dependent.share": 1,  # 0.859 against 0.726: 0.17 nats
    }
    assert {name: numbers[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    (word,) = rows.worst()
    assert word.lost == pytest.approx(1 / (1 + 2 * math.exp(-2.5)) - 1 / 3)
    assert word.shown["says"][1:] == [2, 1]  # each is sure of another wrong word
    assert word.shown["source"] == [4, 5, 6]
    assert word.shown["optimal"][0] == pytest.approx([0, 0.5, 0.5], abs=1e-6)
    assert rows.sentences() == []  # shorter than those that are shown


def test_the_steepest_descent_is_that_of_the_loss():
    draw = generator(1)
    encoder, decoder = (torch.randn(2, n, 7, generator=draw, dtype=torch.float64) for n in (5, 3))
    attention = torch.full((2, 3, 5), 0.2, dtype=torch.float64, requires_grad=True)
    right = torch.randint(7, (2, 3), generator=draw)
    logits = attention @ encoder + decoder
    likelihood = logits.log_softmax(-1).gather(-1, right[..., None])[..., 0]
    (slopes,) = torch.autograd.grad(likelihood.sum(), attention)
    factor = 1 - likelihood.exp()[..., None]
    torch.testing.assert_close(slopes, factor.detach() * experiment._descent(encoder, logits.detach(), right))


def random_translator(form, words):
    network, draw = translator(3, words=words, width=8, form=form), generator(4)
    for parameter in network.parameters():
        parameter.data *= 3
    source, target = (torch.randint(words, (3, length), generator=draw) for length in (5, 4))
    mask = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
    target_mask = torch.ones(3, 4, dtype=torch.bool)
    batch = Batch(
        source, mask, target, target_output=target, target_mask=target_mask, indices=torch.arange(3)
    )
    return network, batch


@torch.no_grad()
def differences(form, words):
    """Log-probabilities of right words, rebuilt minus the own ones of a random network, by reading."""
    return experiment._differences(*random_translator(form, words))


def test_the_geometric_mean_is_exact_where_the_logits_are_linear():
    assert differences("summed", 9)["all_words"].abs().max() < 1e-12


def test_equation_12_is_not_exact_for_many_words():
    assert differences("summed", 9)["right_word"][:2].abs().mean() > 1e-3


def test_equation_12_is_exact_for_one_position():
    assert differences("summed", 9)["right_word"][2].abs().max() < 1e-12  # one position: its β is p


def test_equation_12_is_exact_for_two_words():
    assert differences("summed", 2)["right_word"].abs().max() < 1e-12


def test_the_geometric_mean_is_not_exact_where_the_logits_are_bent():
    assert differences("joined", 9)["all_words"][:2].abs().mean() > 1e-3


def test_the_geometric_mean_of_one_position_is_exact():
    assert differences("joined", 9)["all_words"][2].abs().max() < 1e-12


def classifier_recording(**changed):
    losses = [math.log1p(math.exp(-1.25)), math.log1p(math.exp(-3))]
    recording = {
        "steps": torch.tensor([5]),
        "validation.offsets": torch.tensor([0, 2, 3]),  # a text of two positions, one of one
        "validation.log_polarity": torch.tensor([[2.0, -1.0, 3.0]]),
        "validation.attention": torch.tensor([[0.75, 0.25, 1.0]]),
        "validation.correct": torch.tensor([[True, True]]),
        "validation.loss": torch.tensor([sum(losses) / 2]),
    }
    return recording | {f"validation.{name}": tensor for name, tensor in changed.items()}


def test_equation_12_rebuilds_the_loss_of_a_classifier():
    measured = experiment.measure_classifier_identity(classifier_recording())
    assert measured["deviation"] < 1e-7
    assert measured["wrong"] == 0


def test_a_loss_that_equation_12_does_not_rebuild_is_seen():
    recording = classifier_recording(
        attention=torch.tensor([[0.25, 0.75, 1.0]]), correct=torch.tensor([[True, False]])
    )
    measured = experiment.measure_classifier_identity(recording)
    assert measured["deviation"] > 0.1
    assert measured["wrong"] == 2


def test_the_counterexample_by_hand():
    numbers = experiment.counterexample()
    assert numbers["probe_second"] == pytest.approx(1 / (1 + math.exp(5) + math.exp(-10)))
    assert numbers["optimal_first"] < 1e-6
    assert numbers["right"] == pytest.approx(1 / (1 + 2 * math.exp(-2.5)))
    assert numbers["from_right_word"] == pytest.approx(numbers["probe_second"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # A certain probe counts where there is attention.
        pytest.param(
            (torch.tensor([0.0, 0.25, 0.75]), torch.tensor([1.0, 0.5, 0.5])), 0.5, id="certain_where_attended"
        )
    ],
)
def test_probability_of_right_label_by_hand(given, expected):
    assert_answer(probability_of_right_label(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.25])),
            "log odds are infinite",
            id="certain probability",
        )
    ],
)
def test_probability_of_right_label_refuses(given, message):
    assert_refused(partial(probability_of_right_label, *given), message)
