"""A recipe's run as a product: made once, found again, resumed, archived; wrong words are said."""

import shutil

import pytest
import torch

from attnlib.errors import BadInput, CorruptFile, NotMeasured, UnknownName
from companion.runs import registry
from companion.runs.keys import model_key
from companion.runs.looks import gathered_looks, keep_look
from companion.runs.recipe import RecipeSpec
from companion.runs.store import Store
from notebooks.shared import permutation_copying

TINY = {"length": 4, "width": 8, "batch_size": 4, "steps": 4, "every": 2, "held_out": 6}
SPEC = RecipeSpec.of("permutation_copying", seed=1, **TINY)


def last_loss(recording, factor):
    return {"loss": factor * float(recording["loss"][-1]), "seed": recording.spec.seed}


def forbid(monkeypatch):
    """No process makes the recording: it is there."""
    monkeypatch.setattr(RecipeSpec, "make", None)


def test_a_spec_survives_json_and_drops_defaults():
    assert RecipeSpec.from_json(SPEC.to_json()) == SPEC
    assert RecipeSpec.of("permutation_copying", seed=1, kind="permutation", **TINY) == SPEC
    assert dict(SPEC.settings) == TINY
    assert SPEC.resolved == permutation_copying.Settings(seed=1, **TINY)
    assert SPEC.setting.endswith("width=8 seed 1")


def test_keys_tell_settings_seeds_and_code_apart(monkeypatch):
    others = [RecipeSpec.of("permutation_copying", seed=seed, **TINY) for seed in (0, 2)]
    others.append(RecipeSpec.of("permutation_copying", seed=1, **TINY | {"width": 9}))
    keys = {model_key(spec) for spec in [SPEC, *others]}
    assert len(keys) == 4
    assert model_key(SPEC).startswith("permutation_copying-s1-")
    monkeypatch.setattr("companion.runs.keys.code_of", lambda spec: "other code")
    assert model_key(SPEC) not in keys


def test_a_recording_is_made_once_and_leaves_no_checkpoints(tmp_path, monkeypatch):
    first = Store(tmp_path).recording(SPEC)
    folder = tmp_path / model_key(SPEC)
    assert sorted(path.name for path in folder.iterdir()) == [
        ".lock",
        "history.json",
        "recording.safetensors",
        "spec.json",
    ]
    assert RecipeSpec.from_json((folder / "spec.json").read_text()) == SPEC
    assert {"seconds", "threads", "device"} <= first.history.keys()
    forbid(monkeypatch)
    again = Store(tmp_path).recording(SPEC)
    assert {name: value.tolist() for name, value in again.tensors.items()} == {
        name: value.tolist() for name, value in first.tensors.items()
    }


def test_an_interrupted_run_ends_in_the_same_numbers(tmp_path, monkeypatch):
    whole = Store(tmp_path / "whole").recording(SPEC)
    kept, seen = permutation_copying.keep_look, []

    def killed(folder, step, tensors):
        if step == 2 and not seen:
            seen.append(step)
            raise KeyboardInterrupt
        kept(folder, step, tensors)

    monkeypatch.setattr(permutation_copying, "keep_look", killed)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path / "cut").recording(SPEC)
    assert not (tmp_path / "cut" / model_key(SPEC) / "history.json").exists()
    resumed = Store(tmp_path / "cut").recording(SPEC)
    assert seen == [2]
    for name, value in whole.tensors.items():
        assert torch.equal(value, resumed[name]), name


def test_answers_are_kept_beside_it_and_outlive_it_in_the_archive(tmp_path, monkeypatch):
    store = Store(tmp_path / "models", archive=tmp_path / "archive")
    found = store.kept(SPEC, last_loss, factor=2)
    assert found["loss"] == pytest.approx(2 * float(store.recording(SPEC)["loss"][-1]), rel=1e-6)
    shutil.rmtree(tmp_path / "models")
    forbid(monkeypatch)
    bare = Store(tmp_path / "models", archive=tmp_path / "archive", trains=False)
    assert bare.kept(SPEC, last_loss, factor=2) == found
    assert bare.history(SPEC)["threads"] == torch.get_num_threads()
    with pytest.raises(NotMeasured, match=r"permutation_copying .* seed 1 is not trained yet"):
        bare.kept(SPEC, last_loss, factor=3)


def test_a_damaged_recording_says_what_to_delete(tmp_path):
    Store(tmp_path).recording(SPEC)
    (tmp_path / model_key(SPEC) / "recording.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(CorruptFile, match=f"delete the folder {model_key(SPEC)}"):
        Store(tmp_path).recording(SPEC)


def test_an_unknown_tensor_is_named_with_those_there_are(tmp_path):
    with pytest.raises(BadInput, match="records no 'los'; it records: accuracy"):
        Store(tmp_path).recording(SPEC)["los"]


def test_wrong_words_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'permutation_copying'"):
        RecipeSpec.of("permutation_copyin")
    with pytest.raises(UnknownName, match="did you mean 'width'"):
        RecipeSpec.of("permutation_copying", widht=3)
    with pytest.raises(BadInput, match="no recipe spec"):
        RecipeSpec.from_json('{"task": "scan"}')
    assert "permutation_copying" in registry.names()


def test_looks_are_stacked_by_checkpoint_and_a_gap_is_said(tmp_path):
    for step in (0, 5):
        keep_look(tmp_path, step, {"twice": torch.tensor(2.0 * step)})
    assert gathered_looks(tmp_path, (0, 5))["twice"].tolist() == [0.0, 10.0]
    with pytest.raises(CorruptFile, match=r"lacks the looks at steps \[7\]"):
        gathered_looks(tmp_path, (0, 7))
