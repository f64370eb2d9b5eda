"""Whoever is stopped or killed, no process stays, nothing is locked, and the same command goes on."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from attnlib.files import locked
from tests.companion.book.book_builders import at_work, checkout_of_two, copied, output_of, until, write

MAKE = ["make", "--file", "Makefile", "paper", "JOBS=1"]
RESULT = "results/paper/temporal_share.json"
COMMANDS = {
    "attnlib": [sys.executable, "-m", "attnlib.cli", "run", "attend/one", "-j", "1"],
    "snakemake": [sys.executable, "-m", "snakemake", "--cores", "1", "figures"],
}
pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(project):
    """A checkout of one figure, whose cell takes a minute the first time."""
    copied(project.root, "Snakefile", "profiles/default")
    begun = f"path = pathlib.Path({str(project.root / 'begun')!r})"
    wait = "if not path.exists():\n    path.write_text(str(os.getpgid(0)))\n    time.sleep(60)"
    write(project, "one", f"import os, pathlib, time\n{begun}\n{wait}")
    return project


def started(checkout, command):
    """It, in a process group of its own as a terminal has it, and once its figure is at work."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # Where the tests run in the background, SIGINT is ignored by all they start.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    options = {"cwd": checkout.root, "process_group": 0, "preexec_fn": heard}
    process = subprocess.Popen(COMMANDS[command], **options, **pipes)
    until(lambda: (checkout.root / "begun").is_file() and (checkout.root / "begun").read_text())
    return process


@pytest.mark.parametrize(
    ("command", "to", "number", "code"),
    [
        ("attnlib", "group", signal.SIGINT, 130),
        ("attnlib", "first", signal.SIGTERM, 143),
        ("attnlib", "first", signal.SIGKILL, -9),
        ("snakemake", "group", signal.SIGKILL, -9),
        ("snakemake", "group", signal.SIGINT, 1),
    ],
)
def test_what_was_stopped_leaves_nothing_behind_and_goes_on(checkout, command, to, number, code):
    process = started(checkout, command)
    (os.killpg if to == "group" else os.kill)(process.pid, number)
    said = process.communicate(timeout=120)[0]
    until(lambda: not any(at_work(checkout.root)))
    assert process.returncode == code, said
    if command == "attnlib" and number != signal.SIGKILL:
        assert "Traceback" not in said
        assert "Exception in thread" not in said
        assert said.count("the same command goes on from there") >= 1
    output_of(COMMANDS[command], checkout.root)
    assert (checkout.executed("quick") / "attend" / "one.ipynb").is_file()


def test_the_second_of_two_builds_is_told_in_a_line_who_works(checkout):
    with locked(checkout.build):
        for command, code in (("attnlib", 2), ("snakemake", 1)):
            said = output_of(COMMANDS[command], checkout.root, code=code)
            assert f"is being written by process {os.getpid()}, since" in said
            assert "Traceback" not in said


def test_make_paper_goes_on_after_a_kill_to_the_same_bytes(tmp_path):
    """Killed while the second of two networks trains; against the same command that nobody killed."""
    results = []
    for killed in (True, False):
        folder = checkout_of_two(tmp_path / str(killed), steps=500)
        copied(folder, "Makefile", "requirements.lock")
        (folder / ".venv").mkdir()
        (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        (folder / ".venv" / ".installed").touch()  # as `make install` leaves it
        own = {"PYTHONPATH": str(folder)}
        if killed:
            options = {"process_group": 0, "stderr": subprocess.DEVNULL, "env": os.environ | own}
            process = subprocess.Popen(MAKE, cwd=folder, **options)
            until(lambda folder=folder: len([*folder.glob("build/models/*/.lock")]) == 2, 300)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            until(lambda folder=folder: not any(at_work(folder)))
            assert not (folder / RESULT).exists()
        output_of(MAKE, folder, **own)
        results.append((folder / RESULT).read_bytes())
    assert results[0] == results[1]
