"""Putting the book's sources together: what is staged, what a failed figure leaves, what is refused."""

import json
from pathlib import Path

import nbformat
import pytest

from attnlib.errors import BadInput
from companion.book.site import fill_markers, image_of, stage, table_of_contents, toc_pages

SAID = {"alt": "A line that rises.", "caption": "It rises.", "name": "rise"}


def image(**metadata):
    data = {"image/svg+xml": "<svg/>", "image/png": "AAAA"}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def write_notebook(path: Path, *cells) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)


def code(*outputs, **metadata):
    return nbformat.v4.new_code_cell("draw()", outputs=list(outputs), metadata=metadata)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one prose page and one figure that has been run."""
    (tmp_path / "book" / "_static").mkdir(parents=True)
    (tmp_path / "book" / "index.md").write_text("# Front\n\n<!-- book:figure attend/rise -->\n")
    toc = "format: jb-book\nroot: index\nparts:\n- caption: One\n  chapters:\n  - notebooks: II\n"
    (tmp_path / "book" / "_toc.yml").write_text(toc)
    (tmp_path / "notebooks" / "attend").mkdir(parents=True)
    head = "---\npart: II\norder: 20\n---\n\n"
    (tmp_path / "notebooks" / "attend" / "rise.md").write_text(f"{head}# How it rises\n")
    executed = tmp_path / "executed" / "attend"
    write_notebook(executed / "rise.ipynb", code(tags=["injected-parameters"]), code(image(**SAID)))
    (executed / "rise.files").mkdir()
    for name in ("rise.svg", "rise.png", "rise.csv", "other.txt"):
        (executed / "rise.files" / name).write_text(name)
    return tmp_path


def run(root: Path):
    return stage(root, root / "executed", root / "src")


def test_what_an_output_says_about_its_image_reaches_the_page(root):
    run(root)
    page = json.loads((root / "src" / "attend" / "rise.ipynb").read_text())
    injected, drawn, downloads = page["cells"]
    assert injected["metadata"]["tags"] == ["injected-parameters", "remove-cell"]
    assert drawn["metadata"]["mystnb"] == {
        "image": {"alt": "A line that rises."},
        "figure": {"caption": "It rises.", "name": "rise"},
    }
    links = "".join(downloads["source"])
    for name in ("rise.svg", "rise.png", "rise.csv", "rise.md"):
        assert f'href="../_static/figures/attend/rise/{name}"' in links
        assert (root / "src" / "_files" / "figures" / "attend" / "rise" / name).is_file()
    assert "other.txt" not in links


def test_a_prose_page_shows_the_figure_with_its_texts(root):
    found = image_of("attend/rise", root / "executed")
    assert (found.path.name, found.alt, found.caption) == ("rise.svg", "A line that rises.", "It rises.")
    run(root)
    front = (root / "src" / "index.md").read_text()
    assert "/_files/figures/attend/rise/rise.svg" in front
    assert ":alt: A line that rises." in front


def test_staging_twice_writes_nothing_and_a_change_only_itself(root):
    assert run(root).written
    assert run(root).written == ()
    (root / "book" / "index.md").write_text("# Front\n")
    again = run(root)
    assert (again.written, again.deleted) == (("index.md",), ())


def test_a_figure_that_failed_becomes_a_page_that_says_so(root):
    run(root)
    error = root / "executed" / "attend" / "rise.error.txt"
    error.write_text("Cell 4 stopped:\n```\nValueError: <script>alert(1)</script>\n````\n")
    again = run(root)
    assert "attend/rise.ipynb" in again.deleted
    page = (root / "src" / "attend" / "rise.md").read_text()
    assert page.startswith("# How it rises\n")
    assert "did not finish" in page
    assert "`````text\nCell 4 stopped:" in page  # a longer fence than any in the message
    assert "has not been run here" in (root / "src" / "index.md").read_text()


def test_links_to_a_failed_figure_lead_to_its_stand_in(root):
    with (root / "book" / "index.md").open("a") as front:
        front.write("[it](attend/rise.ipynb#the-line), [elsewhere](https://example.org/a.ipynb)\n")
    run(root)
    assert "[it](attend/rise.ipynb#the-line)" in (root / "src" / "index.md").read_text()
    (root / "executed" / "attend" / "rise.error.txt").write_text("no")
    run(root)
    front = (root / "src" / "index.md").read_text()
    assert "[it](attend/rise.md), [elsewhere](https://example.org/a.ipynb)" in front


def test_a_notebook_with_an_error_in_it_is_a_failed_figure(root):
    broken = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    write_notebook(root / "executed" / "attend" / "rise.ipynb", code(broken))
    run(root)
    assert "Cell 1 stopped with ValueError: no" in (root / "src" / "attend" / "rise.md").read_text()


def test_a_figure_that_was_never_run_has_a_page(root):
    (root / "executed" / "attend" / "rise.ipynb").unlink()
    run(root)
    assert "has not been run here" in (root / "src" / "attend" / "rise.md").read_text()


def test_a_loop_over_figures_becomes_a_cell_for_each(root):
    said = nbformat.v4.new_output("stream", text="between")
    other = {"alt": "A line that falls.", "caption": "It falls.", "name": "fall"}
    drawn = code(image(**SAID), said, image(**other), tags=["remove-input"])
    write_notebook(root / "executed" / "attend" / "rise.ipynb", drawn)
    run(root)
    first, second, _ = json.loads((root / "src" / "attend" / "rise.ipynb").read_text())["cells"]
    assert [output["output_type"] for output in first["outputs"]] == ["display_data", "stream"]
    assert [c["metadata"]["mystnb"]["figure"]["name"] for c in (first, second)] == ["rise", "fall"]
    assert "".join(first["source"]) == "draw()"
    assert "".join(second["source"]).startswith("# "), (
        "MyST-NB leaves out a cell without source, figure and all"
    )
    assert first["id"] != second["id"]
    assert image_of("attend/rise", root / "executed", "fall") is None  # no such file was left
    (root / "executed" / "attend" / "rise.files" / "fall.svg").write_text("")
    assert image_of("attend/rise", root / "executed", "fall").alt == "A line that falls."


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ([image()], "attend/rise, cell 1 shows an image without alternative text"),
        ([image(alt="  ")], "without alternative text"),
        ([image(**SAID), image(alt="")], "cell 1 shows an image without alternative text"),
    ],
)
def test_images_without_one_clear_text_are_refused(root, outputs, told):
    write_notebook(root / "executed" / "attend" / "rise.ipynb", code(*outputs))
    with pytest.raises(BadInput, match=told):
        run(root)


def test_notebooks_stand_in_their_part_by_their_order(root):
    for name, order in (("fall", 10), ("stay", 30)):
        text = f"---\npart: II\norder: {order}\n---\n# {name}\n"
        (root / "notebooks" / "attend" / f"{name}.md").write_text(text)
    pages = toc_pages(table_of_contents(root))
    assert pages == ("index", "attend/fall", "attend/rise", "attend/stay")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", "attend/fall.md has no place in the book: begin its front matter with 'part: II'"),
        ("---\npart: II\n---\n", "has no place in the book"),
        ("---\npart: VII\norder: 1\n---\n", "is in part 'VII', which book/_toc.yml does not have"),
    ],
)
def test_a_notebook_without_a_place_is_named(root, head, message):
    (root / "notebooks" / "attend" / "fall.md").write_text(f"{head}# Fall\n")
    with pytest.raises(BadInput, match=message):
        run(root)


def test_a_page_that_does_not_exist_is_named(root):
    with (root / "book" / "_toc.yml").open("a") as toc:
        toc.write("  - file: nowhere\n")
    with pytest.raises(BadInput, match="'nowhere', but there is neither"):
        run(root)


def test_an_unknown_marker_is_refused(root):
    with pytest.raises(BadInput, match=r"unknown marker .<!-- book:picture x -->"):
        fill_markers("<!-- book:picture x -->", root, root)


def test_contents_are_read_in_order_with_sections(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n"
        "- caption: A\n  chapters:\n  - file: a\n    sections:\n    - file: a/b\n"
        "- caption: C\n  chapters:\n  - file: c\n"
    )
    assert toc_pages(table_of_contents(tmp_path)) == ("index", "a", "a/b", "c")
    with pytest.raises(BadInput, match="no table of contents"):
        table_of_contents(tmp_path / "nowhere")
