"""The command line: quick to answer, and clear about what it cannot do."""

import json
import sys
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from attnlib.cli import app
from attnlib.errors import DataUnavailable
from companion.book import plan
from companion.book.parameters import request_of
from companion.book.project import find, minutes
from companion.cli import _prepared
from companion.data import sources
from companion.data.sources import dataset
from companion.results import registry
from companion.results.request import Request
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
    return project


def attnlib(*words: str):
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def test_help_waits_for_nothing_heavy():
    heavy = "torch", "numpy", "pandas", "matplotlib", "snakemake", "papermill", "jupytext"
    code = (
        "import sys\nfrom attnlib.cli import app\napp(['--help'], standalone_mode=False)\n"
        f"found = [name for name in {heavy!r} if name in sys.modules]\nassert not found, found"
    )
    output = output_of([sys.executable, "-c", code], ROOT)
    for command in ("figures", "run", "book", "serve", "verify", "data"):
        assert f" {command} " in output


@pytest.mark.long
def test_any_name_is_a_name_also_where_the_locale_has_ascii_only(project, tmp_path):
    """Letters of any language, what Snakemake takes for wildcards, and what a shell would run."""
    hostile = "é'{x}{wildcards.run}\"$(touch ran)`touch ran`;touch ran&*,=\\\n-%s"
    names = [hostile % side for side in ("en", "fr", "gone")]
    copied(project.root, "Snakefile", "profiles/default", "notebooks/attend/alignment_breakdown")
    root = project.root.rename(tmp_path / "ordnér-日本")
    write_paper(root / "claims", claim("a-claim", experiment="alignment_breakdown"))
    lines = "".join(f"a{number % 7} b{number // 7}\n" for number in range(40))
    put(root, dict.fromkeys(names[:2], lines))
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "ATTNLIB_ROOT": str(root)}
    run = ["run", "attend/alignment_breakdown", "--explain", "-p", f"source={names[0]}", "-p"]
    command, gone = ([*run, f"target={name}"] for name in names[1:])
    made = "make the run attend-alignment_breakdown-", "nothing was made now"
    cases = (command, 0, *made), (gone, 2, f"cannot read {root}"), (["verify"], 0, "0 changed")
    for words, code, *pieces in cases:
        output = output_of([sys.executable, "-m", "attnlib.cli", *words], root, code=code, **ascii_only)
        assert [piece for piece in pieces if piece not in output] == []
        assert "Traceback" not in output
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


def prepared(project, name: str, *words: str, profile: str = "quick") -> Request:
    """A run of its own, as it is recorded for its job."""
    request = request_of(find(project, name).id, profile, words)
    folder = _prepared(project, request, explain=True).parent
    assert Request.read(folder / "run.json") == request
    return request


def test_a_run_is_recorded_apart_from_the_book_with_the_callers_paths(project, tmp_path):
    put(tmp_path, dict.fromkeys(("my.en", "my.fr"), "a b c\n" * 40))
    words = ["source=my.en", "target=my.fr", "seeds=1"]
    request = prepared(project, "alignment_breakdown", *words)
    parameters = {"source": str(tmp_path / "my.en"), "target": str(tmp_path / "my.fr"), "seeds": 1}
    assert request.parameters == parameters
    assert request.folder == f"build/runs/{request.name}"
    record = project.root / request.folder / "run.json"
    before = record.stat().st_mtime_ns
    assert prepared(project, "attend/alignment_breakdown", *words) == request
    assert record.stat().st_mtime_ns == before  # the workflow depends on it
    assert prepared(project, "alignment_breakdown", *words[:2], "seeds=2").name != request.name
    specs = registry.load("alignment_breakdown").models(request.config)
    assert {spec.task for spec in specs} == {"parallel"}


SHARED = ["classification=amazon", "translation="]


@pytest.mark.parametrize(
    ("profile", "words", "shares"),
    [
        pytest.param("paper", SHARED, True, id="one row"),
        pytest.param("paper", ["classification=", "translation=multi30k_de_en"], True, id="another row"),
        pytest.param("paper", [*SHARED, "steps=7"], False, id="other networks"),
        pytest.param("quick", ["seeds=2"], False, id="quick"),
    ],
)
def test_a_row_of_the_books_tables_shares_its_measurements(project, profile, words, shares):
    put(project.notebooks, {"learn/agreement.md": ""})
    assert plan.shares_archive(prepared(project, "agreement", *words, profile=profile)) is shares


@pytest.mark.parametrize("words", ["book", "run alignment_breakdown", "run alignment_breakdown -p seeds=1"])
def test_explaining_is_a_dry_run_without_downloads(project, monkeypatch, words):
    explained = []
    monkeypatch.setattr("companion.book.plan.bring_data", None)  # nothing is to be downloaded
    monkeypatch.setattr(
        "companion.book.workflow.run", lambda *_, explain, verbose=False: explained.append(explain) or 0
    )
    assert attnlib(*words.split(), "--explain").exit_code == 0
    assert explained == [True]


def test_data_that_is_not_at_hand_is_said_before_anything_is_trained(project):
    request = request_of("attend/alignment_breakdown", "quick", ["task=multi30k_en_fr"])
    with pytest.raises(DataUnavailable, match="attnlib data fetch multi30k"):
        _prepared(project, request, explain=False)
    assert not project.build.exists()


def test_a_readers_own_file_that_is_gone_is_said_before_anything_is_trained(project, tmp_path):
    put(tmp_path, dict.fromkeys(("my.en", "my.fr"), "a b c\n" * 40))
    request = request_of("attend/alignment_breakdown", "quick", ["source=my.en", "target=my.fr"])
    (tmp_path / "my.en").unlink()
    with pytest.raises(DataUnavailable, match=f"cannot read {tmp_path / 'my.en'}"):
        _prepared(project, request, explain=False)


@pytest.fixture
def fetched(project, monkeypatch):
    """The data sets that are downloaded, where none is here and none can be had."""
    names = []

    def fetch(data, *, progress):
        names.append(data.name)
        raise DataUnavailable("cannot download: no network")

    monkeypatch.setattr(sources, "fetch", fetch)
    return names


def test_what_figures_read_is_downloaded(fetched):
    plan.bring_data([request_of("attend/temporal_share", "quick", ["task=multi30k_en_fr,one_to_one"])])
    assert fetched == ["multi30k"]


def test_data_that_cannot_be_downloaded_stop_nothing(fetched, capsys):
    plan.bring_data([request_of("attend/temporal_share", "quick", ["task=multi30k_en_fr,one_to_one"])])
    assert "multi30k: cannot download: no network" in capsys.readouterr().err


@pytest.fixture
def without_result(project):
    """A request for a figure of the book that has a notebook and no result of its own."""
    request = Request("attend/temporal_share")
    put(project.executed("quick"), {"attend/temporal_share.ipynb": "{}"})
    return request


def test_a_figure_made_without_its_data_is_made_again_once_they_are_here(
    project, without_result, monkeypatch
):
    monkeypatch.setattr(plan, "check_data", lambda request: None)
    plan.drop_made_without_data(project, [without_result])
    assert not project.notebook_of(without_result).exists()


def test_a_figure_made_without_its_data_stays_while_they_are_missing(project, without_result):
    plan.drop_made_without_data(project, [without_result])
    assert project.notebook_of(without_result).is_file()


def test_a_figure_with_a_result_of_its_own_stays(project, without_result, monkeypatch):
    monkeypatch.setattr(plan, "check_data", lambda request: None)
    put(project.results("quick"), {"temporal_share.json": "{}"})
    plan.drop_made_without_data(project, [without_result])
    assert project.notebook_of(without_result).is_file()


def test_what_a_request_does_not_read_is_not_downloaded(fetched):
    plan.bring_data(
        [request_of("learn/agreement", "quick", ["classification=known_polarity", "translation="])]
    )
    assert fetched == []


def test_a_run_on_ones_own_labelled_texts_downloads_nothing(fetched, tmp_path):
    rows = "".join(f"a good day number{n}\tgood\na bad day number{n}\tbad\n" for n in range(30))
    put(tmp_path, {"my.tsv": f"text\tlabel\n{rows}"})
    plan.bring_data([request_of("learn/agreement", "quick", ["data=my.tsv"])])
    assert fetched == []


def test_sets_that_a_plan_leaves_out_where_they_are_not_here_are_downloaded(fetched):
    plan.bring_data([Request("learn/resting_attention")])
    assert fetched


def test_nothing_is_downloaded_where_the_data_have_a_folder(fetched, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    plan.bring_data([Request("attend/temporal_share")])
    assert fetched == []


# A published number names the commit that it comes from.


@pytest.fixture
def edited(project, monkeypatch):
    """A paper-sized figure with something to measure, by code that is not committed."""
    monkeypatch.setattr(plan, "missing_of", lambda project, request: {"a run": "asked"})
    monkeypatch.setattr("companion.runs.store.uncommitted", lambda root: ["attnlib/a.py", "attnlib/b.py"])
    monkeypatch.setattr("companion.book.workflow.run", Mock(side_effect=AssertionError("it has begun")))


@pytest.mark.usefixtures("edited")
def test_measuring_by_uncommitted_code_is_said_before_it_begins():
    result = attnlib("run", "alignment_breakdown", "--profile", "paper")
    assert result.exit_code == 2
    assert "not committed (attnlib/a.py and 1 more)" in result.stderr


def test_minutes_include_training_once(tmp_path):
    assert minutes(tmp_path, "x") is None
    # Trained in other processes, in this one, not at all; and what does not say.
    for computing, training, expected in [(30, 60, 1.5), (90, 60, 1.5), (30, 0, 0.5), (None, 0, None)]:
        provenance = {"seconds": computing, "training_seconds": training}
        (tmp_path / "x.provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
        assert minutes(tmp_path, "x") == expected


@pytest.fixture
def mirror(project, tmp_path, monkeypatch):
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path / "mirror"))
    return tmp_path / "mirror"


def test_the_list_of_data_has_the_mirror(mirror):
    listed = attnlib("data", "list")
    assert (listed.exit_code, f"mirror: {mirror}" in listed.output) == (0, True)


@pytest.mark.usefixtures("mirror")
def test_the_list_of_data_has_every_set():
    listed = attnlib("data", "list")
    assert (listed.exit_code, "multi30k" in listed.output) == (0, True)


@pytest.mark.usefixtures("mirror")
def test_the_check_of_data_finds_a_missing_file():
    checked = attnlib("data", "check", "scan")
    assert (checked.exit_code, "missing" in checked.output) == (1, True)


def test_the_check_of_data_finds_another_content(mirror):
    put(mirror / "scan", {dataset("scan").files[0].name: "not this"})
    checked = attnlib("data", "check", "scan")
    assert (checked.exit_code, "expected sha256" in checked.output) == (1, True)
