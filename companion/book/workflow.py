"""Call Snakemake, one build of a checkout at a time, and not at all where nothing has changed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from attnlib.files import locked, record_holder, write_json_atomic, write_text_atomic
from companion.book import warm
from companion.book.project import Project
from companion.data.sources import cache_folder, mirror_folder
from companion.runs.fingerprint import PACKAGES

# What the book is made of, and what is made of it; `attnlib book` asks Snakemake only where one has changed.
INPUTS = ("attnlib", "companion", "notebooks", "claims", "book", "results", "Snakefile", "_config.yml")
INPUTS += ("README.md", "CHANGELOG.md", "CITATION.cff")
MARK = ".book-is-current"
PRODUCTS = ("build/notebooks", "build/results/quick", "build/_build/html")


def command(project: Project, targets: Iterable[str], jobs: int, *, explain: bool = False) -> list[str]:
    """The call of Snakemake. Its own lock is not used: it would outlive a killed process."""
    return [
        sys.executable, "-m", "snakemake", *targets,
        "--snakefile", str(project.root / "Snakefile"), "--directory", str(project.root),
        "--cores", str(jobs), "--keep-going", "--rerun-incomplete", "--nolock", "--quiet", "host",
        "--scheduler", "greedy",  # the other one solves a linear program before every job
        *(["--dry-run"] if explain else []),
    ]  # fmt: skip


def run(project: Project, targets: Iterable[str], jobs: int, *, explain: bool = False) -> int:
    """Do what is out of date for ``targets``, or only say it; Snakemake's exit code.

    A failed job does not hold up the others. Snakemake and its jobs are a process group that is stopped as
    this process is; a killed one closes a pipe, at whose end the group, which holds the lock, ends itself.

    Raises BadInput: another build of this checkout is at work, or the build folder cannot be written.
    KeyboardInterrupt: once they have ended.
    """
    mirror = mirror_folder()  # as seen from the caller's folder: jobs run in the checkout
    environment = {**os.environ, **({"ATTNLIB_DATA": str(mirror)} if mirror else {})}
    call = command(project, targets, jobs, explain=explain)
    if explain:
        return subprocess.call(call, env=environment)
    with locked(project.build) as lock:
        reading, writing = os.pipe()
        environment[warm.CALLER] = str(reading)
        process = subprocess.Popen(call, env=environment, pass_fds=(lock, reading), process_group=0)
        os.close(reading)
        record_holder(lock, process.pid)
        try:
            return process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(warm.PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            os.close(writing)


def state(project: Project, names: Iterable[str]) -> str:
    """Hash of names, sizes and dates of all files below some of the checkout's; and of which data is here."""
    data = mirror_folder() or cache_folder()
    roots = [*(project.root / name for name in names), data]
    found = (line for root in roots for line in _files(root, depth=2 if root is data else 99))
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _files(path: Path, depth: int) -> Iterator[str]:
    if path.is_file():
        status = path.stat()
        yield f"{path} {status.st_size} {status.st_mtime_ns}"
    elif path.is_dir() and depth:
        for each in sorted(path.iterdir()):
            if each.name != "__pycache__" and not each.name.startswith("."):
                yield from _files(each, depth - 1)


def code_files(root: Path) -> list[str]:
    """All Python of the project."""
    paths = (path for room in PACKAGES for path in (root / room).rglob("*.py"))
    return sorted(path.relative_to(root).as_posix() for path in paths)


class Memo:
    """What is costly to find out and holds as long as a `state` does; cached in a file of the build."""

    def __init__(self, path: Path, state: str) -> None:
        self.path, self.state, self.entries, self.new = path, state, {}, False
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            self.entries = found["entries"] if found["state"] == state else {}

    def __call__(self, key: str, make: Callable[[], object]) -> object:
        """What is cached under a key, made now where nothing is."""
        if key not in self.entries:
            self.entries[key], self.new = make(), True
        return self.entries[key]

    def save(self) -> None:
        if self.new:
            write_json_atomic(self.path, {"state": self.state, "entries": self.entries})


def is_current(project: Project) -> bool:
    """Whether neither the book nor anything that it is made of has changed since `mark_current`."""
    mark = project.build / MARK
    now = f"{state(project, INPUTS)} {state(project, PRODUCTS)}"
    return mark.is_file() and mark.read_text(encoding="ascii") == now


def mark_current(project: Project, inputs: str) -> None:
    """Note that the book is whole, made of ``inputs``: their `state` before it was begun."""
    write_text_atomic(project.build / MARK, f"{inputs} {state(project, PRODUCTS)}")
