"""What a notebook opens and shows: the right result first, its files beside it, the book untouched."""

import csv
from dataclasses import replace
from unittest.mock import Mock

import pandas as pd
import pytest
from matplotlib.figure import Figure

from attnlib import sealed
from attnlib.errors import BadInput, DataUnavailable
from companion.book import notebook
from companion.book.notebook import BOTH_PROFILES, Page, described, instrument, open_page
from companion.book.parameters import request_of
from companion.book.prose import Book
from companion.book.site import closing
from companion.results import registry
from companion.results.config import plain
from companion.results.result import Result
from companion.runs.identity import run_id
from companion.runs.store import Store
from tests.companion.data.data_builders import put
from tests.tables import beside

GIVEN = beside(__file__, "notebook")
QUICK = Result(**GIVEN["result"])
PAPER = replace(QUICK, profile="paper")
NAMES = {"profile": "quick", "seeds": None, "In": ["a cell"]}
FIGURE = "attend/temporal_share"


@pytest.fixture
def made(project, monkeypatch):
    """An empty checkout, with the experiments faked, as (profile, folder, parameters) of each run."""
    monkeypatch.delenv("ATTNLIB_FIGURE_FILES", raising=False)
    monkeypatch.delenv("ATTNLIB_REQUEST", raising=False)
    calls = []

    def fake_run(request, *, out, models, report):
        calls.append((request.profile, out, request.parameters))
        origin = {name: request.needed()[name] for name in ("models", "measured")}
        result = replace(QUICK, profile=request.profile, config=plain(request.config), provenance=origin)
        result.save(out)
        return result

    monkeypatch.setattr("companion.results.run.run", fake_run)
    return calls


def test_nothing_current_is_made_again(made, project):
    PAPER.save(project.results("paper"))
    for _ in range(2):
        open_page(FIGURE, NAMES | {"task": None})
        assert made == [("quick", project.results("quick"), {})]


def test_the_committed_result_leads_in_the_book(made, project):
    PAPER.save(project.results("paper"))
    page = open_page(FIGURE, NAMES | {"task": None})
    assert (page.leading.profile, page.second.profile) == ("paper", "quick")
    assert "Shown: the paper profile (3 seeds, width 64). Computed with this page: " in page.note()
    assert BOTH_PROFILES.sub("", f"{page.note()}\nmore\n") == "more\n"


def test_a_run_with_parameters_is_made_in_its_folder(made, project):
    open_page(FIGURE, NAMES | {"task": "scan"})
    (_, out, parameters), *_ = made
    request = request_of(FIGURE, "quick", ["task=scan"])  # `attnlib run -p task=scan`
    assert (out, parameters) == (project.build / "runs" / request.name, request.parameters)
    assert not project.results("quick").exists()


def test_a_run_with_parameters_shows_itself_alone(made, project):
    PAPER.save(project.results("paper"))
    page = open_page(FIGURE, NAMES | {"task": "scan"})
    assert (page.leading.profile, page.second) == ("quick", None)


def test_a_run_with_parameters_says_whose_numbers_the_text_has(made, project):
    PAPER.save(project.results("paper"))
    page = open_page(FIGURE, NAMES | {"task": "scan"})
    note = "Numbers in the text are the book's, at the paper profile; the tables and figures"
    assert note in page.note()
    assert note not in open_page(FIGURE, NAMES).note()


def test_a_run_with_a_misspelt_task_is_refused(made, project):
    with pytest.raises(BadInput, match="did you mean 'scan'"):
        open_page(FIGURE, NAMES | {"task": "scam"})


def test_without_data_the_committed_result_stands_in(made, project, monkeypatch):
    unavailable = DataUnavailable("multi30k/train.en is not available here")
    monkeypatch.setattr("companion.results.run.run", Mock(side_effect=unavailable))
    with pytest.raises(DataUnavailable, match="not available here"):
        _ = open_page(FIGURE, NAMES).leading
    PAPER.save(project.results("paper"))
    page = open_page(FIGURE, NAMES)
    assert (page.leading.profile, page.second) == ("paper", None)
    assert "Cannot be run here: data. multi30k/train.en is not available here" in page.note()


def test_a_result_of_other_data_is_not_current(made, tmp_path, monkeypatch):
    """The same file names in another folder, or the same file with another content, are another corpus."""
    names = NAMES | {"source": "my.en", "target": "my.fr"}
    for place in ("a", "b", "b"):
        put(tmp_path / place, {"my.en": place, "my.fr": place})
        monkeypatch.chdir(tmp_path / place)
        open_page(FIGURE, names)
    (_, first, _), (_, second, _) = made
    assert first != second, "each folder's files are a run of their own"
    (tmp_path / "b" / "my.fr").write_text("changed")
    open_page(FIGURE, names)
    assert len(made) == 3


@pytest.fixture
def displayed(tmp_path, monkeypatch):
    """What a page shows of a figure: the data and metadata of each output; files are in `files`."""
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, **options: outputs.append((data, options)))
    page = Page("attend/x", QUICK, None, tmp_path / "files")
    page.show(Figure(figsize=(1, 1)), "name", alt="what it shows", caption="under it", data=[{"a": 1 / 3}])
    return outputs


def test_a_page_has_the_tables_of_its_result(tmp_path):
    page = Page("attend/x", QUICK, None, tmp_path)
    assert page.frame("points").to_dict("list") == {"a": [1], "b": [None]}


def test_a_table_that_a_result_lacks_is_empty(tmp_path):
    assert Page("attend/x", QUICK, None, tmp_path).frame("nothing").empty


def test_show_displays_an_image_with_its_texts(displayed):
    (data, options), *_ = displayed
    assert options["metadata"] == {"alt": "what it shows", "caption": "under it", "name": "name"}
    assert set(data) == {"image/svg+xml", "image/png", "text/plain"}


def test_show_leaves_the_image_that_it_displays(displayed, tmp_path):
    (data, _), *_ = displayed
    assert (tmp_path / "files" / "name.svg").read_text() == data["image/svg+xml"]
    assert (tmp_path / "files" / "name.png").read_bytes() == data["image/png"]


def test_show_leaves_the_data_as_csv(displayed, tmp_path):
    with (tmp_path / "files" / "name.csv").open() as table:
        assert list(csv.DictReader(table)) == [{"a": "0.3333333"}]


@pytest.mark.parametrize(
    ("parameters", "with_png"),
    [
        pytest.param({}, ["first"], id="the book's"),
        pytest.param({"seeds": 2}, ["first", "second"], id="a run of one's own"),
    ],
)
def test_which_figures_of_a_page_have_a_png(tmp_path, parameters, with_png):
    page = Page("attend/x", QUICK, None, tmp_path, parameters=parameters)
    for name in ("first", "second"):
        page.show(Figure(figsize=(1, 1)), name, **GIVEN["texts"])
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == with_png
    assert sorted(path.stem for path in tmp_path.glob("*.svg")) == ["first", "second"]


@pytest.mark.parametrize(("text_of", "alt", "caption", "notes"), GIVEN["told"])
def test_what_follows_is_not_said_of_a_run_of_its_own(tmp_path, monkeypatch, text_of, alt, caption, notes):
    display = Mock()
    monkeypatch.setattr("IPython.display.display", display)
    page = Page("attend/x", QUICK, None, tmp_path, text_of=text_of)
    axes = (figure := Figure(figsize=(1, 1))).subplots()
    axes.annotate("chance", (0, 0))
    axes.annotate("it rises", (0, 0), (0.5, 0.5), arrowprops={"arrowstyle": "->"})
    page.show(figure, "a_name", **GIVEN["texts"])
    metadata = display.call_args.kwargs["metadata"]
    assert metadata == {"alt": alt, "caption": caption, "name": "a_name"}
    assert [note.get_text() for note in axes.texts] == notes


def test_a_note_says_what_was_made_of_the_readers_text(made, tmp_path):
    put(
        tmp_path,
        {name: "".join(f"a {letter}\n" for letter in "bcdefghijk" * 3) for name in ("my.en", "my.fr")},
    )
    names = {"source": str(tmp_path / "my.en"), "target": str(tmp_path / "my.fr"), "tokenizer": "spaces"}
    assert "27 to train on and 3 held out" in open_page(FIGURE, NAMES | names | {"task": None}).note()


def test_a_note_says_how_well_networks_have_learned_the_readers_text(made, tmp_path, project):
    """Means over the networks of a kind, of what their trainings recorded."""
    put(tmp_path, {"my.en": "a\n" * 10, "my.fr": "b\n" * 10})
    files = NAMES | {name: str(tmp_path / f"my.{end}") for name, end in (("source", "en"), ("target", "fr"))}
    names = files | {"seeds": 2, "task": None}
    assert "held-out" not in open_page(FIGURE, names).note(), "their records are gone"
    request = request_of(FIGURE, "quick", [f"{n}={files[n]}" for n in ("source", "target")] + ["seeds=2"])
    for spec in registry.load("temporal_share").models(request.config):
        right = {"AED": 0.6, "AO": 0.3}[spec.architecture] + 0.1 * spec.seed
        record = {"held_out": {"token_accuracy": right, "loss": 3.0 + spec.seed, "exact_match": 0.0}}
        record |= {"seconds": 1.0, "threads": 1, "device": "cpu"}
        path = project.models / run_id(spec) / "history.json"
        sealed.write_json_atomic(path, record)
    sentence = (
        "AED-gru predicts 65% of the words, with a loss of 3.50 nats; AO predicts 35% of the words, with a"
    )
    assert sentence in open_page(FIGURE, names).note()
    result = replace(QUICK, values={"parallel": {"AO": {"bleu": {"value": 12.34}}}})
    specs = registry.load("temporal_share").models(request.config)
    assert "nats and a BLEU of 12.3." in notebook.quality(result, specs, Store(project.models))
    assert "held-out" not in open_page(FIGURE, NAMES | {"task": "scan"}).note()


def test_a_note_counts_networks_where_there_are_no_seeds():
    result = replace(QUICK, config=QUICK.config | {"seeds": None}, provenance={"models": ["a", "b"]})
    assert "(2 trained networks" in described(result)


def test_a_note_tells_what_has_not_run():
    assert described(replace(QUICK, missing=["scan AO: 3"])).endswith("; not run yet: scan AO: 3)")


def test_a_note_counts_what_has_not_run_where_it_is_much():
    kinds = ["scan AO: 3", "scan AED-gru: 4", "reversal AO: 1", "reversal AED-gru: 2"]
    assert "not run yet: 10 models of 4 kinds)" in described(replace(QUICK, missing=kinds))


def test_a_note_tells_the_parameters_of_a_run_of_its_own():
    parameters = {"seeds": 1, "source": "/some/where/my.en", "steps": 5}
    assert "(1 seed, width 64; seeds = 1; source = my.en; steps = 5)" in described(
        replace(QUICK, config=QUICK.config | parameters), parameters
    )


def test_a_request_that_is_handed_down_overrules_the_cell(made, project, monkeypatch):
    request = request_of(FIGURE, "quick", ["task=scan"])
    monkeypatch.setenv("ATTNLIB_REQUEST", request.as_text())
    open_page(FIGURE, {})
    assert made == [("quick", project.root / request.folder, request.parameters)]


def test_a_page_tells_where_its_numbers_come_from(tmp_path):
    origin = {"commit": "abc", "dirty": True, "device": "<cpu>", "training_seconds": 600.0, "networks": 130}
    origin["measured"] = {"alignment_terms": 2}
    replace(PAPER, provenance=origin).save(tmp_path / "results" / "paper")
    text = closing(FIGURE, Book(tmp_path), [])
    for piece in (
        "other runs or versions are asked for",
        "&lt;cpu&gt;",
        "abc, with changes not",
        "130 networks in 10 min",
    ):
        assert piece in text


def test_the_table_of_an_instrument_has_no_minus_before_a_zero():
    table = pd.DataFrame({"task": ["one", "two"], "share": [-0.0, -0.25]}).set_index("task")
    shown = instrument("dial", [], table, label="A dial")
    assert "<td>0.00</td>" in shown


def test_the_table_of_an_instrument_has_a_minus():
    table = pd.DataFrame({"task": ["one", "two"], "share": [-0.0, -0.25]}).set_index("task")
    shown = instrument("dial", [], table, label="A dial")
    assert "<td>−0.25</td>" in shown
