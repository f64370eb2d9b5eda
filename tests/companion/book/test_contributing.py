"""CONTRIBUTING.md lists what authors of figures use and which dependencies are held back."""

import re
import tomllib

import pytest

from tests.companion.book.book_builders import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BEGINNING_OF_ROW = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)


def test_every_shared_module_is_listed():
    section = TEXT.partition("### Helpers for figures")[2].partition("\n## ")[0]
    shared = ROOT / "notebooks/shared"
    paths = (path.relative_to(shared).with_suffix("") for path in shared.rglob("*.py"))
    modules = {".".join(path.parts) for path in paths if path.stem != "__init__"}
    assert set(BEGINNING_OF_ROW.findall(section)) == modules


@pytest.mark.parametrize(
    "name", ["jupyter-book", "sphinx-book-theme", "jsonschema", "rich", "torch", "transformers"]
)
def test_what_is_held_back_has_a_plan(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [line for lines in lists for line in lines if re.match(rf"{name}\b(?!-)", line)]
    held_back = any("<" in line or "==" in line for line in requirements)
    section = TEXT.partition("## Dependencies that are held back")[2]
    assert held_back == (f"`{name}`" in section)


def test_make_format_is_in_the_makefile():
    assert re.search(r"^format:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
