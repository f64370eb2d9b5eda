"""Sizes and counts of the fault tests. `make faults` takes 20 times the size that `make test` has."""

import importlib
import os
from collections import Counter

import pytest

SIZE = int(os.environ.get("ATTNLIB_FAULTS", "1"))
COUNTS: Counter = Counter()


@pytest.fixture(scope="session", autouse=True)
def compiler_is_loaded():
    """An embedding loads it: once here, not in every fork, and not where these tests are left out."""
    importlib.import_module("torch._dynamo")


def pytest_terminal_summary(terminalreporter):
    for what, number in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{number:6} {what}")
