"""Results: equal bytes for equal runs, stale when their code changes unless that moved no number."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from companion.results import equal_code, registry
from companion.results.config import plain
from companion.results.equal_code import COLUMNS, references
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


# -- code that moved no number: which networks have to show it, and what is noted ----------------------------

ONE = ("old", "new", 1.0, "cheap", '{"attention": "learned"}')


def test_the_cheapest_two_are_rerun_and_the_cheapest_of_every_further_choice():
    more = [(*ONE[:2], seconds, f"costly {seconds}", ONE[4]) for seconds in (3.0, 2.0)]
    uniform = [(*ONE[:2], s, f"uniform {s}", '{"attention": "uniform"}') for s in (5.0, 4.0)]
    found = pd.DataFrame([*uniform, ONE, *more, ("older", *ONE[1:])], columns=COLUMNS)
    assert references(found) == {
        ("old", "new"): ["cheap", "costly 2.0", "uniform 4.0"],
        ("older", "new"): ["cheap"],
    }


def test_numbers_are_sizes_and_words_are_choices():
    settings = {"steps": 5, "heads": [1, 2], "saliency": True, "kind": "a"}
    spec = {"recipe": "x", "seed": 3, "settings": settings}
    assert equal_code._choices(spec) == {"recipe": "x", "settings": {"saliency": True, "kind": "a"}}


@pytest.mark.parametrize("equal", [True, False])
def test_fingerprints_are_equal_where_references_agree_in_every_digit(tmp_path, monkeypatch, capsys, equal):
    found = {"before": ['{"loss": 1.0}'], "today": ['{"loss": 1.0}' if equal else '{"loss": 1.0000001}']}
    monkeypatch.setattr(equal_code, "changed", lambda archive: pd.DataFrame([ONE], columns=COLUMNS))
    monkeypatch.setattr(equal_code, "EQUAL_CODE", tmp_path / "equal_code.json")
    monkeypatch.setattr(equal_code, "answered", lambda checkout, runs, folder: {"cheap": found[folder.name]})
    code = equal_code.main(["--before", str(tmp_path), "--why", "a sum in one pass"])
    held = json.loads((tmp_path / "equal_code.json").read_text())
    assert code == (0 if equal else 1)
    noted = {"was": "old", "is": "new", "references": ["cheap"], "why": "a sum in one pass"}
    assert held == ([noted] if equal else [])
    assert ("equals old" in capsys.readouterr().out) == equal


@pytest.mark.slow
def test_nothing_in_the_archive_is_by_other_code_today(capsys):
    assert equal_code.main([]) == 0
    assert "no fingerprint has changed" in capsys.readouterr().out
