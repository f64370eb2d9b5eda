"""Sizes, counts and forks of the fault tests. `make faults` takes 20 times the size that `make test` has."""

import io
import os
import resource
import sys
import traceback
from collections import Counter
from pathlib import Path

from attnlib.errors import line_of

SIZE = int(os.environ.get("ATTNLIB_FAULTS", "1"))
COUNTS: Counter = Counter()


def pytest_terminal_summary(terminalreporter):
    for what, number in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{number:6} {what}")


def forked(work, told: Path, before=lambda: None) -> int:
    """Exit code of some work in a process of its own, or minus the signal; what it says goes to a file.

    A mistake of the code is code 1, with its traceback.
    """
    if (child := os.fork()) == 0:
        code, sys.stdout = 1, io.StringIO()
        sys.stderr = sys.stdout
        os.fsync = lambda handle: None  # a killed process loses nothing that it has written
        try:
            before()
            work()
            code = 0
        except BaseException as error:
            line, code = line_of(error) or (traceback.format_exc(), 1)
            print(line)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            told.write_text(sys.stdout.getvalue())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}


def changes(folder: Path, then) -> None:
    """From now on, call ``then(n)`` before the n-th change of a file below a folder by this process."""
    made = 0

    def hook(event, arguments):
        nonlocal made
        flags = arguments[2] if event == "open" else 0
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in CHANGES) and str(arguments[0]).startswith(str(folder)):
            made += 1
            then(made)

    sys.addaudithook(hook)
