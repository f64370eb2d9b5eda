"""Notebooks that leave the book: executed, with their outputs and a first cell that installs what they need.

``attnlib-book.zip`` has all of them, the code that they call, and the results that they open. It lies beside
the site and not in it, since the pictures in its notebooks are as large as the whole site.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import nbformat

ARCHIVE = "attnlib-book.zip"
CODE = ("attnlib", "companion", "notebooks", "claims")
FILES = ("Snakefile", "pyproject.toml", "requirements.lock", "README.md", "LICENSE", "LICENSE-text")
RESULTS = ("results/paper", "build/results/quick")  # without the archive of measurements
ENDS = (".py", ".md", ".yaml", ".yml", ".json", ".toml", ".jinja", ".j2", ".js", ".css", ".mplstyle", ".csv")
ENDS += (".safetensors", ".typed", ".bib", ".svg")
LONG_AGO = (2000, 1, 1, 0, 0, 0)  # so that equal files give equal bytes

INSTALL = f'''\
# Run this cell first. It finds the code that the other cells call, and installs what is missing.
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

archive = Path("{ARCHIVE}")  # from a release of the book, to be put beside this notebook
folders = [Path("attnlib-book"), Path.cwd(), *Path.cwd().parents]
checkout = next((folder for folder in folders if (folder / "Snakefile").is_file()), None)
if checkout is None and archive.is_file():
    checkout = folders[0]
    ZipFile(archive).extractall(checkout)
if checkout is None and find_spec("companion") is None:
    raise SystemExit("Download {ARCHIVE} from a release of the book, and put it beside this notebook.")
if checkout is not None:
    if any(find_spec(module) is None for module in ("torch", "pandas", "matplotlib", "pydantic", "sphinx")):
        subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", f"{{checkout}}[book,text]"])
    os.environ.setdefault("ATTNLIB_ROOT", str(checkout.resolve()))
    sys.path.insert(0, str(checkout.resolve()))
'''


def leaving_notebook(executed: Path) -> bytes:
    """Return an executed notebook, its outputs kept, that runs by itself: it begins with `INSTALL`."""
    notebook = nbformat.read(executed, as_version=4)
    notebook.cells.insert(0, install_cell())
    return nbformat.writes(notebook).encode()


def install_cell() -> nbformat.NotebookNode:
    """Return the cell that a notebook outside of a checkout begins with."""
    return nbformat.v4.new_code_cell(INSTALL, id="install", metadata={"tags": ["install"]})


def book_archive(root: Path, notebooks: Mapping[str, bytes]) -> bytes:
    """Return the zip of all notebooks, by figure, with the code and the results of a checkout."""
    paths = [root / name for name in FILES]
    for folder in CODE:
        paths += sorted((root / folder).rglob("*"))
    for folder in RESULTS:
        paths += sorted((root / folder).glob("*"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in paths:
            is_source = path.suffix in ENDS or path.name in FILES
            if path.is_file() and is_source and "__pycache__" not in path.parts:
                _add(archive, path.relative_to(root).as_posix(), path.read_bytes())
        for figure, notebook in notebooks.items():
            _add(archive, f"notebooks/{figure}.ipynb", notebook)
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
