"""Words of a reader's own texts are words on every page: none is markup, whatever it looks like."""

import json
import re
from dataclasses import dataclass, replace
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
from tests.e2e.faults.conftest import COUNTS
from tests.notebooks.figure_builders import tiny
from tests.notebooks.figure_pages import ROOT, shown_by_cells

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
    markup = [text for tag in page.find_all(True) for text in (tag.name, *tag.attrs, *tag.attrs.values())]
    return [text for text in markup if re.match(r"x-\d|javascript:|onload", text)]


def notebook_of(displayed, title):
    """A notebook with these outputs."""
    bundles = [
        content if isinstance(content, dict) else DisplayFormatter().format(content)[0]
        for content in displayed
    ]
    texts = [
        {kind: content for kind, content in bundle.items() if isinstance(content, str)} for bundle in bundles
    ]
    outputs = [new_output("display_data", data=content) for content in texts]
    made = new_notebook(cells=[new_code_cell("shown", outputs=[content]) for content in outputs])
    made.cells.insert(0, new_markdown_cell(f"# {title}"))
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("figure", OWN)
def test_two_files_are_taken_at_either_profile(figure, profile, tmp_path):
    paths = {name: tmp_path / name for name in ("source", "target")}
    for path in paths.values():
        path.write_text("".join(f"a b{number}\n" for number in range(20)))
    assert Request(figure, profile, paths).config.source == paths["source"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Two files with each of the words, as settings of a run name them."""
    folder = tmp_path_factory.mktemp("texts")
    for name, common in (("source", "der hund"), ("target", "the dog")):
        lines = [f"{common} {copy} {word}" for copy in range(8) for word in HOSTILE]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: str(folder / name) for name in ("source", "target")}


def result_of(figure, texts, out, models):
    """The result of a small run on the texts, in whose tables stands every word that it read.

    The vocabulary takes words apart at marks; a page shows whatever a result may hold.
    """
    experiment = figure.rpartition("/")[2]
    small = {name: value for name, value in vars(tiny(experiment)).items() if name not in TASKS}
    with patch("notebooks.attend.readout.experiment.LISTED", 99):
        result = run(Request(experiment, parameters=small | texts), out=out, models=models)
    tables = re.sub(
        r"x-(\d+)", lambda match: json.dumps(HOSTILE[int(match[1])])[1:-1], json.dumps(result.tables)
    )
    return replace(result, tables=json.loads(tables))


def displayed_by(figure, result, folder):
    """All that the cells of a figure display of a result, tables as a whole."""
    displayed = []
    with (
        patch("IPython.display.display", lambda shown, **_: displayed.append(shown)),
        patch.object(pd.DataFrame, "head", lambda frame, *_: frame),
        pd.option_context("display.max_rows", None),
    ):
        page = notebook.Page(figure, result, None, folder)
        for shown in shown_by_cells(figure, page, display=displayed.append):
            displayed.append(shown)  # after what the cell itself has displayed
        return [shown for shown in displayed if shown is not None]


@dataclass(frozen=True)
class Shown:
    """What a figure shows of a run on hostile words, as text.

    Attributes:
        tables: of the result.
        pages: as Jupyter writes it and as the book's site has it.
        drawings: the pictures among what it displays.
    """

    tables: str
    pages: list[str]
    drawings: list[str]


@pytest.fixture(scope="module")
def shown(texts, tmp_path_factory, models, few_resamples):
    """Figure → what it shows. One site has the pages of all: to start Sphinx is half the work."""
    folder, site, made = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("site"), {}
    for figure in OWN:
        name = figure.rpartition("/")[2]
        result = result_of(figure, texts, folder / name, models)
        displayed = displayed_by(figure, result, folder / f"{name}.files")
        with pd.option_context("display.max_rows", None):
            made[name] = str(result.tables), displayed, notebook_of(displayed, name)
        nbformat.write(made[name][-1], site / f"{name}.ipynb")
    listed = "\n".join(("# All", "", "```{toctree}", *made, "```", ""))
    (site / "index.md").write_text(listed, encoding="utf-8")
    html = built(site)
    figures = {}
    for name, (tables, displayed, page) in made.items():
        pages = [HTMLExporter().from_notebook_node(page)[0], (html / f"{name}.html").read_text("utf-8")]
        bundles = [output for output in displayed if isinstance(output, dict)]
        drawings = [bundle["image/svg+xml"] for bundle in bundles if "image/svg+xml" in bundle]
        figures[name] = Shown(tables, pages, drawings)
    return figures


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:It looks like you're using an HTML parser")  # of drawings, as a page does
@pytest.mark.parametrize("figure", OWN)
def test_fifty_hostile_words_are_words(figure, shown):
    made = shown[figure.rpartition("/")[2]]
    pages = [parsed(page) for page in made.pages]
    drawings = [parsed(drawing) for drawing in made.drawings]
    assert not [fault for part in (*pages, *drawings) for fault in hostile(part)]
    # With comments: a drawing has the words that it draws as outlines there.
    on_pages = [" ".join(page.find_all(string=True)) for page in pages]
    given, *seen = [{*re.findall(r"x-\d+", text)} for text in (made.tables, *on_pages)]
    COUNTS[f"hostile words on the page of {figure}, none raw"] += len(seen[0])
    assert seen[0] == seen[1] <= given
    assert len(seen[0]) == (50 if figure in SHOWING else 0)
