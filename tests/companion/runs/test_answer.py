"""What a bare node is asked: figures, models by key, specs to train."""

import json

import pytest

from companion.runs.answer import main
from companion.runs.keys import model_key
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec

MODEL = ModelSpec("one_to_one", "AED", steps=2, width=8)
RECIPE = RunSpec.of(
    "permutation_copying", seed=1, length=4, width=8, batch_size=4, steps=4, every=2, held_out=6
)


@pytest.mark.parametrize("spec", [MODEL, RECIPE], ids=["model", "recipe"])
def test_a_spec_is_trained_and_said(spec, tmp_path, capsys):
    assert main([json.dumps(spec.content), "--models", str(tmp_path)]) == 0
    assert (tmp_path / model_key(spec) / "history.json").is_file()
    said = capsys.readouterr()
    assert said.out == f"{model_key(spec)}: trained\n"
    assert f"{spec.setting}: step" in said.err


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("attend/temporal_shares", "did you mean 'temporal_share'"),
        ('{"task": "one_to_one", "stepz": 1}', "not the spec of a model or procedure: ModelSpec"),
        ("{bad", "not the spec of a model or procedure"),
        ('{"recipe": "none"}', "no procedure 'none'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(word, message, tmp_path, capsys):
    assert main([word, "--models", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
