# The book, from trained networks to the site. `snakemake --cores 2` brings everything up to date and says why it
# redoes what it redoes; `attnlib book` and `attnlib run` call it. Elsewhere, add an executor:
# `snakemake --executor slurm --jobs 100`.
#
#   snakemake --cores 2                 the book at the quick profile
#   snakemake --cores 2 figures         its executed notebooks only
#   snakemake --cores 2 paper           the published numbers, results/paper/ (hours)
#
# A figure of the book is one job: it computes its result, with the networks and measurements that it lacks, and
# draws. It is redone when a file changes that it rests on, by the imports of its code. The store's locks see to it
# that each network is trained once, whoever comes first. A committed result of the paper profile rests on runs
# and measurements, by id and version; a job a run measures what is missing.

import os
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from attnlib.files import locked
from companion.book import plan, workflow as calls
from companion.book.project import Project, discover
from companion.results import registry
from companion.results.request import Request

PROJECT = Project(ROOT)
FIGURES = discover(PROJECT)
EXPERIMENTS = {figure.experiment: figure for figure in FIGURES.values() if figure.experiment in registry.names()}

# One thread a job: trainings give the same bits, and the jobs share the cores.
# Kernels and jobs find the three rooms from whatever folder they work in.
PATH = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PATH, ATTNLIB_PYTHON=sys.executable, ATTNLIB_ROOT=str(ROOT), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
envvars: "PYTHONPATH", "ATTNLIB_PYTHON", "ATTNLIB_ROOT", "OMP_NUM_THREADS", "MKL_NUM_THREADS"


# One build at a time: attnlib holds the lock where it called, and ends with what it called.
LOCK = ExitStack()
if calls.CALLER in os.environ and workflow.is_main_process:
    calls.end_with_caller()


onstart:
    if calls.CALLER not in os.environ:
        LOCK.enter_context(locked(PROJECT.build))
    # Snakemake starts at most a hundred jobs a second. To that end it looks every second at all jobs that wait, and
    # once more for each that has ended: half a minute of a book's processor time. On one machine nothing is held back.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


onsuccess: LOCK.close()
onerror: LOCK.close()


def files(folder, *patterns):
    """Sources below a folder, relative to the checkout."""
    found = {path for pattern in patterns for path in (ROOT / folder).rglob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)


@cache
def files_of(figure):
    return plan.files_of(PROJECT, FIGURES[figure])


def request_of(run):
    return plan.request_of_run(PROJECT, run)


def measured(request):
    """Marks of the runs of the paper profile that lack a measurement which a request asks for."""
    return [f"build/answered/{run}~{asked}" for run, asked in plan.missing_of(PROJECT, request).items()]


@cache
def missing_results():
    """Experiments whose committed result is not there, or not by today's runs and versions."""
    return [
        name for name in EXPERIMENTS
        if "paper" in registry.load(name).PROFILES and not plan.paper_is_current(PROJECT, name)
    ]


# A committed result that is current is a source; no rule may remake it. They are looked at where the request is for
# the paper profile alone, since that takes torch.
WANTS_PAPER = any("paper" in word for word in sys.argv[1:])
REMADE = "|".join(missing_results()) if WANTS_PAPER else ""


wildcard_constraints:
    key=r"[^/]+",
    run=r"[^/]+",
    experiment=r"(?!run\.)[a-z0-9_]+",  # no rule makes a run.json


rule book:
    input:
        "build/_build/html/index.html",
        [f"build/notebooks/{figure}.ipynb" for figure in FIGURES],  # one that failed is tried again
    message: "the book is up to date"


rule figures:
    input: [f"build/notebooks/{figure}.ipynb" for figure in FIGURES]
    message: "the figures are up to date"


rule paper:
    input: lambda _: [f"results/paper/{name}.json" for name in EXPERIMENTS if "paper" in registry.load(name).PROFILES]
    message: "the paper profile is up to date"


rule figure:
    input: lambda w: files_of(w.figure)
    output: "build/notebooks/{figure}.ipynb"
    params:
        arguments=lambda w: w.figure,
        paper=lambda w: plan.paper_result(PROJECT, FIGURES[w.figure]),
    priority: lambda w: 1 + int(plan.seconds(PROJECT, FIGURES[w.figure]))  # the longest first, so that no core waits in the end
    message: "make {params.arguments}"
    shell: '"$ATTNLIB_PYTHON" -m companion.book.execute {params.arguments}'


# A job a run: train its network, measure all that the paper-sized experiments ask for, keep the measurements. What is
# in the archive already, on whatever machine, needs no job.
rule answer:
    output: touch("build/answered/{key}~{asked}")
    shell: '"$ATTNLIB_PYTHON" -m companion.results.answer {wildcards.key:q} >/dev/null'


rule paper_result:
    input: lambda w: measured(Request(w.experiment, "paper"))
    output: "results/paper/{experiment}.json"
    wildcard_constraints: experiment=REMADE or "none_is_missing"
    shell: '"$ATTNLIB_PYTHON" -m companion.results {wildcards.experiment} --profile paper --committed >/dev/null'


use rule figure as paper_figure with:
    input:
        lambda w: files_of(w.figure),
        lambda w: f"results/paper/{FIGURES[w.figure].experiment}.json" if FIGURES[w.figure].experiment in EXPERIMENTS else [],
    output: "build/notebooks-paper/{figure}.ipynb"
    params:
        arguments=lambda w: f"{w.figure} --profile paper",
        paper="",


rule site:
    input:
        rules.figures.input,
        "_config.yml",
        files("book", "*"),
        files("claims", "*"),
        files("companion", "*.jinja"),  # the scorecard and its verdicts
        [files(room, "*.py") for room in ("attnlib", "companion", "notebooks")],  # the reference pages are made from docstrings
        [name for name in ("README.md", "CHANGELOG.md", "CITATION.cff", "results/sentinels.json") if (ROOT / name).is_file()],
    output: "build/_build/html/index.html"
    params: results={name: plan.paper_result(PROJECT, figure) for name, figure in FIGURES.items()}
    message: "make site"
    shell: '"$ATTNLIB_PYTHON" -m companion.book.site >/dev/null'


# A run with parameters of its own, by the run.json that `attnlib run -p` leaves in its folder.
use rule figure as run_figure with:
    input:
        lambda w: files_of(request_of(w.run).figure),
        lambda w: measured(request_of(w.run)) if plan.shares_archive(request_of(w.run)) else [],
        "build/runs/{run}/run.json",
    output: "build/runs/{run}/{experiment}.ipynb"
    params:
        arguments=lambda w: f"--run build/runs/{w.run}/run.json",
        paper="",
    priority: 0
