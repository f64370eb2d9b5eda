"""Networks that are chosen by what became of others: they cost time, and they can be missing."""

import json

import pytest

from companion.results.run import run
from notebooks.learn.multi_head import experiment

TINY = {"candidates": 2, "trials": 1, "seeds": 1, "heads": 2, "elsewhere": 1}
TINY |= {"length": 4, "width": 8, "steps": 2, "every": 2, "followed": 2}


def test_networks_of_screened_heads_count_in_the_cost_and_are_named_if_missing(tmp_path, monkeypatch):
    """They follow from outcomes, so no list that is made before can have them."""
    monkeypatch.setattr(experiment, "standing", lambda accuracy: "bad")
    archive, none = tmp_path / "archive", tmp_path / "none"
    whole = run("multi_head", out=tmp_path, models=tmp_path / "models", overrides=TINY, archive=archive)
    assert len(whole.models) == 2 + 1 + 1  # heads tried, random heads, the first of these alone
    assert whole.provenance["networks"] == 4 + 1 + 1 + 2  # all bad, one copied, both in another body
    files = {path: json.loads(path.read_text().splitlines()[0]) for path in archive.glob("loose/*.jsonl")}
    assert len(files) == 8
    seconds = sum(content["history"]["seconds"] for content in files.values())
    assert whole.provenance["training_seconds"] == pytest.approx(seconds, abs=0.05)
    given = {path: content["spec"]["settings"].get("heads") for path, content in files.items()}
    (together,) = [path for path, heads in given.items() if heads in ([0, 1], [1, 0])]
    together.unlink()
    part = run("multi_head", out=tmp_path, models=none, overrides=TINY, archive=archive, trains=False)
    (missing,) = part.missing
    assert missing.startswith("multi_head ")
    assert missing.endswith(": 1")
    assert part.provenance["networks"] == 7
    assert part.models == whole.models
