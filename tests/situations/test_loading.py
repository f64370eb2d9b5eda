"""Folders that are loaded as they are, or refused in one line with the way out."""

import json
import sys

import pytest
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
    own = {"AutoConfig": "configuration_own.Own", "AutoModelForSeq2SeqLM": "modeling_own.Own"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "of_its_own", "auto_map": own}))
    code = CODE.format(base="T5Config", imported="", line="model_type = 'of_its_own'")
    (folder / "configuration_own.py").write_text(code)
    code = CODE.format(
        base="T5ForConditionalGeneration",
        imported="\nfrom .configuration_own import Own as Config",
        line="config_class = Config",
    )
    (folder / "modeling_own.py").write_text(code)
    return folder


def test_code_of_a_folder_is_not_run_and_nobody_is_asked(with_code, monkeypatch):
    def asked(*_):
        raise AssertionError("a question on the terminal")

    monkeypatch.setattr("builtins.input", asked)
    with pytest.raises(BadInput, match="trust_remote_code"):
        Checkpoint.load(with_code)


def test_code_that_is_trusted_is_run(with_code):
    """The way out that the refusal names."""
    analysis = analyse(with_code, SOURCE * 4, TARGET * 4, probed=0, model_kwargs={"trust_remote_code": True})
    assert len(analysis.heads) == 4
