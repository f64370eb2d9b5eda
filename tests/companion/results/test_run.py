"""Experiments end to end on tiny models: bare machine, equal bytes, numbers against a second computation."""

import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.errors import CorruptFile
from companion.results import registry
from companion.results.__main__ import main as compute
from companion.results.answer import main as answer
from companion.results.config import override, plain
from companion.results.request import Request
from companion.results.result import Result
from companion.results.run import _training, run
from companion.runs.archive import Archive
from companion.runs.evaluate import traces
from companion.runs.store import Store
from notebooks.learn.multi_head import experiment as multi_head
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import PROFILES, model_specs
from tests.attnlib.refusals import assert_refused
from tests.companion.book.book_builders import ROOT, output_of
from tests.notebooks.figure_builders import tiny_request
from tests.tables import beside

REFUSED = beside(__file__, "refused")
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
from companion.runs import store
from companion.results.answer import main
from notebooks.attend.temporal_share import experiment
store.PACKAGES += ("not installed",)
tiny = {"task": ("one_to_one",), "seeds": 1, "width": 8, "steps": 3, "fit_samples": 200}
experiment.PROFILES["quick"] = replace(experiment.PROFILES["quick"], **tiny)
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def bare(script, *words, code=0):
    """What a script says on a machine that has four packages."""
    command = [sys.executable, "-c", BLOCKER + script, *map(str, words)]
    return output_of(command, ROOT, code=code, OMP_NUM_THREADS="1")


@pytest.mark.slow
def test_four_packages_give_the_same_result(tmp_path, models):
    here = run(TINY_SHARE, out=tmp_path / "here", models=models)
    places = ["--archive", tmp_path / "none", "--answers", tmp_path / "answers"]
    words = ["attend/temporal_share", "--profile", "quick", *places, "--models", tmp_path / "there"]
    output = bare(ANSWER, *words)
    assert output.endswith("\nattend/temporal_share: 4 answers\n")
    assert "step 3 of 3" in output
    archive = Archive(tmp_path / "none", tmp_path / "answers")
    new = {"out": tmp_path / "computed", "models": tmp_path / "empty"}
    computed = run(TINY_SHARE, archive=archive, trains=False, **new)
    assert "not installed" not in str(computed.provenance["trained_with"])
    path = "temporal_share.json"
    assert (tmp_path / "here" / path).read_bytes() == (tmp_path / "computed" / path).read_bytes()
    assert here.current
    assert set(here.provenance) >= {"commit", "dirty", "date", "device", "threads", "packages", "seconds"}


def test_a_machine_with_four_packages_is_told_in_a_line_what_it_can_do():
    script = "import runpy; runpy.run_module('companion.results', run_name='__main__')"
    (line,) = bare(script, "temporal_share", code=1).splitlines()
    assert "python -m companion.results.answer FIGURE" in line


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [(compute, *row) for row in REFUSED["compute"]] + [(answer, *row) for row in REFUSED["answer"]],
)
def test_errors_of_commands_are_one_line_with_the_nearest_name(tmp_path, capsys, main, arguments, message):
    assert main([*arguments, "--models", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize(("settings", "message"), REFUSED["machine"])
def test_what_the_machine_cannot_do_is_said_before_the_work(tmp_path, settings, message):
    assert_refused(partial(run, TINY_SHARE, **{"out": tmp_path, "models": tmp_path} | settings), message)
    assert not list(tmp_path.glob("*"))


@pytest.mark.slow
def test_measurements_agree_with_plain_means(models):
    spec = model_specs(override(PROFILES["quick"], TINY))[0]
    trained = Store(models).model(spec)
    measured = measure_alignment_terms(trained, fit_samples=200)

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
    assert measured["covariance_share"]["temporal_temporal"] == pytest.approx(share, rel=1e-4)
    assert sum(measured["covariance_share"].values()) == pytest.approx(1)

    values = []
    for stack in map(np.stack, matrices.values()):
        for i, matrix in enumerate(stack):
            others = np.delete(stack, i, axis=0).mean(0)
            values.append(1 - 0.5 * np.abs(matrix - others).sum(1).mean())
    assert measured["typicality"]["value"] == pytest.approx(np.mean(values), rel=1e-5)
    assert measured["typicality"]["coverage"] == 1


@pytest.mark.slow
def test_networks_of_screened_heads_count_in_the_cost(tmp_path, monkeypatch):
    """They follow from outcomes, so no list that is made before can have them."""
    monkeypatch.setattr(multi_head, "standing", lambda accuracy: "bad")
    archive = tmp_path / "archive"
    request = tiny_request("multi_head", moved=2)
    whole = run(request, out=tmp_path, models=tmp_path / "models", archive=archive)
    assert len(whole.models) == 2 + 1 + 1  # heads tried, random heads, the first of these alone
    assert whole.provenance["networks"] == 4 + 1 + 1 + 2  # all bad, one copied, both in another body
    files = {path: json.loads(path.read_text().splitlines()[0]) for path in archive.glob("loose/*.jsonl")}
    assert len(files) == 8
    seconds = sum(content["history"]["seconds"] for content in files.values())
    assert whole.provenance["training_seconds"] == pytest.approx(seconds, abs=0.05)


@pytest.mark.slow
def test_networks_of_screened_heads_are_named_if_missing(tmp_path, monkeypatch):
    """They follow from outcomes, so no list that is made before can have them."""
    monkeypatch.setattr(multi_head, "standing", lambda accuracy: "bad")
    archive, none = tmp_path / "archive", tmp_path / "none"
    request = tiny_request("multi_head", moved=2)
    whole = run(request, out=tmp_path, models=tmp_path / "models", archive=archive)
    files = {path: json.loads(path.read_text().splitlines()[0]) for path in archive.glob("loose/*.jsonl")}
    given = {path: content["settings"].get("heads") for path, content in files.items()}
    (together,) = [path for path, heads in given.items() if heads in ([0, 1], [1, 0])]
    together.unlink()
    part = run(request, out=tmp_path, models=none, archive=archive, trains=False, threads=2)
    assert torch.get_num_threads() == 1
    (missing,) = part.missing
    assert missing.startswith("multi_head ")
    assert missing.endswith(": 1")
    assert part.provenance["networks"] == 7
    assert part.models == whole.models


# -- equal bytes for equal runs, current as long as the same runs and versions are asked for -----------------

RESULT = Result(**beside(__file__, "result"))


def test_what_varies_between_runs_is_not_in_a_saved_result(tmp_path):
    path = RESULT.save(tmp_path / "a")
    again = replace(RESULT, provenance={"seconds": 99}).save(tmp_path / "b")
    assert path.read_bytes() == again.read_bytes(), "what varies between runs must not be in the result"


def test_the_digest_of_a_result_is_of_its_numbers(tmp_path):
    path = RESULT.save(tmp_path / "a")
    loaded = Result.load(path)
    assert loaded.digest == replace(loaded, provenance={}).digest
    assert (
        len({result.digest for result in (loaded, replace(loaded, values={}), replace(loaded, config={}))})
        == 3
    )


def test_a_saved_result_is_loaded(tmp_path):
    path = RESULT.save(tmp_path / "a")
    loaded = Result.load(path)
    assert loaded.values["scan"]["AO"]["share"] == {"value": 0.3333333, "low": 0.1, "high": None, "n": 3}
    assert loaded.provenance == {"seconds": 1.5}


def test_a_saved_result_has_its_tables_as_csv(tmp_path):
    RESULT.save(tmp_path / "a")
    table = (tmp_path / "a" / "alignment_breakdown.points.csv").read_text()
    assert table == 'task,share,other\nscan,0.1234568,\n"a, b",,\n'


def test_a_table_that_is_no_list_of_rows_is_refused(tmp_path):
    path = RESULT.save(tmp_path)
    content = json.loads(path.read_text())
    content["tables"]["points"] = [{"task": "scan"}]
    path.write_text(json.dumps(content))
    with pytest.raises(CorruptFile, match="no list of rows"):
        Result.load(path)


@pytest.fixture
def current():
    """A result of today's runs and versions."""
    config = registry.load("temporal_share").PROFILES["quick"]
    made = Request("temporal_share", parameters=plain(config)).needed()
    provenance = {name: made[name] for name in ("models", "measured")}
    return replace(RESULT, experiment="temporal_share", config=plain(config), data={}, provenance=provenance)


def test_a_result_of_what_is_current_is_current(current):
    assert current.current


def test_a_result_of_another_run_is_not_current(current):
    assert not replace(current, provenance=current.provenance | {"models": ["of another plan"]}).current


def test_a_result_of_another_version_of_a_measurement_is_not_current(current):
    newer = {name: version + 1 for name, version in current.provenance["measured"].items()}
    assert not replace(current, provenance=current.provenance | {"measured": newer}).current


def test_a_result_with_a_setting_that_is_gone_is_not_current(current):
    assert not replace(current, config=current.config | {"gone": 1}).current


def test_whether_data_is_here_makes_no_result_stale(current, monkeypatch, tmp_path):
    for place in ("ATTNLIB_DATA", "ATTNLIB_CACHE"):
        monkeypatch.setenv(place, str(tmp_path))
    assert current.current


@pytest.mark.parametrize(
    ("known", "place"),
    [
        ({}, "Xeon × 2, 1 thread(s)"),
        ({"instruction_set": None}, "Xeon × 2, 1 thread(s)"),
        ({"instruction_set": "AVX512"}, "Xeon × 2 with AVX512, 1 thread(s)"),
    ],
)
def test_a_result_says_with_what_instructions_a_cpu_trained(known, place):
    history = {"device": "Xeon × 2", "threads": 1, "seconds": 1.0}
    assert _training([history | known])["trained_on"] == [place]


def test_all_trainings_of_a_network_count():
    first = {"device": "EPYC", "threads": 1, "seconds": 2.0, "date": "2026-01-01T00:00:00+00:00"}
    again = first | {"device": "Xeon", "seconds": 3.0, "date": "2026-02-02T00:00:00+00:00"}
    provenance = _training([again | {"earlier": [first]}])
    assert provenance["trained_on"] == ["EPYC, 1 thread(s)", "Xeon, 1 thread(s)"]
    assert provenance["training_seconds"] == 5.0
    assert provenance["trained_between"] == ["2026-01-01", "2026-02-02"]
    assert provenance["networks"] == 1
