"""Words of a reader's own texts are words on every page: none is markup, whatever it looks like."""

from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from unittest.mock import patch

import jupytext
import pytest
from markdown_it import MarkdownIt

from companion.book import notebook
from companion.book.parameters import path_fields
from companion.book.project import Project, discover
from companion.results import registry
from companion.results.request import Request
from companion.results.run import run
from tests.faults.conftest import COUNTS
from tests.notebooks.figure_builders import smallest
from tests.notebooks.test_every_figure import ROOT, _run

FORMS = (
    "<x-{}>", '"><x-{}>', "'><x-{}/onload=alert(1)>", "</td></table><x-{}>", "</script><x-{}>", "--><x-{}>",
    "]]><x-{}>", "</text></svg><x-{}>", "![x-{}](javascript:alert(1))", "[x-{}](javascript:alert(1))",
    "`<x-{}>", "|<x-{}>|", "$<x-{}>$", "</pre><x-{}>", "\\<x-{}>", "&lt;x-{}&gt;", "{{{{x-{}}}}}",
)  # fmt: skip
HOSTILE = [form.format(number) for number, form in enumerate(FORMS * 3)][:50]
TASKS = {"task", "varied", "tokens_of", "translation", "classification"}  # which a reader's own files are
OWN = {
    figure.id: registry.load(figure.experiment).PROFILES["quick"]
    for figure in discover(Project(ROOT)).values()
    if "source" in path_fields(registry.load(figure.experiment).PROFILES["quick"])
}


class Markup(HTMLParser):
    """Whatever of a page is no text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found += [tag, *(name for name, _ in attributes), *(own for _, own in attributes if own)]

    def handle_data(self, data):
        self.words += data

    def handle_comment(self, data):  # a drawing has the words that it draws as outlines there
        self.words += data

    @property
    def hostile(self):
        return [own for own in self.found if own.startswith(("x-", "javascript:", "onload"))]


def markup_of(shown):
    """A page's HTML of what a cell shows."""
    if isinstance(shown, dict):
        return "".join(own for kind, own in shown.items() if kind in ("image/svg+xml", "text/html"))
    kind = type(shown).__name__
    if kind == "Markdown":
        return MarkdownIt("commonmark").enable("table").render(shown.data)
    return shown.data if kind == "HTML" else getattr(shown, "_repr_html_", str)() or ""


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("figure", OWN)
def test_two_files_are_taken_at_either_profile(figure, profile, tmp_path):
    paths = {name: tmp_path / name for name in ("source", "target")}
    for path in paths.values():
        path.write_text("a b\n" * 20)
    assert Request(figure, profile, paths).config.source == paths["source"]


@pytest.mark.slow
@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("figure", OWN)
def test_fifty_hostile_words_are_words(figure, tmp_path, models):
    for name, common in (("source", "der hund"), ("target", "the dog")):
        lines = [f"{common} {word}" for word in HOSTILE for _ in range(4)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    experiment = figure.rpartition("/")[2]
    given = {name: str(tmp_path / name) for name in ("source", "target")}
    small = {name: value for name, value in smallest(experiment).items() if name not in TASKS}
    result = run(Request(experiment, parameters=small | given), out=tmp_path / "out", models=models)
    page, displayed = notebook.Page(figure, result, None, tmp_path / "files"), []
    names: dict = {"display": displayed.append}
    show = lambda shown, **_: displayed.append(shown)  # noqa: E731
    opened = patch.object(notebook, "open_page", lambda *_: page)
    with opened, patch("IPython.display.display", show), redirect_stdout(StringIO()):
        for cell in jupytext.read(ROOT / "notebooks" / f"{figure}.md").cells:
            if cell.cell_type == "code":
                displayed.append(_run(cell.source, f"{figure}.md", names))
    read = [Markup(markup_of(shown)) for shown in displayed if shown is not None]
    assert not [own for each in read for own in each.hostile]
    seen = {number for number in range(50) for each in read if f"x-{number}" in each.words}
    COUNTS[f"hostile words shown by {figure}, none raw"] += len(seen)
    assert bool(seen) == (figure == "attend/readout")  # the others show places, numbers and counts alone
