"""The book's sources put together: what is staged, refused and launched, and what a failed figure leaves."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import jinja2
import nbformat
import pytest
from PIL import Image
from sphinx_external_toc.parsing import parse_toc_data

from attnlib.errors import BadInput, UnknownName
from companion.book import previews
from companion.book.site import here_lines, moved_pages, stage, table_of_contents, write_moved
from tests.companion.book.book_builders import ROOT, copied, output_of
from tests.companion.claims.claims_builders import save
from tests.companion.data.data_builders import put
from tests.tables import beside

GIVEN = beside(__file__, "staging")
SAID = {"alt": "A line that rises.", "caption": "It rises.", "name": "rise"}
FALLS = {"alt": "A line that falls.", "caption": "It falls.", "name": "fall"}


def image(**metadata):
    data = {"image/svg+xml": "<svg/>", "image/png": "AAAA"}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def write_notebook(path: Path, *cells) -> None:
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)


def code(*outputs, **metadata):
    return nbformat.v4.new_code_cell("draw()", outputs=list(outputs), metadata=metadata)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one prose page and one figure that has been run."""
    made = ("rise.svg", "rise.png", "rise.csv", "other.txt")
    put(tmp_path, GIVEN["files"] | {f"executed/attend/rise.files/{name}": name for name in made})
    Image.new("RGB", (30, 20), "white").save(tmp_path / "executed/attend/rise.files/rise.png")
    rise = tmp_path / "executed" / "attend" / "rise.ipynb"
    write_notebook(rise, code(tags=["injected-parameters"]), code(image(**SAID)))
    return tmp_path


def run(root: Path):
    return stage(root, root / "executed", root / "src")


def page(root: Path, name: str) -> str:
    return (root / "src" / name).read_text()


def test_what_an_output_says_about_its_image_reaches_the_page(root):
    run(root)
    _, drawn, _ = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    about = {"image": {"alt": "A line that rises."}, "figure": {"caption": "It rises.", "name": "rise"}}
    assert drawn["metadata"]["mystnb"] == about


def test_files_of_a_figure_are_linked_below_it(root):
    run(root)
    _, _, downloads = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    links = "".join(downloads["source"])
    for name in ("rise.svg", "rise.png", "rise.csv", "rise.md"):
        assert f'href="../_static/figures/attend/rise/{name}"' in links
        assert (root / "src" / "_files" / "figures" / "attend" / "rise" / name).is_file()


def test_data_of_a_figure_are_linked_first(root):
    run(root)
    _, _, downloads = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    links = "".join(downloads["source"])
    assert re.findall("<b>(.*?):</b> <a href=.*?>(.*?)<", links)[:2] == [
        ("Data", "rise.csv"),
        ("Figure", "rise.svg"),
    ]


def test_files_of_no_figure_are_not_linked(root):
    run(root)
    _, _, downloads = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    links = "".join(downloads["source"])
    assert "other.txt" not in links


def test_prose_that_shows_a_figure_has_its_alternative_text(root):
    run(root)
    assert "/_files/figures/attend/rise/rise.svg\n:alt: A line that rises." in page(root, "index.md")


def test_a_chapter_that_was_run_has_a_picture_for_other_sites(root):
    run(root)
    with Image.open(root / "src/_files/previews/attend/rise.png") as picture:
        assert picture.size == previews.SIZE
    (root / "executed/attend/rise.ipynb").unlink()
    assert "_files/previews/attend/rise.png" in run(root)[1]


def test_staging_twice_writes_nothing(root):
    assert run(root)[0]
    assert run(root) == ([], [])


def test_staging_writes_only_what_changed(root):
    run(root)
    (root / "book" / "index.md").write_text("# Front\n")
    assert run(root) == (["index.md"], [])


def test_staging_removes_what_is_gone(root):
    run(root)
    (root / "executed" / "attend" / "rise.files" / "rise.csv").unlink()
    assert run(root)[1] == ["_files/figures/attend/rise/rise.csv"]


@pytest.fixture
def chapter_with_a_mark(root):
    chapter = root / "notebooks" / "attend" / "rise.md"
    drawing = "\n```{code-cell} python3\ndraw()\n```\n"
    chapter.write_text(chapter.read_text() + "\nBy {num}`source_reversal:gain`.\n" + drawing)
    text = nbformat.v4.new_markdown_cell("# How it rises\n\nBy 1.00.")
    write_notebook(root / "executed" / "attend" / "rise.ipynb", text, code(image(**SAID)))
    return chapter


@pytest.mark.usefixtures("chapter_with_a_mark")
def test_marks_are_filled_with_todays_results(root):
    for gain in (1, 2):
        save(root, {"gain": gain}, "paper", "source_reversal")
        assert "attend/rise.ipynb" in run(root)[0]
        prose = "".join(json.loads(page(root, "attend/rise.ipynb"))["cells"][0]["source"])
        assert f'By <span class="num" title="paper profile; source_reversal: gain">{gain}</span>.' in prose
        assert run(root) == ([], [])


def test_marks_that_are_wrong_are_named_with_their_line(root, chapter_with_a_mark):
    save(root, {"gain": 1}, "paper", "source_reversal")
    chapter_with_a_mark.write_text(chapter_with_a_mark.read_text().replace(":gain", ":gian"))
    with (root / "book" / "index.md").open("a") as front:
        front.write("\n{num}`gain`\n")
    with pytest.raises(BadInput, match=r"rise.md:8: .*no key 'gian'") as refused:
        run(root)
    assert "book/index.md:5: no experiment 'index'" in str(refused.value)


def test_a_figure_that_failed_or_was_never_run_has_a_page_that_says_so(root):
    error = root / "executed" / "attend" / "rise.error.txt"
    error.write_text("Cell 4 stopped:\n```\nValueError: <script>alert(1)</script>\n````\n")
    run(root)
    (cell,) = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    text = "".join(cell["source"])
    assert text.startswith("# How it rises\n")
    assert "did not finish" in text
    assert "`````text\nCell 4 stopped:" in text  # a longer fence than any in the message
    assert "has not been run here" in page(root, "index.md")
    error.unlink()
    (root / "executed" / "attend" / "rise.ipynb").unlink()
    run(root)
    assert "has not been run here" in page(root, "attend/rise.ipynb")


def test_a_loop_over_figures_becomes_a_cell_for_each_whose_fold_has_its_own_name(root):
    between = nbformat.v4.new_output("stream", text="between")
    drawn = code(image(**SAID), between, image(**FALLS), tags=["hide-cell"])
    drawn["metadata"]["mystnb"] = {"code_prompt_show": "All lines"}
    write_notebook(root / "executed" / "attend" / "rise.ipynb", drawn)
    run(root)
    first, second, _ = json.loads(page(root, "attend/rise.ipynb"))["cells"]
    assert [output["output_type"] for output in first["outputs"]] == ["display_data", "stream"]
    assert [c["metadata"]["mystnb"]["figure"]["name"] for c in (first, second)] == ["rise", "fall"]
    folds = [c["metadata"]["mystnb"]["code_prompt_show"] for c in (first, second)]
    assert folds == ["All lines, 1 of 2", "All lines, 2 of 2"]
    assert "".join(first["source"]) == "draw()"
    assert "".join(second["source"]).startswith("# "), "MyST-NB leaves out a cell without source"
    assert first["id"] != second["id"]


def test_images_without_a_text_are_refused(root):
    for outputs in [[image()], [image(alt="  ")], [image(**SAID), image(alt="")]]:
        write_notebook(root / "executed" / "attend" / "rise.ipynb", code(*outputs))
        with pytest.raises(BadInput, match="attend/rise, cell 1 shows an image without alternative text"):
            run(root)


def test_pages_are_in_the_order_of_their_parts(root):
    for name, order in (("fall", 10), ("stay", 30)):
        text = f"---\npart: II\norder: {order}\n---\n# {name}\n"
        (root / "notebooks" / "attend" / f"{name}.md").write_text(text)
    with (root / "book" / "_toc.yml").open("a") as toc:
        toc.write("- caption: C\n  chapters:\n  - file: c\n    sections:\n    - file: c/d\n")
    pages = list(parse_toc_data(table_of_contents(root)))
    assert pages == ["index", "attend/fall", "attend/rise", "attend/stay", "c", "c/d"]


@pytest.mark.parametrize(("name", "text", "message"), GIVEN["refused"])
def test_what_has_no_place_or_leads_nowhere_is_refused(root, name, text, message):
    with (root / name).open("a") as page:
        page.write(text)
    with pytest.raises(BadInput, match=message):
        run(root)
    (root / "book" / "_toc.yml").unlink()
    with pytest.raises(BadInput, match="no table of contents"):
        run(root)


# -- where in the book a page is, and where one that has moved is now ---------------------------------------


def write_chapter(root: Path, name: str, *fields: str, order: int = 20, prose: str = "") -> None:
    """Write a chapter of Part II with its order and further lines of front matter."""
    front_matter = "\n".join(["part: II", f"order: {order}", *fields])
    text = f"---\n{front_matter}\n---\n\n# How it rises\n\n{prose}"
    (root / "notebooks" / "attend" / f"{name}.md").write_text(text)


def lines_below_titles(root: Path) -> dict[str, str]:
    return here_lines(table_of_contents(root), root)


@pytest.mark.parametrize(
    ("prose", "length"),
    [
        pytest.param("word " * 590, "3 minutes", id="open text"),
        pytest.param(f"word\n\n```{{code-cell}} python3\n{'word ' * 590}\n```\n", "1 minute", id="code"),
        pytest.param(f"word\n\n:::{{dropdown}} More\n{'word ' * 590}\n:::\n", "1 minute", id="fold"),
    ],
)
def test_a_chapter_says_below_its_title_how_long_it_takes_to_read(root, prose, length):
    write_chapter(root, "rise", prose=prose)
    line = lines_below_titles(root)["attend/rise"]
    assert line == f"\n\n{{.place}}\nPart One, 0 of 0 · {length} to read"


@pytest.fixture
def audited(root):
    """What is below the titles of a chapter, fall, and of an audit of it, rise."""
    write_chapter(root, "rise", "audits: attend/fall")
    write_chapter(root, "fall")
    return lines_below_titles(root)


def test_an_audit_page_leads_to_its_chapter(audited):
    assert audited["attend/rise"].endswith("An audit of [](/attend/fall) · 1 minute to read")


def test_a_chapter_leads_to_its_audit_page(audited):
    assert audited["attend/fall"].endswith("to read · audited in [](/attend/rise)")


def test_a_chapter_names_the_chapters_that_it_builds_on(root):
    write_chapter(root, "rise", "builds_on: [attend/fall]")
    write_chapter(root, "fall", order=10)
    lines = lines_below_titles(root)
    assert lines["attend/rise"].endswith("1 minute to read · builds on [](/attend/fall)")
    assert "builds on" not in lines["attend/fall"]


def test_a_chapter_that_builds_on_a_later_one_is_refused(root):
    write_chapter(root, "rise", "builds_on: [attend/fall]")
    write_chapter(root, "fall", order=30)
    with pytest.raises(BadInput, match=r"rise\.md builds on .*come before it"):
        lines_below_titles(root)


def with_an_audit(root: Path) -> None:
    """Give the figure's chapter a part that is on a page in the audit part, and that page a place."""
    below = (
        "+++\n\n## Audit\n\nIt fell by {num}`source_reversal:gain`.\n\n```{code-cell} python3\ndraw()\n```\n"
    )
    above = "It rises.\n\n```{code-cell} python3\ndraw()\n```\n\n"
    write_chapter(root, "rise", prose=above + below)
    cells = [
        nbformat.v4.new_markdown_cell("# How it rises\n\nIt rises."),
        code(tags=["injected-parameters"]),
        code(image(**SAID)),
        nbformat.v4.new_markdown_cell("## Audit\n\nIt fell by 1."),
        code(image(**FALLS), tags=["hide-cell"]),
    ]
    write_notebook(root / "executed" / "attend" / "rise.ipynb", *cells)
    (root / "book" / "audit.md").write_text("# The audit\n")
    with (root / "book" / "_toc.yml").open("a") as toc:
        toc.write("- caption: Two\n  chapters:\n  - file: audit\n    sections:\n    - audits: chapters\n")


def test_what_a_chapter_has_below_its_heading_audit_is_a_page_in_the_audit_part(root):
    with_an_audit(root)
    save(root, {"gain": 2}, "paper", "source_reversal")
    run(root)
    chapter, audit = (
        json.loads(page(root, f"attend/{name}.ipynb"))["cells"] for name in ("rise", "rise_audit")
    )
    text, *_ = ("".join(cell["source"]) for cell in audit)
    assert text.startswith("# Audit: How it rises\n\n{.place}\nAn audit of [](/attend/rise) · 1 minute")
    assert ">2</span>" in text
    shown = [
        [cell["metadata"]["mystnb"]["figure"]["name"] for cell in cells if "mystnb" in cell["metadata"]]
        for cells in (chapter, audit)
    ]
    assert shown == [["rise"], ["fall"]]
    assert "Audit" not in "".join(line for cell in chapter for line in cell["source"])
    assert "[all numbers and details](/attend/rise_audit)" in "".join(chapter[0]["source"])
    assert list(parse_toc_data(table_of_contents(root))) == [
        "index",
        "attend/rise",
        "audit",
        "attend/rise_audit",
    ]


def test_what_is_wrong_below_the_heading_audit_is_named_with_its_line(root):
    with_an_audit(root)
    save(root, {"loss": 2}, "paper", "source_reversal")
    lines = (root / "notebooks" / "attend" / "rise.md").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "It fell" in text)
    with pytest.raises(BadInput, match=rf"rise.md:{line}: .*no key 'gain'"):
        run(root)


def test_the_audit_of_a_chapter_that_failed_says_so(root):
    with_an_audit(root)
    save(root, {"gain": 2}, "paper", "source_reversal")
    (root / "executed" / "attend" / "rise.error.txt").write_text("Cell 4 stopped.")
    run(root)
    (cell,) = json.loads(page(root, "attend/rise_audit.ipynb"))["cells"]
    text = "".join(cell["source"])
    assert text.startswith("# Audit: How it rises\n")
    assert "Cell 4 stopped." in text


def test_an_audit_without_a_place_in_the_book_is_refused(root):
    with_an_audit(root)
    toc = root / "book" / "_toc.yml"
    toc.write_text(toc.read_text().replace("    sections:\n    - audits: chapters\n", ""))
    with pytest.raises(BadInput, match="no place for 'attend/rise_audit'"):
        run(root)


def test_a_chapter_shows_the_figure_of_another_page(root):
    write_chapter(root, "fall", prose="<!-- book:figure attend/rise -->\n")
    drawing = nbformat.v4.new_markdown_cell("# How it rises\n\n<!-- book:figure attend/rise -->")
    write_notebook(root / "executed" / "attend" / "fall.ipynb", drawing)
    run(root)
    shown = "".join(json.loads(page(root, "attend/fall.ipynb"))["cells"][0]["source"])
    assert (
        "/_files/figures/attend/rise/rise.svg\n:alt: A line that rises.\n:target: ../attend/rise.html"
        in shown
    )


def test_a_page_shows_a_figure_of_another_one_by_its_name(root):
    rise = root / "executed" / "attend" / "rise.ipynb"
    write_notebook(rise, code(image(**SAID), image(**FALLS)))
    (root / "book" / "index.md").write_text("# Front\n\n<!-- book:figure attend/rise fall -->\n")
    run(root)
    assert "/_files/figures/attend/rise/fall.svg\n:alt: A line that falls." in page(root, "index.md")


def test_a_figure_that_no_page_has_is_refused_by_its_name(root):
    (root / "book" / "index.md").write_text("# Front\n\n<!-- book:figure attend/rise stay -->\n")
    with pytest.raises(UnknownName, match="stay"):
        run(root)


def test_an_old_address_leads_on(root):
    (root / "book" / "_moved.yml").write_text("old/rise: attend/rise\n")
    write_moved(root, root / "site")
    text = (root / "site" / "old" / "rise.html").read_text()
    assert '<meta http-equiv="refresh" content="0; url=../attend/rise.html">' in text
    assert '<link rel="canonical" href="../attend/rise.html">' in text
    assert '<a href="../attend/rise.html">' in text


@pytest.mark.parametrize("line", ["attend/rise: index", "old/rise: attend/fall"])
def test_a_move_from_a_page_or_to_none_is_refused(root, line):
    (root / "book" / "_moved.yml").write_text(f"{line}\n")
    with pytest.raises(BadInput, match="page of the book"):
        moved_pages(root, parse_toc_data(table_of_contents(root)))


def test_every_address_that_the_book_ever_had_is_a_page_or_leads_to_one():
    ever = Path(__file__).with_name("addresses.txt").read_text(encoding="utf-8").split()
    pages = list(parse_toc_data(table_of_contents(ROOT)))
    assert set(ever) - {*pages, *moved_pages(ROOT, pages)} == set()
    assert set(pages) - set(ever) == set(), "a new page joins tests/companion/site/addresses.txt"


def test_every_audit_page_names_a_chapter_of_another_part():
    toc = table_of_contents(ROOT)
    lines = here_lines(toc, ROOT)
    chapters = {page for page, line in lines.items() if "audited in" in line}
    for part in toc["parts"]:
        for entry in part["chapters"]:
            line = lines.get(entry["file"], "")
            if part["caption"] == "V. Audit" and line:
                assert re.search(r"\(/([\w/]+)\)", line)[1] in chapters, entry


# -- where buttons lead once the repository has an address, and what launching runs --------------------------

spec = importlib.util.spec_from_file_location("book_theme", ROOT / "book" / "_theme" / "book_theme.py")
book_theme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(book_theme)


def configured(url: str) -> SimpleNamespace:
    options = {"use_download_button": True}
    config = SimpleNamespace(html_theme_options=options, html_context={}, html_baseurl=None)
    with patch.object(book_theme.yaml, "safe_load", lambda _: {"repository": {"url": url, "branch": "main"}}):
        book_theme.link_the_repository(None, config)
    return config


def test_a_book_without_a_repository_has_no_buttons():
    assert configured("").html_context == {}


def test_the_repository_gives_the_address_of_the_pages():
    config = configured("https://github.com/someone/book")
    assert config.html_baseurl == "https://someone.github.io/book/"
    assert config.html_theme_options["repository_url"] == "https://github.com/someone/book"


def test_the_repository_gives_the_address_of_every_source():
    config = configured("https://github.com/someone/book")
    template = jinja2.Template(config.html_context["edit_page_url_template"])
    chapter = "notebooks/attend/temporal_share.md"
    sources = {f"attend/temporal_share{end}.ipynb": chapter for end in ("", "_audit")}
    sources |= {"how_to.md": "book/how_to.md", "scorecard.md": "claims/README.md"}
    for page, source in sources.items():
        shown = template.render(file_name=page)
        assert shown == f"https://github.com/someone/book/edit/main/{source}"
        assert (ROOT / source).is_file()


@pytest.mark.long
def test_what_launching_runs_makes_notebooks_that_run_as_they_are(tmp_path, monkeypatch):
    """The start script, in a copy; pip finds all that it wants here, and is told to change nothing."""
    rooms = ("attnlib", "companion", "notebooks", "binder", "claims")
    files = ("Snakefile", "README.md", "LICENSE", "pyproject.toml", "requirements.lock")
    results = (path.relative_to(ROOT) for path in ROOT.glob("results/paper/one_step.*"))
    copied(tmp_path, *rooms, *files, *results)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "results").symlink_to(ROOT / "build" / "results")
    monkeypatch.delenv("ATTNLIB_ROOT", raising=False)
    variables = {"PYTHON": sys.executable, "PIP_DRY_RUN": "1", "PYTHONPATH": str(tmp_path)}
    output_of(["bash", "binder/postBuild"], tmp_path, **variables)
    notebook = tmp_path / "notebooks" / "primer" / "one_step.ipynb"
    run = [sys.executable, "-m", "jupyter", "execute", "--output", "done.ipynb", notebook.name]
    output_of(run, notebook.parent, **variables)
    done = nbformat.read(notebook.with_name("done.ipynb"), as_version=4)
    assert any(cell.get("outputs") for cell in done.cells)
