"""Prose that takes numbers and verdicts from results: in the book, and in notebooks that leave it."""

import io
import json
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from attnlib.errors import BadInput
from companion.book import prose
from companion.results.result import Result

CHECKOUT = Path(__file__).parents[3]
PAGE = "primer/source_reversal"
SOURCE = """\
# Reversal

It gains {num}`gain|.3f`,
which is a gain {verdict}`it-gains =
reproduced`.

```{claims}
it-gains
```
"""
CLAIMS = """\
paper: ours
title: Ours
claims:
  - id: it-gains
    place: here
    says: It gains [something].
    experiment: source_reversal
    keys: [gain]
    judge: {kind: inequality, relation: ">", threshold: 0}
    profiles: [quick, paper]
  - id: it-loses
    kind: falsifier
    place: here
    says: It loses.
    experiment: source_reversal
    keys: [gain]
    judge: {kind: inequality, relation: "<", threshold: 0}
    profiles: [quick, paper]
  - id: nobody-knows
    place: here
    says: Nobody has looked.
    not_run: It would take a year.
"""
CONF = """\
extensions = ["myst_nb", "companion.book.roles"]
nb_execution_mode = "off"
html_sourcelink_suffix = ""
"""


def result(gain: float, profile: str = "paper") -> Result:
    interval = {"value": gain, "low": gain - 0.01, "high": gain + 0.01, "n": 5}
    values = {"gain": interval, "absent": {"cannot_be_run": "no such text here"}}
    return Result("source_reversal", profile, {"seeds": 5}, values, {}, {}, {})


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout with one chapter, its claims and its committed result."""
    (tmp_path / "Snakefile").touch()
    (tmp_path / "notebooks" / "primer").mkdir(parents=True)
    (tmp_path / "notebooks" / f"{PAGE}.md").write_text(SOURCE)
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "ours.yaml").write_text(CLAIMS)
    result(0.25).save(tmp_path / "results" / "paper")
    monkeypatch.setenv("ATTNLIB_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def build(root):
    """Builds the page as the book does, from a notebook; gives its HTML and what was warned of."""
    src = root / "src"
    (src / "primer").mkdir(parents=True)
    (src / "conf.py").write_text(CONF)
    (src / "index.md").write_text(f"# Front\n\n```{{toctree}}\n{PAGE}\n```\n")

    def run() -> tuple[str, str, list[str]]:
        source = (root / "notebooks" / f"{PAGE}.md").read_text()
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source, id="a")])
        content = nbformat.writes(notebook)
        page = src / f"{PAGE}.ipynb"
        if not page.is_file() or page.read_text() != content:
            page.write_text(content)
        warnings, read = io.StringIO(), []
        with docutils_namespace():
            app = Sphinx(src, src, root / "out", root / "doctrees", "html", status=None, warning=warnings)
            app.connect("source-read", lambda app, docname, source: read.append(docname))
            app.build()
        return (root / "out" / f"{PAGE}.html").read_text(), warnings.getvalue(), read

    return run


@pytest.mark.filterwarnings("default")  # Sphinx and its theme warn of what they themselves will change
def test_a_page_shows_the_numbers_of_today_and_the_build_names_what_no_longer_holds(root, build):
    html, warnings, _ = build()
    assert warnings == ""
    title = "paper profile, n = 5; source_reversal: gain"
    assert f'<span class="num" title="{title}">0.250 [0.240, 0.260]</span>' in html
    assert 'href="../scorecard.html#claim-it-gains"' in html
    assert html.count('class="verdict reproduced"') == 2  # in the sentence and in the table
    assert "It gains [something]." in html

    downloaded = json.loads((root / "out" / "_sources" / f"{PAGE}.ipynb").read_text())
    text = "".join(downloaded["cells"][0]["source"])
    assert "It gains 0.250 [0.240, 0.260],\nwhich is a gain *(reproduced)*." in text
    assert "| It gains \\[something\\]. | 0.250 \\[0.240, 0.260\\], n = 5 | *(reproduced)* |" in text

    result(0.5).save(root / "results" / "paper")
    html, warnings, read = build()
    assert (read, warnings) == ([PAGE], "")
    assert "0.500 [0.490, 0.510]" in html

    assert build()[2] == []  # nothing has changed

    result(-0.5).save(root / "results" / "paper")
    _, warnings, _ = build()
    assert (
        f"notebooks/{PAGE}.md:4: WARNING: claim it-gains is `not reproduced` today at the paper" in warnings
    )
    assert "this sentence was written for `reproduced`" in warnings

    source = root / "notebooks" / f"{PAGE}.md"
    source.write_text("# Reversal\n\n{num}`gian`\n\n```{claims}\nit-gane\n```\n")
    _, warnings, _ = build()
    assert f"notebooks/{PAGE}.md:3: WARNING: result source_reversal (paper) has no key 'gian'" in warnings
    assert "did you mean 'gain'" in warnings
    assert f"notebooks/{PAGE}.md:5: WARNING: no claim 'it-gane'; did you mean 'it-gains'" in warnings


@pytest.mark.filterwarnings("default")
def test_a_page_is_read_again_when_a_claim_changes(root, build):
    build()
    (root / "claims" / "ours.yaml").write_text(CLAIMS.replace("threshold: 0", "threshold: 0.3"))
    _, warnings, read = build()
    assert read == [PAGE]
    assert "claim it-gains is `not reproduced` today" in warnings


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("{num}`gain|.3`", "no way |.3 to write a number"),
        ("{num}`no_such_figure:gain`", "no experiment 'no_such_figure'"),
        ("{num}`source_reversal@papr:gain`", "did you mean 'paper'"),
        ("{verdict}`it-gains`", "expected claim-id = verdict"),
        ("{verdict}`it-gians = reproduced`", "did you mean 'it-gains'"),
        ("{verdict}`it-gains = partly`", "is `reproduced` today at the paper profile"),
        ("{verdict}`it-gains@quick = reproduced`", None),  # nothing has been run at that profile
        ("{verdict}`nobody-knows = reproduced`", "`not run at this profile` today (It would take a year.)"),
        ("```{claims}\n:kind: reading\n```", "no claims of kind 'reading' about source_reversal"),
        ("```{claims}\n:kind: falsifier\n```", None),
        ("{num}`absent.x`", None),
    ],
)
def test_what_is_wrong_is_told_with_its_line(root, mark, message):
    (root / "notebooks" / f"{PAGE}.md").write_text(f"# Reversal\n\n{mark}\n")
    found = list(prose.problems(root, PAGE))
    if message is None:
        assert found == []
    else:
        ((line, told),) = found
        assert line == 3
        assert message in told


def test_numbers_are_of_the_result_that_the_page_leads_with(root):
    result(0.75, "quick").save(root / "build" / "results" / "quick")
    book = prose.Book(root)
    assert prose.num(book, "gain|value", PAGE).text == "0.25"
    assert prose.num(book, "source_reversal@quick:gain|value", "index").text == "0.75"
    (root / "results" / "paper" / "source_reversal.json").unlink()
    assert prose.num(book, "gain|value", PAGE).text == "0.75"
    (root / "build" / "results" / "quick" / "source_reversal.json").unlink()
    assert prose.num(book, "gain|value", PAGE).text == "–"
    assert prose.num(book, "gain|value", PAGE).title == "not computed here: attnlib run source_reversal"


def test_a_notebook_that_leaves_the_book_keeps_what_is_wrong_as_it_is_written(root):
    book = prose.Book(root)
    assert prose.with_text("{num}`gain|value` {num}`gian`", book, PAGE) == "0.25 {num}`gian`"


PAGES = sorted(
    path.relative_to(CHECKOUT / "notebooks").with_suffix("").as_posix()
    for path in (CHECKOUT / "notebooks").rglob("*.md")
    if prose.ROLE.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("page", PAGES)
def test_every_number_and_verdict_of_a_chapter_holds(page):
    assert list(prose.problems(CHECKOUT, page)) == []


def test_claims_of_an_unknown_kind_are_refused(root):
    (root / "claims" / "ours.yaml").write_text(CLAIMS.replace("falsifier", "falsified"))
    with pytest.raises(BadInput, match="did you mean 'falsifier'"):
        prose.Book(root).claims()


def test_a_result_that_was_replaced_is_read_again(root):
    book = prose.Book(root)
    before = book.leading("source_reversal")
    replace(before, values={"gain": 1}).save(root / "results" / "paper")
    assert prose.num(book, "gain", PAGE).text == "1"
