"""What the book needs beside the library: packages, data sets and a browser."""

import shutil
from contextlib import suppress
from importlib.util import find_spec

from attnlib.doctor import Finding
from attnlib.errors import AttnlibError, UnknownName
from companion.book.project import current_project, discover
from companion.data import sources
from companion.paths import PROFILES

_BOOK = ("jupyter_book", "papermill", "snakemake", "matplotlib", "pandas", "pydantic", "scipy")
_TESTS = ("pytest", "hypothesis", "beartype", "playwright")
MOST_FIGURES = 4  # that are named for a data set
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def findings_of_book() -> list[Finding]:
    """Look for packages, a browser and the files of each data set, without reading any."""
    findings = [
        _packages("packages of the book", "making its pages", _BOOK),
        _packages("packages of the tests", "running them", _TESTS),
        _browser(),
    ]
    readers = _readers()
    return findings + [_data(name, readers) for name in sources.names()]


def _readers() -> dict[str, list[str]] | None:
    """Return the figures that read each data set; None outside of a checkout."""
    from companion.book.plan import data_sets_of
    from companion.results.request import Request

    try:
        figures = discover(current_project())
    except AttnlibError:
        return None
    readers: dict[str, list[str]] = {name: [] for name in sources.names()}
    for figure in figures:
        names: set[str] = set()
        for profile in PROFILES:
            with suppress(UnknownName):  # a figure without this profile
                names |= data_sets_of(Request(figure, profile))
        for name in names:
            readers[name].append(figure)
    return readers


def _packages(name: str, purpose: str, modules: tuple[str, ...]) -> Finding:
    missing = [module for module in modules if find_spec(module) is None]
    return Finding(name, purpose, ", ".join(missing), remedy="make install")


def _browser() -> Finding:
    missing = "" if any(map(shutil.which, BROWSERS)) else "Chromium"
    remedy = "install Debian's package chromium, or Chromium by another way onto the path"
    return Finding("browser", "make pdf and the tests of pages", missing, remedy=remedy)


def _data(name: str, readers: dict[str, list[str]] | None) -> Finding:
    """Whether the files of a data set are here; `attnlib data check` compares them with their checksums."""
    data = sources.dataset(name)
    n_missing = sum(sources.find(data, file) is None for file in data.files)
    missing = f"{n_missing} of {len(data.files)} files" if n_missing else ""
    remedy = f"attnlib data fetch {name}, or set ATTNLIB_DATA to a folder that has it"
    return Finding(f"data {name}", _named(readers, name), missing, remedy=remedy)


def _named(readers: dict[str, list[str]] | None, name: str) -> str:
    """Return the figures that read a data set in words, the first few by name."""
    if readers is None:
        return "figures of the book"
    figures = readers[name]
    if not figures:
        return "tests and runs of your own; no figure of the book reads it"
    if len(figures) <= MOST_FIGURES:
        return ", ".join(figures)
    return f"{', '.join(figures[:MOST_FIGURES])} and {len(figures) - MOST_FIGURES} more figures"
