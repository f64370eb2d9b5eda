"""Drive Snakemake: start it, show what it does and why, in words.

``snakemake --cores 2`` in the checkout does the same work; this adds progress bars and readable reasons.
"""

import fcntl
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from attnlib.errors import BadInput
from companion.book.project import Project
from companion.data.sources import mirror_folder

RULES = {  # rule of the Snakefile → what a user calls it
    "train": "train", "answer": "train and ask", "result": "compute",
    "figure": "draw figure", "site": "build book",
}  # fmt: skip
_JOB = re.compile(r"^(?:local)?rule (?P<rule>\w+):$")
_FIELD = re.compile(r"^    (?P<name>[a-z]+): (?P<text>.*)$")
_DONE = re.compile(r"^(?P<done>\d+) of (?P<all>\d+) steps \(")
_TOTAL = re.compile(r"^total +(?P<all>\d+)$")
_TRAINING = re.compile(r"^(?P<setting>.+): step (?P<step>\d+) of (?P<steps>\d+), (?P<loss>.*)$")
_FAILED = re.compile(r"^Error in rule (?P<rule>\w+):$")
FAILED = "failed"
_NOTE = "cannot be run: "  # the Snakefile's own words on data that is not at hand


@dataclass(frozen=True)
class Job:
    """One step of the workflow, done or to be done."""

    rule: str
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{RULES.get(self.rule, self.rule)} {self.target}".rstrip()


def readable(reason: str) -> str:
    """Snakemake's reason in a reader's words.

    >>> readable("Missing output files: build/notebooks/attend/x.ipynb")
    'not made yet'
    >>> readable("Updated input files: notebooks/attend/x.md")
    'changed: notebooks/attend/x.md'
    """
    words = []
    for part in reason.split("; "):
        kind, _, files = part.partition(": ")
        match kind:
            case "Missing output files":
                words.append("not made yet")
            case "Updated input files":
                words.append(f"changed: {files}")
            case "Input files updated by another job":
                words.append(f"made anew: {_shortened(files)}")
            case "Set of input files has changed since last execution":
                words.append("it needs other files than before")
            case "Code has changed since last execution":
                words.append("its rule in the Snakefile changed")
            case "Forced execution":
                words.append("forced")
            case _ if kind.startswith("Params have changed"):
                words.append("code, settings or data behind it changed")
            case _:
                words.append(part)
    # What was never made needs no second reason.
    return words[0] if words[0] == "not made yet" else "; ".join(dict.fromkeys(words))


def _shortened(files: str) -> str:
    names = files.split(", ")
    return files if len(names) <= 2 else f"{names[0]} and {len(names) - 1} more"


class JobReader:
    """Reads Snakemake's log a line at a time; a job is told as soon as its reason is, or that it failed."""

    def __init__(self) -> None:
        self._rule, self._output, self._failed = "", "", False

    def feed(self, line: str) -> Job | None:
        """The job that this line completes, if it does; rules that only gather others are passed over."""
        if begun := _JOB.match(line) or _FAILED.match(line):
            self._rule, self._output = base_rule(begun["rule"]), ""
            self._failed = begun.re is _FAILED
        elif (found := _FIELD.match(line)) and self._rule in RULES:
            if found["name"] == "output":
                self._output = found["text"].split(", ")[0].removesuffix(" (corrupted)")
                if self._failed:
                    return Job(self._rule, _target(self._rule, self._output), FAILED)
            elif found["name"] == "reason":
                return Job(self._rule, _target(self._rule, self._output), readable(found["text"]))
        return None


def base_rule(rule: str) -> str:
    """``paper_result`` and ``run_result`` are kinds of ``result``."""
    return rule.rpartition("_")[2]


def _target(rule: str, output: str) -> str:
    """What a job makes, by the name a user knows."""
    path = PurePosixPath(output)
    if rule == "site":
        return ""
    if rule == "train":  # build/trained/<setting>-and-<number>-more-<hash>
        return re.sub(r"-[0-9a-f]{12}$", "", path.name)
    if rule == "answer":  # build/answers/<key>~<hash>
        return path.name.partition("~")[0]
    if rule == "figure":  # build/notebooks/attend/x.ipynb, build/runs/attend-x-0123456789ab/x.ipynb
        parts = path.with_suffix("").parts
        return "/".join(parts[2:]) if parts[1:2] != ("runs",) else parts[-1]
    return path.stem


def command(
    project: Project, targets: Iterable[str], jobs: int, *, config: dict[str, str], dry: bool
) -> list[str]:
    """The call of Snakemake. Its own lock is not used: it would outlive a killed process."""
    return [
        sys.executable, "-m", "snakemake", *targets,
        "--snakefile", str(project.root / "Snakefile"), "--directory", str(project.root),
        "--cores", str(jobs), "--keep-going", "--rerun-incomplete", "--nolock", "--nocolor",
        "--quiet", "host",
        *(["--dry-run"] if dry else []),
        *(["--config", *(f"{name}={value}" for name, value in config.items())] if config else []),
    ]  # fmt: skip


def _environment() -> dict[str, str]:
    """Ours, with the mirror of the data as seen from the caller's folder: jobs run in the checkout."""
    mirror = mirror_folder()
    absolute = {"ATTNLIB_DATA": str(mirror)} if mirror else {}
    return {**os.environ, **absolute, "PYTHONUNBUFFERED": "1"}


def planned(project: Project, targets: Iterable[str], config: dict[str, str]) -> tuple[list[Job], list[str]]:
    """What would be done, and why, without doing it; and a note on each result that cannot be made here.

    Raises:
        BadInput: the workflow cannot be planned; carries what Snakemake says.
    """
    done = subprocess.run(
        command(project, targets, 1, config=config, dry=True),
        capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    if done.returncode != 0:
        raise BadInput(f"the workflow cannot be planned:\n{_last_words(done.stdout + done.stderr)}")
    reader = JobReader()
    lines = (done.stdout + done.stderr).splitlines()
    jobs = [job for line in lines if (job := reader.feed(line))]
    return jobs, [line for line in lines if line.startswith(_NOTE)]


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-12:])


@contextmanager
def sole_worker(project: Project) -> Iterator[int]:
    """Two builds of one checkout never run at once.

    Yields:
        the lock's file descriptor. A process that inherits it holds the lock until it ends, so that a killed
        attnlib leaves the checkout locked for as long as the work it started goes on.

    Raises:
        BadInput: another build is at work, or the build folder cannot be written.
    """
    path = project.build / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a+")
    except OSError as error:
        raise BadInput(
            f"cannot write into {path.parent}: {error.strerror}; the book is built there"
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput("another attnlib is building this checkout; wait for it to end") from error
        yield handle.fileno()


@dataclass(frozen=True)
class Outcome:
    """How a call of the workflow ended: Snakemake's exit code, and the rules of the jobs that failed."""

    code: int
    failed: frozenset[str]


def run(project: Project, targets: Iterable[str], jobs: int, config: dict[str, str] | None = None) -> Outcome:
    """Do what is out of date for ``targets`` and show it; a failed job does not hold up the others."""

    with sole_worker(project) as lock, Display() as display, subprocess.Popen(
        command(project, targets, jobs, config=config or {}, dry=False),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=_environment(),
        pass_fds=(lock,),
    ) as process:  # fmt: skip
        # Jobs write to standard output, Snakemake to standard error; two readers, so that no pipe fills.
        reader = threading.Thread(target=_follow_jobs, args=(process.stdout, display), daemon=True)
        reader.start()
        log, failed = _follow_engine(process.stderr, display)
        reader.join()
        code = process.wait()
        if code != 0 and not failed:
            display.say(f"error: the workflow cannot be planned:\n{_last_words(log)}")
    return Outcome(code, failed)


def _follow_jobs(stream, display) -> None:
    for line in stream:
        if found := _TRAINING.match(line.rstrip()):
            display.training(found["setting"], int(found["step"]), int(found["steps"]), found["loss"])
        elif line.strip():
            display.say(line.rstrip())


def _follow_engine(stream, display) -> tuple[str, frozenset[str]]:
    reader = JobReader()
    log, failed = [], set()
    for line in stream:
        log.append(line.rstrip())
        if job := reader.feed(log[-1]):
            display.start(job)
            if job.reason == FAILED:
                failed.add(job.rule)
        elif found := _DONE.match(line):
            display.done(int(found["done"]), int(found["all"]))
        elif found := _TOTAL.match(log[-1]):
            display.done(0, int(found["all"]))
        elif line.startswith(_NOTE):
            display.say(log[-1])
    return "\n".join(log), frozenset(failed)


class Display:
    """Bars for the whole and for every training in progress; lines alone where it is not a terminal."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"), console=self.console, transient=True,
            disable=not self.console.is_terminal,
        )  # fmt: skip
        self._whole = self._bars.add_task("looking for what is out of date", total=None, note="")
        self._trainings: dict[str, TaskID] = {}

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        """A line above the bars; errors in red."""
        self.console.print(Text(line, style="red" if line.startswith("error:") else ""), soft_wrap=True)

    def start(self, job) -> None:
        """A job begins, and why; or it has failed."""
        self._bars.update(self._whole, description="all jobs")
        self.console.print(
            Text.assemble(str(job), (f"  ({job.reason})", "red" if job.reason == "failed" else "dim")),
            soft_wrap=True,
        )

    def done(self, count: int, total: int) -> None:
        """``count`` of ``total`` jobs are done."""
        self._bars.update(self._whole, description="all jobs", completed=count, total=total)

    def training(self, setting: str, step: int, steps: int, note: str) -> None:
        """A training has come to ``step`` of ``steps``; its bar goes when it ends."""
        if setting not in self._trainings:
            self._trainings[setting] = self._bars.add_task(setting, total=steps, note=note)
        self._bars.update(self._trainings[setting], completed=step, note=note)
        if step >= steps:
            self._bars.remove_task(self._trainings.pop(setting))
