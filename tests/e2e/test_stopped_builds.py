"""Whoever is stopped or killed, no process stays, nothing is locked, and the same command goes on."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial

import pytest

from attnlib.errors import BadInput
from attnlib.files import locked
from companion.book.execute import FigureFailed, execute
from companion.book.project import Project
from companion.results.request import Request
from tests.companion.book.book_builders import at_work, copied, output_of, texts, until, write

pytestmark = pytest.mark.slow


COMMANDS = {
    "attnlib": [sys.executable, "-m", "attnlib.cli", "run", "attend/one", "-j", "1"],
    "snakemake": [sys.executable, "-m", "snakemake", "--cores", "1", "figures"],
}


@pytest.fixture
def project(project):
    copied(project.root, "Snakefile")
    write(project, "one", "print(1)")
    return project


@pytest.fixture
def checkout(project):
    """A checkout of one figure, whose cell takes a minute the first time."""
    copied(project.root, "profiles/default")
    begun = f"path = pathlib.Path({str(project.root / 'begun')!r})"
    wait = "if not path.exists():\n    path.write_text(str(os.getpgid(0)))\n    time.sleep(60)"
    write(project, "one", f"import os, pathlib, time\n{begun}\n{wait}")
    return project


@pytest.mark.long
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
def test_a_build_that_was_stopped_goes_on(checkout, command, to, number, code):
    """In a process group of its own, as a terminal has it, and once its figure is at work."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # Where the tests run in the background, SIGINT is ignored by all they start.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    options = {"cwd": checkout.root, "process_group": 0, "preexec_fn": heard}
    process = subprocess.Popen(COMMANDS[command], **options, **pipes)
    until(lambda: (checkout.root / "begun").is_file() and (checkout.root / "begun").read_text())
    (os.killpg if to == "group" else os.kill)(process.pid, number)
    output = process.communicate(timeout=120)[0]
    until(lambda: not at_work(checkout.root))
    assert process.returncode == code, output
    if command == "attnlib" and number != signal.SIGKILL:
        assert "Traceback" not in output
        assert "Exception in thread" not in output
        assert output.count("the same command goes on from there") >= 1
    output_of(COMMANDS[command], checkout.root)
    assert (checkout.executed("quick") / "attend" / "one.ipynb").is_file()


def test_the_second_of_two_builds_is_told_in_a_line_who_works(checkout):
    with locked(checkout.build):
        for command, code in (("attnlib", 2), ("snakemake", 1)):
            output = output_of(COMMANDS[command], checkout.root, code=code)
            assert f"is being written by process {os.getpid()}, since" in output
            assert "Traceback" not in output


def test_the_lock_outlives_a_killed_attnlib_as_long_as_its_workflow(project):
    script = (
        "from companion.book import workflow\nfrom companion.book.project import current_project\n"
        "workflow.command = lambda *_, **__: ['sleep', '60']\n"
        "workflow.run(current_project(), ['figures'], 1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=project.root) as parent:
        (engine,) = until(lambda: at_work(project.root, "60"))
        parent.kill()
    assert not is_free(project)
    os.kill(engine, signal.SIGKILL)
    until(lambda: is_free(project))


def is_free(project: Project) -> bool:
    with suppress(BadInput), locked(project.build):
        return True
    return False


def test_a_killed_kernel_is_a_failed_figure(project):
    figure = write(project, "killed", "print(1)", "import os\nos.kill(os.getpid(), 9)")
    output = project.notebook_of(Request(figure.id))
    with pytest.raises(FigureFailed, match="attend/killed: the kernel died"):
        execute(project, Request(figure.id))
    assert texts(output.with_suffix(".partial.ipynb")) == "1\n"
