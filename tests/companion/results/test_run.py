"""Experiments end to end on tiny models: bare machine, equal bytes, numbers against a second computation."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.training.evaluate import traces
from companion.results.__main__ import main as compute
from companion.results.config import override
from companion.results.request import Request
from companion.results.run import run
from companion.runs.answer import main as answer
from companion.runs.archive import Archive
from companion.runs.store import Store
from notebooks.learn.multi_head import experiment as multi_head
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import PROFILES, model_specs
from tests.notebooks.figure_builders import smallest

TINY = {"task": "one_to_one", "seeds": 1, "width": 8, "steps": 3, "fit_samples": 200}
TINY_SHARE = Request("temporal_share", parameters=TINY)
BLOCKER = """
import sys
from importlib.metadata import packages_distributions
ALLOWED = {"numpy", "torch", "safetensors", "jaxtyping", "attnlib", "companion", "notebooks"}
# What those four bring along themselves.
ALLOWED |= {"wadler_lindig", "typing_extensions", "sympy", "mpmath", "networkx", "filelock", "fsspec"}
ALLOWED |= {"jinja2", "markupsafe", "setuptools", "pkg_resources", "functorch", "torchgen", "packaging"}
ALLOWED |= {"_distutils_hack"}
blocked = packages_distributions().keys() - ALLOWED
assert {"matplotlib", "pandas", "pydantic", "scipy", "pooch", "typer"} <= blocked
sys.modules.update(dict.fromkeys(blocked))
"""
ANSWER = """
from dataclasses import replace
from companion.runs import origin
from companion.runs.answer import main
from notebooks.attend.temporal_share import experiment
origin.PACKAGES += ("not installed",)
tiny = {"task": ("one_to_one",), "seeds": 1, "width": 8, "steps": 3, "fit_samples": 200}
experiment.PROFILES["quick"] = replace(experiment.PROFILES["quick"], **tiny)
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def bare(code, *words):
    """A script on a machine that has four packages."""
    command = [sys.executable, "-c", BLOCKER + code, *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_four_packages_train_and_measure_and_what_is_computed_of_it_is_the_same(tmp_path, models):
    here = run(TINY_SHARE, out=tmp_path / "here", models=models)
    places = ["--archive", tmp_path / "none", "--answers", tmp_path / "answers"]
    words = ["attend/temporal_share", "--profile", "quick", *places, "--models", tmp_path / "there"]
    done = bare(ANSWER, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "attend/temporal_share: 2 answers\n"
    assert "step 3 of 3" in done.stderr
    archive = Archive(tmp_path / "none", tmp_path / "answers")
    new = {"out": tmp_path / "computed", "models": tmp_path / "empty"}
    computed = run(TINY_SHARE, archive=archive, trains=False, **new)
    assert "not installed" not in str(computed.provenance["trained_with"])
    path = "temporal_share.json"
    assert (tmp_path / "here" / path).read_bytes() == (tmp_path / "computed" / path).read_bytes()
    assert not here.stale
    assert set(here.provenance) >= {"commit", "dirty", "date", "device", "threads", "packages", "seconds"}


def test_a_machine_with_four_packages_is_told_in_a_line_what_it_can_do():
    done = bare("import runpy; runpy.run_module('companion.results', run_name='__main__')", "temporal_share")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "python -m companion.runs.answer FIGURE" in done.stderr


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        (compute, ["temporal_shares"], "did you mean 'temporal_share'"),
        (compute, ["temporal_share", "--profile", "papre"], "did you mean 'paper'"),
        (answer, ["attend/temporal_shares"], "did you mean 'temporal_share'"),
        (answer, ['{"task": "one_to_one", "stepz": 1}'], "not the spec of a model or procedure: ModelSpec"),
        (answer, ["{bad"], "not the spec of a model or procedure"),
        (answer, ['{"recipe": "none"}'], "no procedure 'none'"),
    ],
)
def test_errors_of_commands_are_one_line_with_the_nearest_name(tmp_path, capsys, main, arguments, message):
    assert main([*arguments, "--models", str(tmp_path)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert message in told


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "cudaa"}, "device 'cudaa' is not to be had here"),
        ({"threads": 0}, "threads is 0"),
        ({"out": "/proc/nowhere"}, "cannot write /proc/nowhere"),
        ({"models": "/proc/nowhere"}, "cannot write /proc/nowhere"),
    ],
)
def test_what_the_machine_cannot_do_is_said_before_the_work(tmp_path, settings, message):
    with pytest.raises(BadInput, match=message):
        run(TINY_SHARE, **{"out": tmp_path, "models": tmp_path} | settings)
    assert not list(tmp_path.glob("*"))


def test_measurements_agree_with_plain_means(models):
    """Temporal share and typicality once more, sample by sample, from the trace alone."""
    spec = model_specs(override(PROFILES["quick"], TINY))[0]
    trained = Store(models).model(spec)
    found = measure_alignment_terms(trained, fit_samples=200)

    def states(corpus):
        """Of the decoder and of the encoder, sample by sample, so that nothing is padded."""
        for trace in traces(trained.model, corpus, batch_size=1):
            yield trace.decoder_states[0].double().numpy(), trace.encoder_states[0].double().numpy()

    sides = zip(*states(trained.task.train.subset(np.arange(200))), strict=True)
    decoder_mean, encoder_mean = (  # at each position
        pd.concat(map(pd.DataFrame, side)).groupby(level=0).mean().to_numpy() for side in sides
    )
    totals, terms, matrices = [], [], {}
    for decoder, encoder in states(trained.task.held_out):
        scores = decoder @ encoder.T
        term = decoder_mean[: len(decoder)] @ encoder_mean[: len(encoder)].T
        totals += (scores - scores.mean(1, keepdims=True)).ravel().tolist()
        terms += (term - term.mean(1, keepdims=True)).ravel().tolist()
        weights = np.exp(scores - scores.max(1, keepdims=True))
        matrices.setdefault(scores.shape, []).append(weights / weights.sum(1, keepdims=True))
    share = np.dot(terms, totals) / np.dot(totals, totals)
    assert found["covariance_share"]["temporal_temporal"] == pytest.approx(share, rel=1e-4)
    assert sum(found["covariance_share"].values()) == pytest.approx(1)

    values = []
    for stack in map(np.stack, matrices.values()):
        for i, matrix in enumerate(stack):
            others = np.delete(stack, i, axis=0).mean(0)
            values.append(1 - 0.5 * np.abs(matrix - others).sum(1).mean())
    assert found["typicality"]["value"] == pytest.approx(np.mean(values), rel=1e-5)
    assert found["typicality"]["coverage"] == 1


def test_networks_of_screened_heads_count_in_the_cost_and_are_named_if_missing(tmp_path, monkeypatch):
    """They follow from outcomes, so no list that is made before can have them."""
    monkeypatch.setattr(multi_head, "standing", lambda accuracy: "bad")
    archive, none = tmp_path / "archive", tmp_path / "none"
    request = Request("multi_head", parameters=smallest("multi_head") | {"moved": 2})
    whole = run(request, out=tmp_path, models=tmp_path / "models", archive=archive)
    assert len(whole.models) == 2 + 1 + 1  # heads tried, random heads, the first of these alone
    assert whole.provenance["networks"] == 4 + 1 + 1 + 2  # all bad, one copied, both in another body
    files = {path: json.loads(path.read_text().splitlines()[0]) for path in archive.glob("loose/*.jsonl")}
    assert len(files) == 8
    seconds = sum(content["history"]["seconds"] for content in files.values())
    assert whole.provenance["training_seconds"] == pytest.approx(seconds, abs=0.05)
    given = {path: content["spec"]["settings"].get("heads") for path, content in files.items()}
    (together,) = [path for path, heads in given.items() if heads in ([0, 1], [1, 0])]
    together.unlink()
    part = run(request, out=tmp_path, models=none, archive=archive, trains=False, threads=2)
    assert torch.get_num_threads() == 1
    (missing,) = part.missing
    assert missing.startswith("multi_head ")
    assert missing.endswith(": 1")
    assert part.provenance["networks"] == 7
    assert part.models == whole.models
