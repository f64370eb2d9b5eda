"""The golden test: every committed result of the paper profile comes out of the archive, byte for byte."""

import json
import math
import os
from dataclasses import replace

import pytest

from companion.paths import ARCHIVE
from companion.paths import PAPER as RESULTS
from companion.results.answer import all_measurements, measurements_of_key
from companion.results.committed import altered, committed
from companion.results.recompute import recomputed
from companion.results.result import Result
from companion.runs.archive import Archive
from companion.runs.identity import run_id
from tests.companion.book.book_builders import ROOT, output_of

pytestmark = pytest.mark.slow
KINDS = (".csv", ".datapackage.json")  # files beside a result: its tables, and what their columns are


@pytest.fixture(scope="module")
def archive():
    return Archive(ARCHIVE)


@pytest.mark.parametrize("name", committed())
def test_a_committed_result_comes_out_of_the_archive(name, archive, tmp_path):
    # Distances in published texts are counted, not measured of networks.
    if name == "source_reversal" and not os.environ.get("ATTNLIB_DATA"):
        pytest.skip("reads published texts: set ATTNLIB_DATA")
    held, today = Result.load(RESULTS / f"{name}.json"), recomputed(name, archive)
    assert not today.missing or today.missing == held.missing
    assert today.provenance["models"] == held.models
    assert today.provenance["measured"] == held.provenance["measured"]
    path = replace(today, data=held.data, missing=held.missing).save(tmp_path)
    assert path.read_text(encoding="utf-8") == (RESULTS / path.name).read_text(encoding="utf-8")
    beside, committed_beside = (
        {file.name: file.read_bytes() for file in folder.glob(f"{name}.*") if file.name.endswith(KINDS)}
        for folder in (tmp_path, RESULTS)
    )
    assert beside == committed_beside


@pytest.mark.parametrize("name", committed())
def test_no_interval_of_a_committed_result_is_upside_down(name):
    text, objects = (RESULTS / f"{name}.json").read_text(encoding="utf-8"), []
    json.loads(text, object_hook=objects.append)  # every object
    intervals = [entry for entry in objects if entry.get("low") is not None]
    # A bound has no upper end: what is never reached is "at least".
    ends = [(entry["low"], math.inf if entry["high"] is None else entry["high"]) for entry in intervals]
    assert [(low, high) for low, high in ends if not low <= high] == []


def test_todays_code_knows_all_of_the_archive(archive):
    every = [measurement for group in all_measurements("paper").values() for measurement in group]
    assert list(archive.unknown(every)) == []


def test_every_run_of_the_archive_can_be_measured_again_by_its_key(archive):
    models = all_measurements("paper")
    unasked = [run for run in archive.runs() if run.id not in models]
    assert unasked  # heads that were tried alone, for one: no figure asks for them
    for run in unasked:
        again = measurements_of_key(run.id, models, archive)
        assert {run_id(measurement.spec) for measurement in again} == {run.id}
        archived = {measurement.id: archive.get(measurement) for measurement in again}
        assert len(archived) == len(run.measured)
        assert None not in archived.values(), run.id


def test_every_network_of_a_committed_result_is_in_the_archive(archive):
    archived = {run.line["run"] for run in archive.runs()}
    for name in committed():
        assert set(Result.load(RESULTS / f"{name}.json").models) <= archived, name


def test_no_committed_file_differs_from_its_checksum():
    assert list(altered()) == []


def test_commits_that_are_named_are_in_the_history(archive):
    """Whoever wants the code behind a number can check it out: no commit that was rewritten since."""
    if output_of(["git", "rev-parse", "--is-shallow-repository"], ROOT) == "true\n":
        pytest.skip("a shallow clone has no history")
    made = {name: Result.load(RESULTS / f"{name}.json").provenance for name in committed()}
    made |= {run.line["run"]: run.line.get("history", {}) for run in archive.runs()}
    named = {name: provenance["commit"] for name, provenance in made.items() if provenance.get("commit")}
    history = set(output_of(["git", "rev-list", "HEAD"], ROOT).split())
    assert set(committed()) <= named.keys()
    assert {name: commit for name, commit in named.items() if commit not in history} == {}
    assert [name for name, provenance in made.items() if provenance.get("dirty")] == []
