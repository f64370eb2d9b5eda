"""What a notebook opens and shows: the right result first, its files beside it, the book untouched."""

import csv
import json
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from attnlib.errors import DataUnavailable, UnknownName
from companion.book import notebook
from companion.book.notebook import Page, described, open_page
from companion.book.site import origin_markdown
from companion.results.result import Result

QUICK = Result(
    "temporal_share",
    "quick",
    {"task": ["scan"], "seeds": 3, "width": 64},
    {"scan": {"AO": {"x": {"value": -0.123, "low": -0.2, "high": -0.04, "n": 3}, "coverage": 0.5}}},
    {"points": []},
    {},
)
PAPER = replace(QUICK, profile="paper")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty checkout, with the experiments faked: running one is another test's business."""
    (tmp_path / "Snakefile").touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setenv("ATTNLIB_ROOT", str(tmp_path))
    for name in ("ATTNLIB_RUN_DIR", "ATTNLIB_FIGURE_FILES"):
        monkeypatch.delenv(name, raising=False)
    calls = []

    def fake_run(request, *, out, models, report):
        calls.append((request.profile, out, request.parameters))
        result = replace(QUICK, profile=request.profile)
        result.save(out)
        return result

    monkeypatch.setattr(notebook, "run", fake_run)
    monkeypatch.setattr(notebook, "_current", lambda *arguments: None)
    return tmp_path, calls


def test_the_committed_result_leads_in_the_book(project):
    root, calls = project
    PAPER.save(root / "results" / "paper")
    page = open_page("attend/temporal_share", task=None)
    assert calls == [("quick", root / "build" / "results" / "quick", {})]
    assert (page.leading.profile, page.second.profile) == ("paper", "quick")
    assert "Shown first: the paper profile (3 seeds, width 64; " in page.note()


def test_a_run_of_its_own_shows_and_touches_itself_alone(project, monkeypatch):
    root, calls = project
    PAPER.save(root / "results" / "paper")
    page = open_page("attend/temporal_share", task="scan")
    (_, out, overrides), *_ = calls
    assert overrides == {"task": "scan"}
    assert out.parent == root / "build" / "runs"
    assert (page.leading.profile, page.second) == ("quick", None)
    monkeypatch.setenv("ATTNLIB_RUN_DIR", str(root / "mine"))
    open_page("attend/temporal_share", task="scan")
    assert (root / "mine" / "temporal_share.json").is_file()
    assert not (root / "build" / "results").exists()


def test_a_notebook_hands_over_its_parameters_and_its_own_run_says_whose_numbers_the_text_has(project):
    root, calls = project
    PAPER.save(root / "results" / "paper")
    source = root / "notebooks" / "attend" / "temporal_share.md"
    source.parent.mkdir()
    source.write_text("It is {num}`scan.AO.x`.\n")
    names = {"profile": "quick", "task": "scan", "seeds": None, "In": ["a cell"]}
    page = open_page("attend/temporal_share", names)
    assert calls[-1][2] == {"task": "scan"}
    told = "Numbers in the text are the book's, at the paper profile; the tables and figures"
    assert told in page.note()
    assert told not in open_page("attend/temporal_share", names | {"task": None}).note()


def test_a_table_is_a_frame():
    page = Page("attend/x", replace(QUICK, tables={"points": [{"a": 1, "b": None}]}), None, None)
    assert page.frame("points").to_dict("list") == {"a": [1], "b": [None]}
    assert page.frame("nothing").empty


def test_without_data_the_committed_result_stands_in(project, monkeypatch):
    root, _ = project

    def unavailable(*arguments, **settings):
        raise DataUnavailable("multi30k/train.en is not at hand")

    monkeypatch.setattr(notebook, "run", unavailable)
    page = open_page("attend/temporal_share")
    with pytest.raises(DataUnavailable, match="not at hand"):
        _ = page.leading
    PAPER.save(root / "results" / "paper")
    page = open_page("attend/temporal_share")
    assert page.leading.profile == "paper"
    assert page.second is None
    assert "Cannot be run here: data. multi30k/train.en is not at hand" in page.note()


def test_a_result_of_other_data_is_not_current(project, monkeypatch):
    """The same file names in another folder, or the same file with another content, are another corpus."""
    monkeypatch.undo()
    root, _ = project
    monkeypatch.setenv("ATTNLIB_ROOT", str(root))
    made = []

    def fake_run(request, *, out, models, report):
        from companion.results import registry
        from companion.results.config import plain
        from companion.results.run import code_of
        from companion.runs.keys import model_key

        name, config = request.experiment, request.config
        specs = registry.load(name).models(config)
        made.append(out)
        origin = {"code": code_of(name), "models": [model_key(s) for s in specs]}
        result = replace(QUICK, config=plain(config), provenance=origin)
        result.save(out)
        return result

    monkeypatch.setattr(notebook, "run", fake_run)
    for place in ("a", "b"):
        (root / place).mkdir()
        for name in ("my.en", "my.fr"):
            (root / place / name).write_text(place)
        monkeypatch.chdir(root / place)
        open_page("attend/temporal_share", source="my.en", target="my.fr")
    open_page("attend/temporal_share", source="my.en", target="my.fr")
    assert len(made) == 2
    assert made[0] != made[1], "each folder's files are a run of their own"
    (root / "b" / "my.fr").write_text("changed")
    open_page("attend/temporal_share", source="my.en", target="my.fr")
    assert len(made) == 3


def test_an_unknown_setting_is_refused_before_anything_runs(project):
    with pytest.raises(UnknownName, match="did you mean 'task'"):
        open_page("attend/temporal_share", tusk="scan")


def test_show_leaves_svg_png_and_csv_and_displays_one_image_with_its_texts(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **told: shown.append((data, told)))
    page = Page("attend/x", QUICK, None, tmp_path / "files")
    figure = Figure(figsize=(1, 1))
    page.show(figure, "name", alt="what it shows", caption="under it", data=[{"a": 1 / 3}])
    (data, told), *_ = shown
    assert told["metadata"] == {"alt": "what it shows", "caption": "under it", "name": "name"}
    assert set(data) == {"image/svg+xml", "image/png", "text/plain"}
    assert (tmp_path / "files" / "name.svg").read_text() == data["image/svg+xml"]
    assert (tmp_path / "files" / "name.png").read_bytes() == data["image/png"]
    with (tmp_path / "files" / "name.csv").open() as table:
        assert list(csv.DictReader(table)) == [{"a": "0.3333333"}]


def test_a_note_tells_what_is_stale_and_what_differs_from_the_profile():
    from companion.results.config import plain
    from notebooks.shared.ladder import PROFILES

    standard = replace(QUICK, config=plain(PROFILES["quick"]))
    several = replace(standard, provenance={"models": ["a", "b"], "code": "0"}, missing=["scan AO: 3"])
    assert described(several) == (
        "the quick profile (2 trained networks; stale: its code has changed since; not run yet: scan AO: 3)"
    )
    many = replace(
        standard, missing=["scan AO: 3", "scan AED-gru: 4", "reversal AO: 1", "reversal AED-gru: 2"]
    )
    assert "not run yet: 10 models of 4 kinds)" in described(many)
    own = replace(standard, config=standard.config | {"seeds": 1, "steps": 5, "source": "/some/where/my.en"})
    made_before = replace(own, config=dict(sorted(own.config.items())), provenance={"code": "0"})
    assert "(1 seed; seeds = 1; source = my.en; steps = 5; stale" in described(made_before)


def test_a_page_tells_where_its_numbers_come_from(project):
    root, _ = project
    path = replace(PAPER, provenance={"commit": "abc", "dirty": True, "date": "2026-01-02", "device": "<cpu>",
                                      "packages": {"torch": "2"}, "training_seconds": 600.0,
                                      "trained_on": ["cpu, 1 thread(s)"]}).save(
        root / "results" / "paper"
    )  # fmt: skip
    text = origin_markdown("attend/temporal_share", root)
    for piece in (
        "abc, with changes not committed",
        "2026-01-02",
        "&lt;cpu&gt;",
        "stale: it has changed",
        "10 min for 0 models, on cpu, 1 thread(s)",
    ):
        assert piece in text
    beside = path.with_name("temporal_share.provenance.json")  # of more networks than were known in advance
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"networks": 130}), encoding="utf-8")
    assert "10 min for 130 models, on cpu" in origin_markdown("attend/temporal_share", root)
    assert json.loads(path.read_text())["profile"] == "paper"
    assert "## Verdicts" not in text, "there are no claims in this checkout"
