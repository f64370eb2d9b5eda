"""Notebooks that leave the book keep their outputs and run by themselves."""

import io
import subprocess
import zipfile

import nbformat
import pytest

from companion.book.leaving import ARCHIVE, INSTALL, book_archive, leaving_notebook
from tests.companion.data.data_builders import put


@pytest.fixture
def executed(tmp_path):
    output = nbformat.v4.new_output("stream", text="41\n")
    cell = nbformat.v4.new_code_cell("print(41)", outputs=[output], execution_count=1)
    path = tmp_path / "figure.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder outside of a checkout, where nothing is installed; what pip is asked for is kept."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.path", [])
    # Set first, so that what the cell sets is taken back whatever stood there.
    monkeypatch.setenv("ATTNLIB_ROOT", "")
    monkeypatch.delenv("ATTNLIB_ROOT")
    calls = []
    monkeypatch.setattr(subprocess, "check_call", calls.append)
    return folder, calls


def test_outputs_are_kept(executed):
    cells = nbformat.reads(leaving_notebook(executed).decode(), as_version=4).cells
    assert cells[1].outputs[0].text == "41\n"


def test_the_first_cell_installs(executed):
    cells = nbformat.reads(leaving_notebook(executed).decode(), as_version=4).cells
    assert cells[0].source == INSTALL


def test_the_archive_has_all_but_what_is_made_anew(tmp_path):
    put(tmp_path, {"Snakefile": "", "attnlib/a.py": "", "results/paper/x.json": "{}"})
    put(tmp_path, {"results/paper/archive/y.json": "{}", "attnlib/__pycache__/a.py": ""})
    names = zipfile.ZipFile(io.BytesIO(book_archive(tmp_path, {"attend/x": b"{}"}))).namelist()
    assert sorted(names) == ["Snakefile", "attnlib/a.py", "notebooks/attend/x.ipynb", "results/paper/x.json"]


def test_equal_files_give_equal_bytes(tmp_path):
    put(tmp_path, {"Snakefile": "", "attnlib/a.py": "1"})
    first = book_archive(tmp_path, {})
    (tmp_path / "attnlib" / "a.py").touch()
    assert book_archive(tmp_path, {}) == first


def test_the_first_cell_unpacks_the_archive(elsewhere, tmp_path):
    folder, _ = elsewhere
    put(tmp_path / "checkout", {"Snakefile": "", "attnlib/a.py": ""})
    (folder / ARCHIVE).write_bytes(book_archive(tmp_path / "checkout", {}))
    exec(compile(INSTALL, "install", "exec"), {})
    assert (folder / "attnlib-book" / "attnlib" / "a.py").is_file()


def test_the_first_cell_installs_the_archive(elsewhere, tmp_path):
    folder, calls = elsewhere
    put(tmp_path / "checkout", {"Snakefile": "", "attnlib/a.py": ""})
    (folder / ARCHIVE).write_bytes(book_archive(tmp_path / "checkout", {}))
    exec(compile(INSTALL, "install", "exec"), {})
    assert calls[0][-1] == "attnlib-book[book,text]"


@pytest.mark.usefixtures("elsewhere")
def test_without_the_archive_the_first_cell_says_what_to_download():
    with pytest.raises(SystemExit, match=f"Download {ARCHIVE}"):
        exec(compile(INSTALL, "install", "exec"), {})
