"""The command line: quick to answer, and clear about what it cannot do."""

import json
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from attnlib.cli import app
from attnlib.errors import DataUnavailable
from companion.book import plan
from companion.book.parameters import with_parameters
from companion.book.plan import PlannedResult, planned, planned_run
from companion.book.project import find, minutes
from companion.cli import _prepared
from companion.data import registry
from companion.data.sources import dataset
from companion.results.request import Request
from companion.runs.spec import ModelSpec
from companion.runs.store import load_task
from tests.companion.book.book_builders import ROOT, copied, output_of
from tests.companion.claims.claims_builders import claim, write_paper
from tests.companion.data.data_builders import put
from tests.tables import beside

REFUSED = beside(__file__, "refused")


@pytest.fixture
def project(project, tmp_path, monkeypatch):
    (project.notebooks / "attend" / "alignment_breakdown.md").touch()
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    # A process asks once, and this one may have asked where there were data.
    monkeypatch.setattr(plan, "_why_no_data", plan._why_no_data.__wrapped__)
    for module in ("results.run", "runs.store"):
        monkeypatch.setattr(f"companion.{module}.load_task", load_task.__wrapped__)
    return project


def attnlib(*words: str):
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def test_help_waits_for_nothing_heavy():
    heavy = "torch", "numpy", "pandas", "matplotlib", "snakemake", "papermill", "jupytext"
    code = (
        "import sys\nfrom attnlib.cli import app\napp(['--help'], standalone_mode=False)\n"
        f"found = [name for name in {heavy!r} if name in sys.modules]\nassert not found, found"
    )
    said = output_of([sys.executable, "-c", code], ROOT)
    for command in ("figures", "run", "book", "serve", "verify", "data"):
        assert f" {command} " in said


@pytest.mark.long
def test_any_name_is_a_name_also_where_the_locale_has_ascii_only(project, tmp_path):
    """Letters of any language, what Snakemake takes for wildcards, and what a shell would run."""
    hostile = "é'{x}{wildcards.run}\"$(touch ran)`touch ran`;touch ran&*,=\\\n-%s"
    names = [hostile % side for side in ("en", "fr", "gone")]
    copied(project.root, "Snakefile", "profiles/default", "notebooks/attend/alignment_breakdown")
    root = project.root.rename(tmp_path / "ordnér-日本")
    write_paper(root / "claims", claim("a-claim", experiment="alignment_breakdown"))
    put(root, dict.fromkeys(names[:2], "a b\n" * 40))
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "ATTNLIB_ROOT": str(root)}
    run = ["run", "attend/alignment_breakdown", "--explain", "-p", f"source={names[0]}", "-p"]
    own, gone = ([*run, f"target={name}"] for name in names[1:])
    made = "dry-run", "compute alignment_breakdown\n", "draw attend/alignment_breakdown --run build/runs/"
    cases = (own, 0, *made), (gone, 2, f"cannot read {root}"), (["verify"], 0, "0 changed")
    for words, code, *said in cases:
        told = output_of([sys.executable, "-m", "attnlib.cli", *words], root, code=code, **ascii_only)
        assert [piece for piece in said if piece not in told] == []
        assert "Traceback" not in told
    (record,) = root.glob("build/runs/*/run.json")
    assert json.loads(record.read_text(encoding="utf-8"))["parameters"]["source"] == str(root / names[0])
    assert not [*root.rglob("ran")]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_cannot_be_done_is_one_line_with_the_way_out(project, monkeypatch, words, message):
    if "/nope" in message:
        monkeypatch.setenv("ATTNLIB_DATA", "/nope")
    result = attnlib(*words.split())
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, line.startswith("error: "), message in line) == (2, True, True), line
    assert not project.build.exists()


def prepared(project, name: str, *words: str, profile: str = "quick"):
    """A run of its own as recorded, and what is planned of it."""
    request = with_parameters(Request(find(project, name).id, profile), words)
    folder = _prepared(project, request, explain=True).parent
    assert Request.read(folder / "run.json") == request
    return request, planned_run(project, folder.name)


def test_a_run_is_recorded_apart_from_the_book_with_the_callers_paths(project, tmp_path):
    put(tmp_path, dict.fromkeys(("my.en", "my.fr"), "a b c\n" * 40))
    words = ["source=my.en", "target=my.fr", "seeds=1"]
    request, result = prepared(project, "alignment_breakdown", *words)
    own = {"source": str(tmp_path / "my.en"), "target": str(tmp_path / "my.fr"), "seeds": 1}
    assert request.parameters == own
    assert request.folder == f"build/runs/{request.name}"
    record = project.root / request.folder / "run.json"
    before = record.stat().st_mtime_ns
    assert prepared(project, "attend/alignment_breakdown", *words)[0] == request
    assert record.stat().st_mtime_ns == before  # the workflow depends on it
    assert prepared(project, "alignment_breakdown", *words[:2], "seeds=2")[0].name != request.name
    assert f"--run {request.folder}/run.json" in result.arguments
    assert {spec.task for spec in result.specs.values()} == {"parallel"}


def test_a_row_of_the_books_tables_shares_its_answers(project):
    put(project.notebooks, {"learn/agreement.md": ""})
    one, other = ["classification=amazon", "translation="], ["classification=", "translation=multi30k_de_en"]
    part = [*one, "long_seeds=2"]
    rows = [("paper", one, True), ("paper", other, True), ("paper", part, False)]
    rows += [("paper", [*one, "steps=7"], False), ("quick", ["seeds=2"], False)]
    for profile, words, archived in rows:
        _, result = prepared(project, "agreement", *words, profile=profile)
        assert result.archived is archived, words
        assert ("--archive results/paper/archive" in result.arguments) is archived


@pytest.mark.parametrize("words", ["book", "run alignment_breakdown", "run alignment_breakdown -p seeds=1"])
def test_explaining_is_a_dry_run_and_downloads_nothing(project, monkeypatch, words):
    explained = []
    monkeypatch.setattr("companion.book.plan.bring_data", None)  # nothing is to be downloaded
    monkeypatch.setattr("companion.book.workflow.run", lambda *_, explain: explained.append(explain) or 0)
    assert attnlib(*words.split(), "--explain").exit_code == 0
    assert explained == [True]


def test_data_that_is_not_at_hand_is_said_before_anything_is_trained(project, tmp_path):
    request = with_parameters(Request("attend/alignment_breakdown"), ["task=multi30k_en_fr"])
    with pytest.raises(DataUnavailable, match="attnlib data fetch multi30k"):
        _prepared(project, request, explain=False)
    assert not project.build.exists()
    book = planned(project, "alignment_breakdown", "quick")
    assert "multi30k" in book.cannot_run
    assert not book.current
    # A reader's own files that are gone are data that is not available here.
    gone = tuple({"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}.items())
    put(project.models / "key", {"history.json": "{}"})  # trained while they were there, to no avail
    for spec, told in (
        (ModelSpec("parallel", "AED", 3, task_options=gone), f"cannot read {tmp_path / 'a'}"),
        (ModelSpec("reordering", "AED", 3), ""),
    ):
        result = PlannedResult(project, Request("temporal_share"))
        result.__dict__["specs"] = {"key": spec}
        assert result.cannot_run.startswith(told)
        assert bool(result.cannot_run) is bool(told)


def test_a_result_is_made_again_where_data_has_come_that_it_reads(project, monkeypatch, tmp_path):
    request = with_parameters(Request("learn/dataset_sizes"), ["absent=skip"])
    before = PlannedResult(project, request).stamp
    put(tmp_path, {"data/sms_spam/sms.tsv": ""})
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path / "data"))
    assert PlannedResult(project, request).stamp != before


def test_what_figures_read_is_downloaded_and_its_lack_stops_nothing(project, monkeypatch, tmp_path, capsys):
    tasks = ("multi30k_en_fr", "one_to_one", "tatoeba_en_fr")
    specs = {task: SimpleNamespace(roots=(registry.builder(task),)) for task in tasks}
    result = SimpleNamespace(current=False, specs=specs)
    fetch = Mock(side_effect=DataUnavailable("cannot download: no network"))
    monkeypatch.setattr(plan, "PlannedResult", lambda *_: result)
    monkeypatch.setattr(plan, "fetch", fetch)
    states = {"multi30k": "missing", "tatoeba": "ok"}
    monkeypatch.setattr(plan, "check", lambda data: [SimpleNamespace(state=states[data.name])])
    plan.bring_data(project, [Request("temporal_share")])
    fetch.assert_called_once_with(dataset("multi30k"))
    assert "multi30k: cannot download: no network" in capsys.readouterr().err
    result.current = True
    plan.bring_data(project, [Request("temporal_share")])
    result.current = False
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    plan.bring_data(project, [Request("temporal_share")])
    fetch.assert_called_once()  # neither for a current result nor in place of a named folder"


def test_minutes_include_training_once(tmp_path):
    assert minutes(tmp_path, "x") is None
    # Trained in other processes, in this one, not at all; and what does not say.
    for computing, training, expected in [(30, 60, 1.5), (90, 60, 1.5), (30, 0, 0.5), (None, 0, None)]:
        found = {"seconds": computing, "training_seconds": training}
        (tmp_path / "x.provenance.json").write_text(json.dumps(found), encoding="utf-8")
        assert minutes(tmp_path, "x") == expected


def test_data_list_and_check(project, tmp_path, monkeypatch):
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path / "mirror"))
    for words, code, told in [
        ("data list", 0, f"mirror: {tmp_path / 'mirror'}"),
        ("data list", 0, "multi30k"),
        ("data check scan", 0, "missing"),
        ("data check scan", 1, "expected sha256"),
    ]:
        if code:
            put(tmp_path / "mirror" / "scan", {dataset("scan").files[0].name: "not this"})
        found = attnlib(*words.split())
        assert (found.exit_code, told in found.output) == (code, True), words
