"""What a build would do and why, in a line for each figure, from the dry run of Snakemake: ``--explain``."""

import re
from collections.abc import Iterable, Iterator

MOST_FILES = 3  # that a line names
_JOB = re.compile(r"^Job \d+: make (.+)")
_OWN_RUN = re.compile(r"--run build/runs/(.+)/run\.json")
_REASON = re.compile(r"^Reason: (.*)")
_NO_REASON = re.compile(r"^(\[|Job stats:|Reasons:|This was a dry-run)")  # what follows the reasons of a job
# What Snakemake says, and what it is about; files follow a colon.
_SAID = {
    "Missing output files": "it was never made, or was deleted",
    "Updated input files": "changed: {files}",
    "Input files updated by another job": "it shows the figures above",
    "Set of input files has changed since last execution": "it rests on other files than before",
    "Params have changed since last execution": "the committed result of the paper profile changed",
    "Code has changed since last execution": "the rule of the Snakefile changed",
    "Forced execution": "it was asked for",
}


def explained(lines: Iterable[str]) -> Iterator[str]:
    """Yield a line for each job of a dry run, and how many there are.

    >>> log = ["Job 3: make attend/one", "Reason: Updated input files: notebooks/attend/one.md"]
    >>> list(explained(log))
    ['make attend/one: changed: notebooks/attend/one.md', '1 to be made; nothing was made now']
    """
    n_jobs = 0
    job = ""
    reason = ""
    for line in [*lines, "Job stats:"]:
        if started := _JOB.match(line):
            job = _OWN_RUN.sub(r"the run \1", started[1])
        elif reasons := _REASON.match(line):
            reason = reasons[1]
        elif reason and not _NO_REASON.match(line):
            continue  # hashes of what changed
        if reason and _NO_REASON.match(line) and job:
            n_jobs += 1
            yield f"make {job}: {_in_words(reason)}"
            job = reason = ""
    yield f"{n_jobs} to be made; nothing was made now" if n_jobs else "everything is up to date"


def _in_words(reason: str) -> str:
    """Return the reasons of a job in words; one that is not known as Snakemake gives it."""
    words = []
    for part in reason.split("; "):
        name, _, content = part.partition(":")
        names = content.strip().split(", ")
        known = _SAID.get(name.strip(), part)
        words.append(known.format(files=_first_of(names)))
    return "; ".join(words)


def _first_of(files: list[str]) -> str:
    first = ", ".join(sorted(files)[:MOST_FILES])
    n_others = len(files) - MOST_FILES
    return f"{first} and {n_others} more" if n_others > 0 else first
