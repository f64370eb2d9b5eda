"""The Transformer's recipe on a tiny task: what is recorded, that it repeats, resumes and comes back."""

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from companion.runs.recipe import RecipeSpec, Recording
from companion.runs.sequence_course import judged_samples, load_task, look_at
from companion.runs.transformer_sequences import Settings, new_network, record, recorded_network

OPTIONS = (("max_length", 7), ("n_train", 60), ("n_held_out", 20))
CHANGED = {"task": "lexicon_summary", "options": OPTIONS, "width": 8, "heads": 2, "layers": 1}
CHANGED |= {"steps": 4, "batch_size": 8, "looks": 2}
TINY = Settings(**CHANGED)


@pytest.mark.parametrize("tied", [False, True])
def test_the_recorded_network_is_the_trained_one(tmp_path, tied):
    spec = RecipeSpec.of("transformer_sequences", tied=tied, **CHANGED)
    found = record(spec.resolved, tmp_path)
    network = recorded_network(Recording(spec, found, {}))
    again = look_at(network, judged_samples(spec.resolved))
    torch.testing.assert_close(again["loss"], found["loss"][-1])
    assert found["steps"].tolist() == [0, 2, 4]
    assert ("network.encoder.0.self_attention.key_map.weight" in found) is not tied
    task = load_task(spec.resolved)
    start = new_network(spec.resolved, len(task.source_vocabulary), len(task.target_vocabulary)).eval()
    torch.testing.assert_close(look_at(start, judged_samples(spec.resolved))["loss"], found["loss"][0])


def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path):
    class Killed(Exception):
        pass

    def kill(step, steps, loss):
        if step == 3:
            raise Killed

    whole = record(TINY, tmp_path / "whole")
    with pytest.raises(Killed):
        record(TINY, tmp_path / "killed", report=kill)
    resumed = record(TINY, tmp_path / "killed")
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        assert torch.equal(value, resumed[name])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"heads": 3}, BadInput, "which 3 heads do not divide"),
        ({"positions": "sine"}, UnknownName, "no positions 'sine'"),
        ({"layers": 0}, BadInput, "layers is 0"),
        ({"batch_size": 0}, BadInput, "batch_size is 0"),
    ],
)
def test_a_run_that_cannot_be_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        RecipeSpec.of("transformer_sequences", **settings)


def test_warm_up_is_a_setting_of_its_own_and_defaults_are_left_out_of_the_spec():
    assert RecipeSpec.of("transformer_sequences", warmup=100) == RecipeSpec("transformer_sequences")
    assert RecipeSpec.of("transformer_sequences").resolved.warmup == 100
