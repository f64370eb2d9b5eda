"""The command line: quick to answer, and clear about what it cannot do."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlib.cli import app
from attnlib.errors import DataUnavailable
from companion.book.plan import Plan, PlannedResult, Run
from companion.book.project import Project, find, minutes, place_in_paper
from companion.commands import prepare_run
from companion.runs.spec import ModelSpec

ROOT = Path(__file__).parents[2]
NOTEBOOK = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# Alignment

```{code-cell} python3
:tags: [parameters]
profile = "quick"
task = None
seeds = None
steps = None
source = None
target = None
digits = 3
```
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Project:
    root = tmp_path / "checkout"
    (root / "notebooks" / "attend").mkdir(parents=True)
    (root / "Snakefile").touch()
    (root / "notebooks" / "attend" / "alignment_breakdown.md").write_text(NOTEBOOK, encoding="utf-8")
    monkeypatch.setenv("ATTNLIB_ROOT", str(root))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return Project(root)


def attnlib(*words: str):
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


@pytest.mark.parametrize(
    "code", ["import attnlib", "from attnlib.cli import app; app(['--help'], standalone_mode=False)"]
)
def test_help_and_import_wait_for_nothing_heavy(code):
    heavy = "torch", "numpy", "pandas", "matplotlib", "snakemake", "papermill", "jupytext"
    check = (
        f"import sys; found = [name for name in {heavy!r} if name in sys.modules]; assert not found, found"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_names_every_command_in_a_sentence():
    help_text = attnlib("--help").output
    for command in ("figures", "run", "book", "serve", "verify", "data"):
        assert f" {command} " in help_text
    for command in (["run"], ["book"], ["verify"], ["data", "fetch"]):
        assert attnlib(*command, "--help").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "run alignment_brekdown",
            "no figure 'alignment_brekdown'; did you mean 'attend/alignment_breakdown'",
        ),
        ("run alignment_breakdown --profile quik", "no profile 'quik'; did you mean 'quick'"),
        ("run alignment_breakdown -p sed=1", "no parameter 'sed'; did you mean 'seeds'"),
        ("run alignment_breakdown -p seeds", "expected name=value"),
        ("run alignment_breakdown -p seeds=many", "parameter 'seeds' takes a whole number; got 'many'"),
        ("run alignment_breakdown -p digits=many", "parameter 'digits' takes a whole number; got 'many'"),
        ("run alignment_breakdown -p task=scam", "no task 'scam'; did you mean 'scan'"),
        ("run alignment_breakdown -p task=scam --explain", "no task 'scam'; did you mean 'scan'"),
        ("run alignment_breakdown -p profile=paper", "say --profile paper instead"),
        ("data check scam", "no data set 'scam'; did you mean 'scan'"),
        ("serve", "no site at"),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_way_out(project, words, message):
    result = attnlib(*words.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert not project.build.exists()


def test_an_unknown_command_is_refused():
    assert attnlib("figurs").exit_code == 2


def test_a_run_is_recorded_apart_from_the_book_with_the_callers_paths(project, tmp_path):
    for name in ("my.en", "my.fr"):
        (tmp_path / name).write_text("a b c\n" * 40, encoding="utf-8")
    figure = find(project, "alignment_breakdown")
    words = {"source": "my.en", "target": "my.fr", "seeds": "1", "digits": "4"}
    run = prepare_run(project, figure, "quick", words)
    folder = Path(run.folder)
    assert folder.parent == project.build / "runs"
    assert folder.name.startswith("attend-alignment_breakdown-")
    assert run.parameters == {
        "source": str(tmp_path / "my.en"), "target": str(tmp_path / "my.fr"), "seeds": 1, "digits": 4,
    }  # fmt: skip
    assert Run.read(folder / "run.json") == run
    assert prepare_run(project, figure, "quick", words) == run
    assert prepare_run(project, figure, "quick", words | {"seeds": "2"}).folder != run.folder

    planned = Plan(project, "quick", run).result_of(figure.id)
    assert planned.path == f"build/runs/{folder.name}/alignment_breakdown.json"
    assert "-p seeds=1" in planned.arguments
    assert "digits" not in planned.arguments  # the notebook's own, not the experiment's
    assert {spec.task for spec in planned.specs.values()} == {"parallel"}


@pytest.mark.parametrize(
    ("profile", "words", "archived"),
    [
        ("paper", {"classification": "amazon", "translation": ""}, True),
        ("paper", {"classification": "", "translation": "multi30k_de_en"}, True),
        ("paper", {"classification": "amazon", "translation": "", "long_seeds": "2"}, False),  # part of a row
        ("paper", {"classification": "amazon", "translation": "", "steps": "7"}, False),
        ("quick", {"seeds": "2"}, False),
    ],
)
def test_a_row_of_the_books_tables_shares_its_answers(project, profile, words, archived):
    (project.notebooks / "learn").mkdir()
    shutil.copy(ROOT / "notebooks" / "learn" / "agreement.md", project.notebooks / "learn")
    run = prepare_run(project, find(project, "agreement"), profile, words, explain=True)
    planned = Plan(project, profile, run).result_of("learn/agreement")
    assert planned.archived is archived
    assert ("--archive results/paper/archive" in planned.arguments) is archived


def test_a_run_starts_in_the_folder_it_was_last_asked_from(project, tmp_path, monkeypatch):
    figure = find(project, "alignment_breakdown")
    first = prepare_run(project, figure, "quick", {"digits": "4"}, explain=True)
    record = Path(first.folder) / "run.json"
    before = record.stat().st_mtime_ns
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    second = prepare_run(project, figure, "quick", {"digits": "4"}, explain=True)
    assert (first.folder, first.caller) == (second.folder, str(tmp_path))
    assert Run.read(record).caller == str(tmp_path / "elsewhere")
    assert record.stat().st_mtime_ns == before  # the workflow depends on it
    (record.parent / "caller.txt").unlink()
    assert Run.read(record).caller == first.folder


def test_explaining_downloads_nothing_and_says_what_cannot_be_run(project, monkeypatch):
    from companion.book import workflow

    def refuse(*_):
        raise AssertionError("nothing is to be downloaded")

    note = "cannot be run: data: alignment_breakdown (quick): not at hand"
    monkeypatch.setattr("companion.commands.bring_data", refuse)
    monkeypatch.setattr(workflow, "planned", lambda *_: ([workflow.Job("site", "", "not made yet")], [note]))
    for words in (
        "book",
        "run alignment_breakdown",
        "run alignment_breakdown -p digits=4",
    ):
        result = attnlib(*words.split(), "--explain")
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines() == [note, "build book  (not made yet)", "1 job would be done."]


@pytest.mark.parametrize("words", ["book", "book --explain", "run alignment_breakdown"])
def test_a_mirror_that_is_not_there_is_one_line(project, monkeypatch, words):
    monkeypatch.setenv("ATTNLIB_DATA", "/nope")
    result = attnlib(*words.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ATTNLIB_DATA=/nope is not a folder")
    assert len(result.stderr.splitlines()) == 1
    assert not project.build.exists()


def test_data_that_is_not_at_hand_is_said_before_anything_is_trained(project):
    figure = find(project, "alignment_breakdown")
    with pytest.raises(DataUnavailable, match="attnlib data fetch multi30k"):
        prepare_run(project, figure, "quick", {"task": "multi30k_en_fr"})
    assert not (project.build / "runs").exists()
    book = Plan(project, "quick").result_of(figure.id)
    assert "multi30k" in book.cannot_run
    assert not book.current


def test_a_readers_own_files_that_are_gone_are_data_that_is_not_at_hand(tmp_path):
    gone = tuple({"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}.items())
    own = ModelSpec("parallel", "AED", 3, task_options=gone)
    planned = PlannedResult("x", "quick", "x.json", {"key": own}, "", False, tmp_path)
    assert f"cannot read {tmp_path / 'a'}" in planned.cannot_run
    by_rule = replace(planned, specs={"key": ModelSpec("reordering", "AED", 3)})
    assert by_rule.cannot_run == ""


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [
        ({"seconds": 30, "training_seconds": 60}, 1.5),  # the workflow trained, in other processes
        ({"seconds": 90, "training_seconds": 60}, 1.5),  # one process did all
        ({"seconds": 30}, 0.5),
        ({}, None),
    ],
)
def test_minutes_include_training_once(project, provenance, expected):
    folder = project.results("quick")
    assert minutes(folder, "alignment_breakdown") is None
    folder.mkdir(parents=True)
    path = folder / "alignment_breakdown.provenance.json"
    path.write_text(json.dumps(provenance), encoding="utf-8")
    assert minutes(folder, "alignment_breakdown") == expected


def test_the_place_in_the_paper_is_read_without_importing_the_experiment():
    project = Project(ROOT)
    from notebooks.attend.alignment_breakdown import experiment as alignment_breakdown

    figure = find(project, "attend/alignment_breakdown")
    assert place_in_paper(figure, project) == alignment_breakdown.PLACE


def test_data_list_and_check(project, tmp_path, monkeypatch):
    mirror = tmp_path / "mirror"
    (mirror / "sms_spam").mkdir(parents=True)
    monkeypatch.setenv("ATTNLIB_DATA", str(mirror))
    listed = attnlib("data", "list")
    assert listed.exit_code == 0
    assert f"mirror: {mirror}" in listed.output.replace("\n", "")
    assert "multi30k" in listed.output
    missing = attnlib("data", "check", "scan")
    assert missing.exit_code == 0
    assert "missing" in missing.output
    from companion.data.sources import dataset

    path = mirror / "scan" / dataset("scan").files[0].name
    path.parent.mkdir(parents=True)
    path.write_text("not this")
    corrupt = attnlib("data", "check", "scan")
    assert corrupt.exit_code == 1
    assert "expected sha256" in corrupt.output
