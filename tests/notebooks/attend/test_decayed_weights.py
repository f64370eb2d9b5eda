"""Weight decay on some weights alone: its ends are the trainings of the suite."""

from dataclasses import replace

import pytest
import torch

from companion.runs import store
from companion.runs.encoder_decoder import new_model, train
from companion.runs.procedure import Recording, RunSpec
from companion.runs.spec import ModelSpec
from notebooks.attend.decayed_weights import experiment
from notebooks.attend.decayed_weights.penalties import PENALISED_ALONE
from notebooks.attend.decayed_weights.trainings import selective_decay
from notebooks.attend.decayed_weights.trainings.selective_decay import PENALISED, Settings
from notebooks.shared.measure import measure_alignment_terms
from tests.notebooks.figure_builders import computed, tiny

OPTIONS = (("max_length", 6), ("min_length", 5), ("n_held_out", 80), ("n_train", 100))
SPEC = ModelSpec("one_to_one", "AED", steps=3, width=8, weight_decay=0.1, task_options=OPTIONS)


def settings(penalised, spec=SPEC):
    return Settings(**vars(spec), penalised=penalised)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainings")
    return {name: selective_decay.record(settings(name), folder / name) for name in PENALISED}


def weights_of_suite(spec, folder):
    network, _ = train(spec, store.load_task(spec.task, spec.task_options), folder)
    return network.state_dict()


@pytest.mark.parametrize(("penalised", "weight_decay"), [("nothing", 0.0), ("everything", 0.1)])
def test_at_its_ends_the_network_is_that_of_the_suite(recorded, tmp_path, penalised, weight_decay):
    expected = weights_of_suite(replace(SPEC, weight_decay=weight_decay), tmp_path)
    assert all(torch.equal(value, expected[name]) for name, value in recorded[penalised].items())


@pytest.mark.parametrize("penalised", PENALISED_ALONE)
def test_a_penalty_on_some_weights_is_another_training(recorded, penalised):
    for end in ("nothing", "everything"):
        assert any(not torch.equal(value, recorded[end][name]) for name, value in recorded[penalised].items())


def test_each_weight_is_recurrent_of_one_side_or_among_the_others():
    network = new_model(SPEC, store.load_task(SPEC.task, SPEC.task_options))
    for name, _ in network.named_parameters():
        groups = ("decoder_recurrence", "encoder_recurrence", "others")
        assert sum(PENALISED[group](name) for group in groups) == 1


def test_the_decoders_recurrent_weights_are_one_matrix():
    network = new_model(SPEC, store.load_task(SPEC.task, SPEC.task_options))
    penalised = [name for name, _ in network.named_parameters() if PENALISED["decoder_recurrence"](name)]
    assert penalised == ["decoder.weight_hh_l0"]


def test_a_recorded_network_is_measured_as_one_of_the_suite(recorded, tmp_path):
    spec = RunSpec.of("selective_decay", penalised="everything", **vars(SPEC))
    measured = experiment.measure_terms_of_penalised(Recording(spec, recorded["everything"], {}), 50)
    expected = measure_alignment_terms(store.Store(tmp_path).model(SPEC), 50)
    assert measured == expected


def terms(no_residual):
    """Return what is measured of a network, of which one number matters."""
    pairs = [f"{query}_{key}" for query in ("temporal", "input", "residual") for key in ("temporal", "input")]
    shares = dict.fromkeys([*pairs, *(f"{part}_residual" for part in ("temporal", "input", "residual"))], 0.1)
    rebuilt = {"no_residual": {"similarity": no_residual, "argmax_agreement": 1.0}}
    quality = {"token_accuracy": 1.0, "exact_match": 1.0, "loss": 0.0}
    typicality = {"value": 1.0, "coverage": 1.0}
    return {
        "quality": quality, "typicality": typicality, "near_diagonal": 1.0, "covariance_share": shares,
        "substitution": rebuilt,
    }  # fmt: skip


def test_effects_are_differences_of_networks_that_share_a_seed():
    class OfPenalty:
        def cached(self, spec, measure, **_):
            penalised = getattr(spec, "resolved", None)
            name = penalised.penalised if penalised else str(spec.weight_decay)
            return terms({"0.0": 0.25, "0.001": 0.75, "others": 0.5}.get(name, 0.25) + spec.seed / 8)

    values = computed(tiny("decayed_weights", seeds=2, weight_decay=0.001), OfPenalty()).values
    effect = values["effects"]["others"]["no_residual"]
    assert (effect["value"], effect["low"], effect["n"]) == (0.25, 0.25, 2)
    assert values["less_everything"]["others"]["no_residual"]["value"] == -0.25
