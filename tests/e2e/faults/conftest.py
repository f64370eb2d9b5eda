"""Sizes and counts of the fault tests. `make faults` takes 20 times the size that `make test` has."""

import os
from collections import Counter

SIZE = int(os.environ.get("ATTNLIB_FAULTS", "1"))
COUNTS: Counter = Counter()


def pytest_terminal_summary(terminalreporter):
    for what, number in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{number:6} {what}")
