"""`attnlib doctor` names what is missing, and how to get it."""

import re
import tomllib

import pytest

from attnlib import doctor
from attnlib.doctor import Finding, findings_of_library
from attnlib.errors import BadInput
from companion import doctor as book
from companion.paths import ROOT


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda module: None if module == "numba" else module)
    (missing,) = [finding for finding in findings_of_library() if finding.missing]
    assert missing.line.startswith("extra fast: missing numba")
    assert "pip install 'attnlib[fast]'" in missing.line


def absent(module):
    if module == "google.protobuf":
        raise ModuleNotFoundError("No module named 'google'")
    return module


def test_a_package_within_one_that_is_missing_is_named_as_it_is_installed(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", absent)
    (missing,) = [finding for finding in findings_of_library() if finding.missing]
    assert missing.line.startswith("extra hf: missing protobuf")


def test_every_extra_of_the_library_is_looked_for():
    """What `pip install 'attnlib[hf]'` brings is what the command looks for."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, (_, modules) in doctor._EXTRAS.items():
        packages = {re.split("[<>=]", line)[0] for line in extras["optional-dependencies"][extra]}
        assert packages == {doctor._PACKAGES.get(module, module) for module in modules}


def test_a_browser_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(book.shutil, "which", lambda name: None)
    assert "browser: missing Chromium" in "\n".join(finding.line for finding in book.findings_of_book())


def test_data_that_are_missing_are_named_with_the_command_that_brings_them(monkeypatch):
    monkeypatch.setattr(book.sources, "find", lambda data, file: None)
    lines = "\n".join(finding.line for finding in book.findings_of_book())
    assert "attnlib data fetch multi30k" in lines


def line_of(name):
    (line,) = (finding.line for finding in book.findings_of_book() if finding.name == f"data {name}")
    return line


def test_the_figures_that_read_a_data_set_are_named():
    assert "attend/translators, attend/word_alignment" in line_of("europarl")
    assert re.search(r"attend/alignment_breakdown, .* and \d+ more figures", line_of("multi30k"))


def test_a_data_set_that_no_figure_reads_says_so():
    assert "no figure of the book reads it" in line_of("news_commentary")


def test_outside_of_a_checkout_no_figure_is_named(monkeypatch):
    monkeypatch.setattr(book, "current_project", outside)
    assert "figures of the book" in line_of("europarl")


def outside():
    raise BadInput("this works in a checkout of the book")


@pytest.mark.parametrize(
    ("missing", "last"), [("", "nothing is missing"), ("pandas", "1 of 1 are not complete")]
)
def test_the_last_line_counts(monkeypatch, capsys, missing, last):
    monkeypatch.setattr(doctor, "findings_of_library", list)
    doctor.doctor_command([Finding("plots", "pictures", missing, remedy="pip install pandas")])
    assert capsys.readouterr().out.splitlines()[-1] == last
