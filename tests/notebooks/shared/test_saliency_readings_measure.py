"""Readings of saliency held against a probe: by what a recording has itself, and as the page tells it."""

import pytest

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement
from companion.runs.store import Store
from notebooks.learn.agreement.experiment import saliency_read
from notebooks.shared.agreement import measure_saliency_readings, translator_runs
from notebooks.shared.ragged import padded_cells

TINY = {
    "dataset": "known_lexicon", "width": 8, "pieces": 60, "steps": 100, "learning_rate": 0.01, "n_train": 60,
    "n_validation": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    return translator_runs(2, TINY)


@pytest.fixture(scope="module")
def recordings(runs, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("models"), "cpu")
    return store.recording(runs.normal[0]), store.recording(runs.uniform[1])


def test_each_free_network_is_held_against_the_uniform_one_of_the_next_seed(runs):
    asked = runs.readings()
    assert [(measurement.spec.seed, measurement.beside[0].seed) for measurement in asked] == [(0, 1), (1, 0)]
    assert all(dict(measurement.beside[0].settings)["attention"] == "uniform" for measurement in asked)


@pytest.mark.slow
def test_the_logits_reading_agrees_as_the_recorded_saliency_does(recordings):
    """The last snapshot is the best, so that its saliency has been recorded."""
    first, second = recordings
    recorded = first["validation.saliency"][-1]
    assert not recorded.isnan().any()
    masks = second["validation.source_mask"], second["validation.target_mask"]
    own, probe = (
        padded_cells(cells, *masks, fill=-float("inf"))
        for cells in (recorded, second["validation.log_probe"][-1])
    )
    expected = agreement(own, probe, masks[0][:, None, :].expand(own.shape))[masks[1]].mean()
    found = measure_saliency_readings(first, second)
    assert found["steps"] == second["steps"].tolist()
    assert found["logit"]["agreement"][-1] == pytest.approx(100 * float(expected), abs=1e-6)
    assert found["logit"] != found["log_probability"]


def test_runs_on_other_samples_are_refused(recordings, tmp_path):
    (other,) = translator_runs(1, TINY | {"n_validation": 6}).uniform
    with pytest.raises(BadInput, match="other samples"):
        measure_saliency_readings(recordings[0], Store(tmp_path, "cpu").recording(other))


def answers(*agreements):
    def of(largest):
        return {"agreement": [5.0, largest, 8.0], "kendall": [0.5, 0.1, 0.2]}

    return {(number,): {"logit": of(16), "log_probability": of(high), "gradient_norm": of(23)}
            for number, high in enumerate(agreements)}  # fmt: skip


def test_the_largest_of_all_checkpoints_counts_and_pairs_make_the_interval():
    found = saliency_read(answers(24, 28))
    assert (found["log_probability"]["agreement"]["value"], found["log_probability"]["agreement"]["n"]) == (
        26,
        2,
    )
    assert found["logit"]["agreement"]["value"] == 16
    assert found["logit"]["kendall"]["value"] == 0.5
