"""Call Snakemake, one build of a checkout at a time, and show how far it is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

from attnlib.files import locked, record_holder
from companion.book.explained import explained
from companion.book.progress import Progress
from companion.book.project import Project
from companion.data.sources import mirror_folder

CALLER = "ATTNLIB_CALLER"  # a pipe whose end says that the attnlib which started this Snakemake has ended
PATIENCE = 30  # seconds in which whoever is told to stop may tidy up
LOG = "snakemake.log"


def command(project: Project, targets: Iterable[str], jobs: int, *, explain: bool = False) -> list[str]:
    """The call of Snakemake. Its own lock is not used: it would outlive a killed process."""
    return [
        sys.executable, "-m", "snakemake", *targets,
        "--snakefile", str(project.root / "Snakefile"), "--directory", str(project.root),
        "--cores", str(jobs), "--keep-going", "--rerun-incomplete", "--nolock", "--quiet", "host",
        "--scheduler", "greedy",  # the other one solves a linear program before every job
        *(["--dry-run"] if explain else []),
    ]  # fmt: skip


def run(
    project: Project, targets: Iterable[str], jobs: int, *, explain: bool = False, verbose: bool = False
) -> int:
    """Do what is out of date for ``targets``, or only say it; Snakemake's exit code.

    A failed job does not hold up the others. Snakemake and its jobs are a process group that is stopped as
    this process is; a killed one closes a pipe, at whose end the group, which holds the lock, ends itself.
    What they say goes to ``build/snakemake.log``; how far they are, and errors, to standard error, which has
    the whole log as well where ``verbose``.

    Raises BadInput: another build of this checkout is at work, or the build folder cannot be written.
    KeyboardInterrupt: once they have ended.
    """
    mirror = mirror_folder()  # as seen from the caller's folder: jobs run in the checkout
    environment = {**os.environ, **({"ATTNLIB_DATA": str(mirror)} if mirror else {})}
    call = command(project, targets, jobs, explain=explain)
    if explain:
        return _explain(call, environment)
    with locked(project.build) as lock:
        reading, writing = os.pipe()
        environment[CALLER] = str(reading)
        process = subprocess.Popen(
            call, env=environment, pass_fds=(lock, reading), process_group=0,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        os.close(reading)
        record_holder(lock, process.pid)
        try:
            _follow(process, project.build, jobs, verbose=verbose)
            return process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            os.close(writing)


def _explain(call: list[str], environment: dict[str, str]) -> int:
    """Print what a dry run would do, and why; all that Snakemake said where it fails."""
    process = subprocess.run(
        call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if process.returncode != 0:
        sys.stderr.write(process.stdout)
    else:
        for line in explained(process.stdout.splitlines()):
            print(line)
    return process.returncode


def _follow(process: subprocess.Popen, build: Path, jobs: int, *, verbose: bool) -> None:
    """Write what a build says into its log, and show its progress, until it ends."""
    progress = Progress(build, jobs)
    with process.stdout, (build / LOG).open("w", encoding="utf-8") as log:
        for line in process.stdout:
            log.write(line)
            log.flush()
            if verbose:
                sys.stderr.write(line)
            progress.read(line)
    progress.close()
    if process.wait() != 0:
        print(f"the whole log is {build / LOG}", file=sys.stderr)


def end_with_caller() -> None:
    """Stop this process group, as Ctrl-C does, where the attnlib that started it is killed."""

    def follow(pipe: int) -> None:
        os.read(pipe, 1)
        os.killpg(0, signal.SIGINT)
        time.sleep(PATIENCE)
        os.killpg(0, signal.SIGKILL)

    Thread(target=follow, args=[int(os.environ[CALLER])], daemon=True).start()
