"""Code that moved no number: which networks have to show it, and what is noted."""

import json

import pandas as pd
import pytest

from companion.results import equal_code
from companion.results.equal_code import COLUMNS, references

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
