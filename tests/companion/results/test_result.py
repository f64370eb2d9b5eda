"""Results: equal bytes for equal runs, stale when their code changes, clear when something is missing."""

from dataclasses import replace

import pytest

from attnlib.errors import CorruptFile
from companion.results import registry
from companion.results.config import plain
from companion.results.result import Result
from companion.results.run import code_of
from companion.runs.keys import model_key

RESULT = Result(
    experiment="alignment_breakdown",
    profile="quick",
    config={"seeds": 3},
    values={"scan": {"AO": {"share": {"value": 1 / 3, "low": 0.1, "high": float("nan"), "n": 3}}}},
    tables={"points": [{"task": "scan", "share": 0.123456789}, {"task": "a, b", "other": None}]},
    data={"multi30k/train.en": "00"},
    provenance={"seconds": 1.5},
)


def test_what_is_saved_is_loaded_and_equal_bytes(tmp_path):
    path = RESULT.save(tmp_path / "a")
    again = replace(RESULT, provenance={"seconds": 99}).save(tmp_path / "b")
    assert path.read_bytes() == again.read_bytes(), "what varies between runs must not be in the result"
    loaded = Result.load(path)
    assert loaded.digest == replace(loaded, provenance={}).digest
    assert len({one.digest for one in (loaded, replace(loaded, values={}), replace(loaded, config={}))}) == 3
    assert loaded.values["scan"]["AO"]["share"] == {"value": 0.3333333, "low": 0.1, "high": None, "n": 3}
    assert loaded.provenance == {"seconds": 1.5}
    assert loaded.seal == RESULT.seal
    table = (tmp_path / "a" / "alignment_breakdown.points.csv").read_text()
    assert table == 'task,share,other\nscan,0.1234568,\n"a, b",,\n'


def test_stale_follows_the_code_the_models_and_the_settings(monkeypatch):
    """A plan of training that hangs on data which are not on this machine makes nothing stale."""
    experiment = registry.load("temporal_share")
    config = experiment.PROFILES["quick"]
    specs = experiment.models(config)
    made = {"code": code_of("temporal_share"), "models": [model_key(spec) for spec in specs]}
    result = replace(RESULT, experiment="temporal_share", config=plain(config), data={}, provenance=made)
    assert not result.stale
    assert replace(result, provenance=made | {"code": "0"}).stale
    assert replace(result, provenance=made | {"models": ["of another plan"]}).stale
    assert replace(result, config=plain(config) | {"gone": 1}).stale
    other = replace(
        result, data={"scan/train.txt": "0" * 64}, provenance=made | {"models": ["of another plan"]}
    )
    for here in (False, True):
        monkeypatch.setattr("companion.results.result._available", lambda file, here=here: here)
        assert replace(other).stale is here


@pytest.mark.parametrize("text", ["{", '{"experiment": "x"}', '["not a result"]'])
def test_a_file_that_is_no_result_is_reported(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CorruptFile, match="is not a result"):
        Result.load(tmp_path / "x.json")
