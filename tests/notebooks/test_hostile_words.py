"""Words of a reader's own texts are words on every page: none is markup, whatever it looks like."""

import json
import re
from dataclasses import replace
from unittest.mock import patch

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from IPython.core.formatters import DisplayFormatter
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from companion.book import notebook
from companion.book.parameters import path_fields
from companion.book.project import Project, discover
from companion.results import registry
from companion.results.request import Request
from companion.results.run import run
from tests.companion.book.book_builders import built
from tests.faults.conftest import COUNTS
from tests.notebooks.figure_builders import tiny
from tests.notebooks.test_every_figure import ROOT, shown_by_cells

FORMS = (
    "<x-{}>", '"><x-{}>', "'><x-{}/onload=alert(1)>", "</td></table><x-{}>", "</script><x-{}>", "--><x-{}>",
    "]]><x-{}>", "</text></svg><x-{}>", "![x-{}](javascript:alert(1))", "[x-{}](javascript:alert(1))",
    "`<x-{}>", "|<x-{}>|", "$<x-{}>$", "</pre><x-{}>", "\\<x-{}>", "&lt;x-{}&gt;", "{{{{x-{}}}}}",
)  # fmt: skip
HOSTILE = [form.format(number) for number, form in enumerate(FORMS * 3)][:50]
TASKS = {"task", "varied", "tokens_of", "translation", "classification"}  # which a reader's own files are
SHOWING = {"attend/readout"}  # the others show places, numbers and counts alone
OWN = {
    figure.id: registry.load(figure.experiment).PROFILES["quick"]
    for figure in discover(Project(ROOT)).values()
    if "source" in path_fields(registry.load(figure.experiment).PROFILES["quick"])
}


def parsed(text):
    return BeautifulSoup(text, "html.parser", multi_valued_attributes=None)


def hostile(page):
    """What of a page is no text, and came from a word."""
    markup = [own for tag in page.find_all(True) for own in (tag.name, *tag.attrs, *tag.attrs.values())]
    return [own for own in markup if re.match(r"x-\d|javascript:|onload", own)]


def page_of(displayed, folder):
    """The page of a notebook with these outputs: as Jupyter writes it, and as the book's site has it."""
    bundles = [own if isinstance(own, dict) else DisplayFormatter().format(own)[0] for own in displayed]
    texts = [{kind: own for kind, own in bundle.items() if isinstance(own, str)} for bundle in bundles]
    outputs = [new_output("display_data", data=own) for own in texts]
    notebook = new_notebook(cells=[new_code_cell("shown", outputs=[own]) for own in outputs])
    notebook.cells.insert(0, new_markdown_cell("# Page"))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    folder.mkdir()
    nbformat.write(notebook, folder / "index.ipynb")
    site = (built(folder) / "index.html").read_text(encoding="utf-8")
    return [HTMLExporter().from_notebook_node(notebook)[0], site]


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("figure", OWN)
def test_two_files_are_taken_at_either_profile(figure, profile, tmp_path):
    paths = {name: tmp_path / name for name in ("source", "target")}
    for path in paths.values():
        path.write_text("".join(f"a b{number}\n" for number in range(20)))
    assert Request(figure, profile, paths).config.source == paths["source"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:It looks like you're using an HTML parser")  # of drawings, as a page does
@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("figure", OWN)
def test_fifty_hostile_words_are_words(figure, tmp_path, models, monkeypatch):
    monkeypatch.setattr("notebooks.attend.readout.experiment.LISTED", 99)
    for name, common in (("source", "der hund"), ("target", "the dog")):
        lines = [f"{common} {copy} {word}" for copy in range(8) for word in HOSTILE]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    experiment = figure.rpartition("/")[2]
    given = {name: str(tmp_path / name) for name in ("source", "target")}
    small = {name: value for name, value in vars(tiny(experiment)).items() if name not in TASKS}
    result = run(Request(experiment, parameters=small | given), out=tmp_path / "out", models=models)
    # The vocabulary takes words apart at marks; a page shows whatever a result may hold.
    tables = json.loads(
        re.sub(r"x-(\d+)", lambda found: json.dumps(HOSTILE[int(found[1])])[1:-1], json.dumps(result.tables))
    )
    result = replace(result, tables=tables)
    page, displayed = notebook.Page(figure, result, None, tmp_path / "files"), []
    with (
        patch("IPython.display.display", lambda shown, **_: displayed.append(shown)),
        patch.object(pd.DataFrame, "head", lambda frame, *_: frame),
        pd.option_context("display.max_rows", None),
    ):
        for own in shown_by_cells(figure, page, display=displayed.append):
            displayed.append(own)  # after what the cell itself has displayed
        shown = [own for own in displayed if own is not None]
        pages = [*map(parsed, page_of(shown, tmp_path / "site"))]
    drawn = [own["image/svg+xml"] for own in shown if isinstance(own, dict) and "image/svg+xml" in own]
    assert not [own for each in (*pages, *map(parsed, drawn)) for own in hostile(each)]
    # With comments: a drawing has the words that it draws as outlines there.
    texts = str(result.tables), *(" ".join(own.find_all(string=True)) for own in pages)
    told, *seen = [{*re.findall(r"x-\d+", text)} for text in texts]
    COUNTS[f"hostile words on the page of {figure}, none raw"] += len(seen[0])
    assert seen[0] == seen[1] <= told
    assert len(seen[0]) == (50 if figure in SHOWING else 0)
