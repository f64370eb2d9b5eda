"""What the book needs beside the library: packages, data sets and a browser."""

import shutil
from importlib.util import find_spec

from attnlib.doctor import Finding
from companion.data import sources

_BOOK = ("jupyter_book", "papermill", "snakemake", "matplotlib", "pandas", "pydantic", "scipy")
_TESTS = ("pytest", "hypothesis", "beartype", "playwright")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def findings_of_book() -> list[Finding]:
    """Look for packages, a browser and the files of each data set, without importing or reading any."""
    findings = [
        _packages("packages of the book", "making its pages", _BOOK),
        _packages("packages of the tests", "running them", _TESTS),
        _browser(),
    ]
    return findings + [_data(name) for name in sources.names()]


def _packages(name: str, purpose: str, modules: tuple[str, ...]) -> Finding:
    missing = [module for module in modules if find_spec(module) is None]
    return Finding(name, purpose, ", ".join(missing), remedy="make install")


def _browser() -> Finding:
    missing = "" if any(map(shutil.which, BROWSERS)) else "Chromium"
    remedy = "install Debian's package chromium, or Chromium by another way onto the path"
    return Finding("browser", "make pdf and the tests of pages", missing, remedy=remedy)


def _data(name: str) -> Finding:
    """Whether the files of a data set are here; `attnlib data check` compares them with their checksums."""
    data = sources.dataset(name)
    n_missing = sum(sources.find(data, file) is None for file in data.files)
    missing = f"{n_missing} of {len(data.files)} files" if n_missing else ""
    remedy = f"attnlib data fetch {name}, or set ATTNLIB_DATA to a folder that has it"
    return Finding(f"data {name}", "figures that read it", missing, remedy=remedy)
