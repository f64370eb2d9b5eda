"""Where the buttons of a page lead once the repository has an address, and what launching runs."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import jinja2
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("attnlib/", "companion/", "notebooks/", "binder/")
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
def test_what_launching_runs_makes_notebooks_that_run_as_they_are(tmp_path):
    """The start script, in a copy; pip finds all that it wants here, and is told to change nothing."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, names.stdout.split("\0")):
        if name.startswith((*ROOMS, "claims/", "results/paper/one_step")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    for name in ("Snakefile", "README.md", "LICENSE", "pyproject.toml", "requirements.lock"):
        shutil.copy2(ROOT / name, tmp_path / name)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "results").symlink_to(ROOT / "build" / "results")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ATTNLIB_ROOT")}
    environment = clean | {"PYTHON": sys.executable, "PIP_DRY_RUN": "1", "PYTHONPATH": str(tmp_path)}
    subprocess.run(["bash", "binder/postBuild"], cwd=tmp_path, env=environment, check=True)
    notebook = tmp_path / "notebooks" / "primer" / "one_step.ipynb"
    run = [sys.executable, "-m", "jupyter", "execute", "--output", "done.ipynb", notebook.name]
    subprocess.run(run, cwd=notebook.parent, env=environment, check=True)
    done = nbformat.read(notebook.with_name("done.ipynb"), as_version=4)
    assert any(cell.get("outputs") for cell in done.cells)
