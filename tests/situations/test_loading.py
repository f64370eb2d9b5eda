"""Folders that are loaded as they are, or refused in one line with the way out."""

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnlib import Checkpoint, analyse
from attnlib.errors import BadInput
from tests.situations.builders import SOURCE, TARGET, bart, made, t5, tokenizer_of

TOKENIZER = tokenizer_of([*SOURCE, *TARGET])


def saved(folder, make):
    made(make).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", ["Pegasus", "Marian"])
def test_a_checkpoint_without_tables_of_sines_is_whole(tmp_path, family):
    head = "MTModel" if family == "Marian" else "ForConditionalGeneration"
    folder = saved(tmp_path, lambda: bart(family, head))
    weights = load_file(folder / "model.safetensors")
    without = {name: weight for name, weight in weights.items() if "embed_positions" not in name}
    save_file(without, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = Checkpoint.load(folder).model.state_dict()
    for name, weight in weights.items():
        assert loaded[name].equal(weight)


def test_a_checkpoint_without_learned_positions_is_not_whole(tmp_path):
    folder = saved(tmp_path, lambda: bart("Bart"))
    weights = load_file(folder / "model.safetensors")
    without = {name: weight for name, weight in weights.items() if "embed_positions" not in name}
    save_file(without, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match="embed_positions"):
        Checkpoint.load(folder)


def test_the_folder_of_an_adapter_is_said_to_be_one(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "base"}', encoding="utf-8")
    with pytest.raises(BadInput, match="merge_and_unload"):
        Checkpoint.load(tmp_path)


CODE = """
from transformers import {base}{imported}


class Own({base}):
    {line}
"""


@pytest.fixture
def with_code(tmp_path, monkeypatch):
    """A T5 whose classes come with its folder."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = saved(tmp_path / "model", lambda: t5("T5"))
    config = json.loads((folder / "config.json").read_text())
    classes = {"AutoConfig": "configuration_own.Own", "AutoModelForSeq2SeqLM": "modeling_own.Own"}
    (folder / "config.json").write_text(
        json.dumps(config | {"model_type": "of_its_own", "auto_map": classes})
    )
    code = CODE.format(base="T5Config", imported="", line="model_type = 'of_its_own'")
    (folder / "configuration_own.py").write_text(code)
    code = CODE.format(
        base="T5ForConditionalGeneration",
        imported="\nfrom .configuration_own import Own as Config",
        line="config_class = Config",
    )
    (folder / "modeling_own.py").write_text(code)
    return folder


def test_code_of_a_folder_is_refused_without_a_question(with_code, monkeypatch):
    def asked(*_):
        raise AssertionError("a question on the terminal")

    monkeypatch.setattr("builtins.input", asked)
    with pytest.raises(BadInput, match="trust_remote_code"):
        Checkpoint.load(with_code)


def test_code_that_is_trusted_is_run(with_code):
    """The way out that the refusal names."""
    analysis = analyse(with_code, SOURCE * 4, TARGET * 4, probed=0, model_kwargs={"trust_remote_code": True})
    assert len(analysis.heads) == 4


def wrapped_by(prefix):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        renamed = {f"{prefix}{name}": weight for name, weight in weights.items()}
        save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})

    return change


def of_training(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({"epoch": 3, "state_dict": weights}, folder / "pytorch_model.bin")


def with_objects(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"arguments": Path("/data")}, folder / "pytorch_model.bin")


def cut(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:500])


def with_config(**changes):
    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

    return change


WRONGLY_SAVED = [
    pytest.param(wrapped_by("module."), r"save model\.module with", id="DataParallel"),
    pytest.param(wrapped_by("_orig_mod."), r"save model\._orig_mod with", id="torch.compile"),
    pytest.param(of_training, "within 'state_dict'", id="a training program"),
    pytest.param(with_objects, "may run code", id="objects among the weights"),
    pytest.param(cut, "cut off or damaged", id="cut off"),
    pytest.param(with_config(vocab_size=70), r"shared\.weight \(60×16 instead of 70×16\)", id="vocabulary"),
    pytest.param(with_config(d_model="16"), "'d_model': .*'16'", id="a number in quotes"),
    pytest.param(with_config(model_type="nosuch"), "nosuch", id="a type that transformers lacks"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "way_out"), WRONGLY_SAVED)
def test_a_model_that_was_saved_wrongly_is_refused_with_a_way_out(tmp_path, change, way_out):
    folder = saved(tmp_path, lambda: bart("Bart"))
    change(folder)
    with pytest.raises(BadInput, match=way_out) as refusal:
        Checkpoint.load(folder)
    assert "\n" not in str(refusal.value)


def test_weights_of_torch_alone_are_read(tmp_path):
    folder = saved(tmp_path, lambda: bart("Bart"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    loaded = Checkpoint.load(folder).model.state_dict()
    assert all(loaded[name].equal(weight) for name, weight in weights.items())
