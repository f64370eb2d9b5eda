"""How far a build is, in one line: figures done of all, and minutes left by what they took last time.

Each job notes its seconds in ``build/times.jsonl`` as it ends; ``seconds.json`` beside this module has what
they took on two quiet cores, for a first build. Whoever started the build follows the log of Snakemake, which
goes to a file. ``python -m companion.book.progress`` writes ``seconds.json`` from the notes.
"""

import json
import re
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TextIO

from attnlib.files import write_json_atomic
from companion.book.project import current_project

SITE = "site"
USUAL = 15.0  # seconds that a job is taken to need of which nobody has noted any
SHIPPED = Path(__file__).with_name("seconds.json")
NOTES = "times.jsonl"

# What the rules of the Snakefile make; others only name what is to be made.
_MADE_BY = {
    "answer": "networks",
    "paper_result": "results",
    "figure": "figures",
    "paper_figure": "figures",
    "run_figure": "figures",
    "run_paper_figure": "figures",
    "site": "site",
}
_PLANNED = re.compile(rf"^({'|'.join(_MADE_BY)}) +(\d+)$")
_STARTED = re.compile(r"^Job (\d+): make (.+?)\s*$")  # a figure, with its profile or run where it has one
_ENDED = re.compile(rf"^Finished jobid: (\d+) \(Rule: ({'|'.join(_MADE_BY)})\)")
_SHOWN = ("error:", "cannot be run:", "downloading ")  # beginnings of lines that a reader has to see


def note(build: Path, job: str, seconds: float) -> None:
    """Note what a job took. The line is written at once, so that those of two jobs do not mix."""
    build.mkdir(parents=True, exist_ok=True)
    with (build / NOTES).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps({"job": job, "seconds": round(seconds, 1)}) + "\n")


def last_seconds(build: Path) -> dict[str, float]:
    """Seconds that each job took when it ran last, here or else when ``seconds.json`` was written."""
    return _shipped() | noted_seconds(build)


def noted_seconds(build: Path) -> dict[str, float]:
    """Seconds that each job took when it ran last in this checkout."""
    seconds: dict[str, float] = {}
    path = build / NOTES
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                seconds[entry["job"]] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):  # cut off by a kill; the next build notes it again
                continue
    return seconds


@cache
def _shipped() -> dict[str, float]:
    return json.loads(SHIPPED.read_text(encoding="utf-8")) if SHIPPED.is_file() else {}


def _is_of_book(job: str) -> bool:
    """Return True for a quick figure of the book or the site; other jobs have options behind their names."""
    return " " not in job


class Progress:
    """Follows the log of Snakemake and shows how far the build is.

    Args:
        build: folder of the notes.
        at_once: how many jobs run at once.
        stream: where the line goes: rewritten in place on a terminal, else a new one for the first job that
            starts and for each that ends.
    """

    def __init__(self, build: Path, at_once: int, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.at_once = at_once
        self.seconds = last_seconds(build)
        self._noted = noted_seconds(build).keys()
        self.planned: Counter[str] = Counter()  # how many networks, results, figures and sites
        self.done: Counter[str] = Counter()
        self.started: dict[str, float] = {}  # when, by job
        self._jobs: dict[str, str] = {}  # that run, by their numbers in the log
        self._taken = self._expected = 0.0  # seconds of the jobs that ended, and what they took last time
        self._shown = ""

    def read(self, line: str) -> None:
        """Take a line of the log."""
        line = line.rstrip("\n")
        if planned := _PLANNED.match(line):
            self.planned[_MADE_BY[planned[1]]] += int(planned[2])
        elif started := _STARTED.match(line):
            number, job = started.groups()
            self._jobs[number] = job
            self.started[job] = time.monotonic()
            if not self._shown:  # the first job may take minutes
                self.show()
        elif ended := _ENDED.match(line):
            number, rule = ended.groups()
            self._compare(self._jobs.pop(number, None))
            self.done[_MADE_BY[rule]] += 1
            self.show()
        elif line.startswith(_SHOWN):
            self._print_above(line)

    def _compare(self, job: str | None) -> None:
        """Count what a job took that ended, beside what it took last time."""
        if job in self.started and job in self.seconds:
            self._taken += time.monotonic() - self.started[job]
            self._expected += self.seconds[job]

    def slowness(self) -> float:
        """How many times longer jobs take here than last time, on a slow or busy machine; at least 1."""
        return max(1.0, self._taken / self._expected) if self._expected else 1.0

    def seconds_left(self) -> float:
        """What the jobs that are still to come take, shared out over those that run at once."""
        coming = self._n_coming()
        known = [
            seconds for job, seconds in self.seconds.items() if job not in self.started and _is_of_book(job)
        ]
        usual = sum(known) / len(known) if known else USUAL
        slowness = self.slowness()
        under_way = 0.0
        for job in self._jobs.values():
            passed = time.monotonic() - self.started[job]
            under_way += max(0.0, slowness * self.seconds.get(job, usual) - passed)
        return (coming * slowness * usual + under_way) / self.at_once

    def _n_coming(self) -> int:
        return max(0, self.planned.total() - len(self.started))

    def _left_in_words(self) -> str:
        """Return how long it still takes, and what that presumes where the jobs have not run here before."""
        minutes = self.seconds_left() / 60
        left = "less than a minute left" if minutes < 1 else f"about {minutes:.0f} min left"
        if self._n_coming() or self.done.total():
            return left
        if any(job not in self.seconds for job in self._jobs.values()):
            return "it has not run here before, so the time left is not known"
        if any(job not in self._noted for job in self._jobs.values()):
            return f"{left} if its networks are trained already"
        return left

    def show(self) -> None:
        """Show the line, in place of the last one where the stream is a terminal."""
        text = self.text()
        if self.stream.isatty():
            self.stream.write(f"\r{text:<{len(self._shown)}}")
        else:
            self.stream.write(f"{text}\n")
        self._shown = text
        self.stream.flush()

    def text(self) -> str:
        """Return the line: what is made of all, and minutes left.

        >>> progress = Progress(Path("build"), at_once=2)
        >>> for line in ("figure 34", "site 1", "Finished jobid: 3 (Rule: figure)"):
        ...     progress.read(line)
        >>> progress.text().partition(",")[0]
        '1 of 34 figures'
        """
        counts = [
            f"{self.done[what]} of {planned} {what}"
            for what, planned in self.planned.items()
            if what != "site"
        ]
        made = ", ".join(counts)
        if self.done.total() >= self.planned.total():
            return made or "the site is made"
        left = self._left_in_words()
        if self.planned["site"] > self.done["site"]:
            left = f"{left}, the site included"
        return f"{made}, {left}" if made else left

    def close(self) -> None:
        """End the line that is rewritten in place."""
        if self.stream.isatty() and self._shown:
            self.stream.write("\n")

    def _print_above(self, line: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r{'':<{len(self._shown)}}\r")
        self.stream.write(f"{line}\n")
        self.stream.flush()


if __name__ == "__main__":
    project = current_project()
    of_book = {job: seconds for job, seconds in last_seconds(project.build).items() if _is_of_book(job)}
    write_json_atomic(SHIPPED, dict(sorted(of_book.items())))
