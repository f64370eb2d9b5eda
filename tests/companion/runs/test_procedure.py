"""A procedure's run as a product: made once, found again, resumed, archived, asked for as a spec."""

import json
from dataclasses import replace

import pytest
import torch

from attnlib.errors import BadInput, CorruptFile, UnknownName
from attnlib.sealed import save_file
from companion.runs.answer import main
from companion.runs.keys import model_key, read_spec
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.shared.snapshots import save_snapshot, stacked_snapshots

TINY = {"length": 4, "width": 8, "batch_size": 4, "steps": 4, "every": 2, "held_out": 6}
SPEC = RunSpec.of("permutation_copying", seed=1, **TINY)
TEXTS = {"data": "known_polarity", "n_train": 100, "n_validation": 20, "embedding_width": 8, "steps": 60}
PAIRS = {"dataset": "known_lexicon", "width": 16, "steps": 55, "n_train": 60, "n_validation": 12}
WORDS = (("max_length", 7), ("n_train", 60), ("n_held_out", 20))
SEQUENCES = {"task": "lexicon_summary", "options": WORDS, "width": 8, "steps": 4}
SEQUENCES |= {"batch_size": 8, "snapshots": 2}
KEYWORDS = {"words": 6, "length": 6, "width": 3, "steps": 5, "every": 2, "held_out": 40}
KINDS = [  # settings, updates before the kill, and the snapshots there are
    ("permutation_copying", TINY, 3, [0, 2, 4]),
    ("classification", TEXTS | {"width": 8}, 55, [0, 10, 50, 60]),
    ("classifier_proxy", TEXTS, 55, [0, 10, 50, 60]),
    ("translation", PAIRS | {"saliency": True, "probed_training": 5, "seed": 1}, 52, [0, 50, 55]),
    ("translation_proxy", PAIRS, 52, [0, 50, 55]),
    ("recurrent_sequences", SEQUENCES, 3, [0, 2, 4]),
    ("transformer_sequences", SEQUENCES | {"heads": 2, "layers": 1}, 3, [0, 2, 4]),
    ("keyword", KEYWORDS, 3, [0, 2, 4, 5]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "stop", "steps"), KINDS, ids=[kind[0] for kind in KINDS])
def test_a_killed_run_ends_in_the_same_recording(tmp_path, monkeypatch, kill_at, name, settings, stop, steps):
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path))
    spec = RunSpec.of(name, **settings)
    whole = Store(tmp_path / "whole").recording(spec)
    with monkeypatch.context() as patch:
        patch.setattr("time.monotonic", iter(range(0, 10**6, 7)).__next__)  # a checkpoint every ninth update
        with pytest.raises(KeyboardInterrupt):
            Store(tmp_path / "cut", report=kill_at(stop)).recording(spec)
    assert not (tmp_path / "cut" / model_key(spec) / "history.json").exists()
    done = []
    resumed = Store(tmp_path / "cut", report=lambda _, step, *__: done.append(step)).recording(spec)
    assert done[0] > (1 if stop > 9 else 0)
    assert whole["steps"].tolist() == steps
    assert whole.tensors.keys() == resumed.tensors.keys()
    for tensor, value in whole.tensors.items():
        torch.testing.assert_close(resumed[tensor], value, rtol=0, atol=0, equal_nan=True)


MODEL = ModelSpec("one_to_one", "AED", steps=2, width=8, task_options=(("n_held_out", 20), ("n_train", 60)))


@pytest.mark.parametrize(
    ("spec", "others"),
    [
        (SPEC, [RunSpec.of("permutation_copying", seed=2, **TINY),
                RunSpec.of("permutation_copying", seed=1, **TINY | {"width": 9})]),
        (MODEL, [replace(MODEL, seed=1), replace(MODEL, weight_decay=0.1), replace(MODEL, task_options=())]),
    ],
)  # fmt: skip
def test_specs_survive_json_and_their_keys_tell_them_and_their_code_apart(spec, others, monkeypatch):
    assert read_spec(json.dumps(spec.content)) == spec
    keys = {model_key(one) for one in [spec, *others]}
    assert len(keys) == 1 + len(others)
    assert model_key(spec).startswith(spec.front)
    monkeypatch.setattr("companion.runs.keys.code_of", lambda spec: "other code")
    assert model_key(spec) not in keys


def test_a_spec_drops_defaults():
    assert RunSpec.of("permutation_copying", seed=1, kind="permutation", **TINY) == SPEC
    assert dict(SPEC.settings) == TINY
    assert (SPEC.resolved.seed, SPEC.resolved.width, SPEC.resolved.order) == (1, 8, "copy")
    assert SPEC.setting.endswith("width=8 seed 1")


@pytest.mark.parametrize(("spec", "name"), [(SPEC, "recording"), (MODEL, "model")])
def test_a_product_is_made_once_and_leaves_no_checkpoints(tmp_path, spec, name):
    steps = []
    store = Store(tmp_path, report=lambda spec, step, total, loss: steps.append(step))
    first, again = store.open(spec), store.open(spec)
    assert steps == list(range(1, spec.resolved.steps + 1 if spec is SPEC else spec.steps + 1))
    folder = tmp_path / model_key(spec)
    files = [".lock", "history.json", f"{name}.safetensors", "spec.json"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert read_spec((folder / "spec.json").read_text()) == spec
    assert {"seconds", "threads", "device"} <= first.history.keys()
    assert first.history == again.history
    tensors = [one.tensors if spec is SPEC else one.model.state_dict() for one in (first, again)]
    torch.testing.assert_close(*tensors, rtol=0, atol=0, equal_nan=True)
    whole = {file: (folder / file).read_bytes() for file in ("history.json", f"{name}.safetensors")}
    for file, content in whole.items():
        halves = content[: len(content) // 2], content[len(content) // 2 :]
        for damaged in (b"", b"[]", halves[0], halves[0] + bytes([halves[1][0] ^ 4]) + halves[1][1:]):
            (folder / file).write_bytes(damaged)
            with pytest.raises(CorruptFile, match=f"network is damaged .*: delete {folder}, and it is made"):
                store.open(spec)
        (folder / file).write_bytes(content)
    altered = {key: value + torch.nan for key, value in tensors[0].items()}
    altered = altered if spec is MODEL else {key: value[:1] for key, value in altered.items()}
    save_file(altered, folder / f"{name}.safetensors")
    with pytest.raises(CorruptFile, match=r"weights are not finite|tensors have other shapes"):
        store.open(spec)
    if spec is SPEC:
        with pytest.raises(BadInput, match="records no 'los'; it records: accuracy"):
            first["los"]


@pytest.mark.parametrize("spec", [MODEL, SPEC], ids=["model", "procedure"])
def test_a_bare_node_trains_what_a_spec_says(spec, tmp_path, capsys):
    assert main([json.dumps(spec.content), "--models", str(tmp_path)]) == 0
    assert (tmp_path / model_key(spec) / "history.json").is_file()
    said = capsys.readouterr()
    assert said.out == f"{model_key(spec)}: trained\n"
    assert f"{spec.setting}: step" in said.err


@pytest.mark.parametrize(
    ("procedure", "settings", "error", "message"),
    [
        (None, {"task": "one_to_won"}, UnknownName, "did you mean 'one_to_one'"),
        (None, {"steps": 0}, BadInput, "steps is 0"),
        ("permutation_copyin", {}, UnknownName, "did you mean 'permutation_copying'"),
        ("permutation_copying", {"widht": 3}, UnknownName, "did you mean 'width'"),
        ("classification", {"attention": "even"}, UnknownName, "no attention 'even'"),
        ("classification", {"width": 0}, BadInput, "width is 0"),
        ("classification", {"steps": 0}, BadInput, "steps is 0"),
        ("classification", {"n_train": -1}, BadInput, "n_train is -1"),
        ("translation", {"attention": "hard"}, UnknownName, "attention"),
        ("translation_proxy", {"longest": -1}, BadInput, "longest is -1"),
        ("transformer_sequences", {"heads": 3}, BadInput, "which 3 heads do not divide"),
        ("transformer_sequences", {"positions": "sine"}, UnknownName, "no positions 'sine'"),
        ("transformer_sequences", {"layers": 0}, BadInput, "layers is 0"),
        ("transformer_sequences", {"batch_size": 0}, BadInput, "batch_size is 0"),
        ("recurrent_sequences", {"source": "a.txt"}, BadInput, "source and target go together"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(tmp_path, procedure, settings, error, message):
    with pytest.raises(error, match=message):
        RunSpec.of(procedure, **settings) if procedure else Store(tmp_path).model(replace(MODEL, **settings))


def test_snapshots_are_stacked_by_checkpoint_and_a_gap_is_said(tmp_path):
    for step in (0, 5):
        save_snapshot(tmp_path, step, {"twice": torch.tensor(2.0 * step)})
    assert stacked_snapshots(tmp_path, (0, 5))["twice"].tolist() == [0.0, 10.0]
    with pytest.raises(CorruptFile, match=r"lacks the snapshots at steps \[7\]"):
        stacked_snapshots(tmp_path, (0, 7))
