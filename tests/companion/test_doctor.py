"""`attnlib doctor` names what is missing, and how to get it."""

import re
import tomllib

import pytest

from attnlib import doctor
from attnlib.doctor import Finding, findings_of_library
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


@pytest.mark.parametrize(
    ("missing", "last"), [("", "nothing is missing"), ("pandas", "1 of 1 are not complete")]
)
def test_the_last_line_counts(monkeypatch, capsys, missing, last):
    monkeypatch.setattr(doctor, "findings_of_library", list)
    doctor.doctor_command([Finding("plots", "pictures", missing, remedy="pip install pandas")])
    assert capsys.readouterr().out.splitlines()[-1] == last
