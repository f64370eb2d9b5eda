"""Where the buttons of a page lead once the repository has an address, and what launching runs."""

import importlib.util
import sys
from types import SimpleNamespace
from unittest.mock import patch

import jinja2
import nbformat
import pytest

from tests.companion.book.book_builders import ROOT, copied, output_of

spec = importlib.util.spec_from_file_location("book_theme", ROOT / "book" / "_theme" / "book_theme.py")
book_theme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(book_theme)


def configured(url: str) -> SimpleNamespace:
    options = {"use_download_button": True}
    config = SimpleNamespace(html_theme_options=options, html_context={}, html_baseurl=None)
    with patch.object(book_theme.yaml, "safe_load", lambda _: {"repository": {"url": url, "branch": "main"}}):
        book_theme.link_the_repository(None, config)
    return config


def test_one_setting_gives_buttons_and_the_address_of_the_pages_and_of_their_sources():
    assert configured("").html_context == {}
    config = configured("https://github.com/someone/book")
    assert config.html_baseurl == "https://someone.github.io/book/"
    assert config.html_theme_options["repository_url"] == "https://github.com/someone/book"
    template = jinja2.Template(config.html_context["edit_page_url_template"])
    sources = {"attend/temporal_share.ipynb": "notebooks/attend/temporal_share.md"}
    sources |= {"how_to.md": "book/how_to.md", "scorecard.md": "claims/README.md"}
    for page, source in sources.items():
        shown = template.render(file_name=page)
        assert shown == f"https://github.com/someone/book/edit/main/{source}"
        assert (ROOT / source).is_file()


@pytest.mark.slow
def test_what_launching_runs_makes_notebooks_that_run_as_they_are(tmp_path, monkeypatch):
    """The start script, in a copy; pip finds all that it wants here, and is told to change nothing."""
    rooms = ("attnlib", "companion", "notebooks", "binder", "claims")
    files = ("Snakefile", "README.md", "LICENSE", "pyproject.toml", "requirements.lock")
    results = (path.relative_to(ROOT) for path in ROOT.glob("results/paper/one_step.*"))
    copied(tmp_path, *rooms, *files, *results)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "results").symlink_to(ROOT / "build" / "results")
    monkeypatch.delenv("ATTNLIB_ROOT", raising=False)
    own = {"PYTHON": sys.executable, "PIP_DRY_RUN": "1", "PYTHONPATH": str(tmp_path)}
    output_of(["bash", "binder/postBuild"], tmp_path, **own)
    notebook = tmp_path / "notebooks" / "primer" / "one_step.ipynb"
    run = [sys.executable, "-m", "jupyter", "execute", "--output", "done.ipynb", notebook.name]
    output_of(run, notebook.parent, **own)
    done = nbformat.read(notebook.with_name("done.ipynb"), as_version=4)
    assert any(cell.get("outputs") for cell in done.cells)
