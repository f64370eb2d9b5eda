# The book, from trained models to the site. `snakemake --cores 2` brings everything up to date and says why it
# redoes what it redoes; `attnlib book` and `attnlib run` call it. Elsewhere, add an executor:
# `snakemake --executor slurm --jobs 100`.
#
#   snakemake --cores 2                 the book at the quick profile
#   snakemake --cores 2 figures         its executed notebooks only
#   snakemake --cores 2 paper           the published numbers, results/paper/ (hours)
#
# What a job depends on beyond its files (code, settings, data) enters as a hash in its `params`. A result trains
# the models that it lacks; the store's locks see to it that each is trained once, whoever comes first.

import os
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from attnlib.files import locked
from companion.book import warm
from companion.book.plan import ANSWERS, ARCHIVE, drawing_code, paper_result, planned, planned_run
from companion.book.project import Project, discover

PROJECT = Project(ROOT)
FIGURES = discover(PROJECT)

# One thread a job: trainings give the same bits, and the jobs share the cores.
# Kernels and jobs find the three rooms from whatever folder they work in.
PATH = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PATH, ATTNLIB_PYTHON=sys.executable, ATTNLIB_ROOT=str(ROOT), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
envvars: "PYTHONPATH", "ATTNLIB_PYTHON", "ATTNLIB_ROOT", "OMP_NUM_THREADS", "MKL_NUM_THREADS"


# Jobs of this machine are forked from one process that has imported what they need. One build at a time: attnlib
# holds the lock where it called, and ends with what it called.
WARM = ExitStack()
if warm.CALLER in os.environ and workflow.is_main_process:
    warm.end_with_caller()


onstart:
    if warm.CALLER not in os.environ:
        WARM.enter_context(locked(PROJECT.build))
    WARM.enter_context(warm.server())


onsuccess: WARM.close()
onerror: WARM.close()


def files(folder, *patterns):
    """Sources below a folder, relative to the checkout."""
    found = {path for pattern in patterns for path in (ROOT / folder).rglob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)


def results(profile):
    """Results of the figures at a profile that can be made here, or are there."""
    found = (planned(PROJECT, figure.experiment, profile) for figure in FIGURES.values())
    return [result.path for result in found if result and runnable(result)]


@cache
def missing_measurements():
    """Models of the paper profile that lack an answer, with a hash of what is measured of them."""
    from companion.runs.answer import unanswered
    from companion.runs.archive import Archive

    return unanswered("paper", Archive(ROOT / ARCHIVE, ROOT / ANSWERS))


def answers_of(result):
    """Marks of the answers that a result of the paper profile still lacks."""
    return [f"build/answered/{key}~{stamp}" for key, stamp in missing_measurements().items() if key in result.specs]


@cache
def runnable(result):
    """Whether the data behind a result is at hand; says so where it is not, and the rest goes on without."""
    if result.cannot_run and workflow.is_main_process:
        name, profile = result.request.experiment, result.request.profile
        print(f"cannot be run: data: {name} ({profile}): {result.cannot_run}", file=sys.stderr)
    return not result.cannot_run


def sources_of(figure, result):
    """The notebook and its result; a notebook whose result cannot be made shows the committed one instead."""
    return [f"notebooks/{figure}.md", *([result.path] if result and runnable(result) else [])]


def figure_of(name):
    return planned_run(PROJECT, name).request.figure


# A committed result that is current is a source; no rule may remake it.
PAPER = {figure.experiment: planned(PROJECT, figure.experiment, "paper") for figure in FIGURES.values()}
STALE = [name for name, result in PAPER.items() if result and not result.current]


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
    input: lambda _: results("paper")
    message: "the paper profile is up to date"


rule result:
    output: "build/results/quick/{experiment}.json"
    params:
        arguments=lambda w: planned(PROJECT, w.experiment, "quick").arguments,
        stamp=lambda w: planned(PROJECT, w.experiment, "quick").stamp,
    priority: lambda w: 1 + int(planned(PROJECT, w.experiment, "quick").seconds)  # the longest first, so that no core waits for one in the end
    message: "compute {wildcards.experiment}"
    shell: '"$ATTNLIB_PYTHON" -m companion.book.warm companion.results {params.arguments} >/dev/null'


# A job a model: train it, answer all that the paper-sized experiments ask, keep the answers. What is answered in
# the archive already, on whatever machine, needs no job.
rule answer:
    output: touch("build/answered/{key}~{stamp}")
    shell: '"$ATTNLIB_PYTHON" -m companion.runs.answer {wildcards.key:q} >/dev/null'


rule paper_result:
    input: lambda w: answers_of(PAPER[w.experiment])
    output: "results/paper/{experiment}.json"
    params:
        arguments=lambda w: PAPER[w.experiment].arguments,
        stamp=lambda w: PAPER[w.experiment].stamp,
    wildcard_constraints: experiment="|".join(STALE) or "none_is_stale"
    shell: rules.result.rule.shellcmd


rule figure:
    input: lambda w: sources_of(w.figure, planned(PROJECT, FIGURES[w.figure].experiment, "quick"))
    output: "build/notebooks/{figure}.ipynb"
    params:
        arguments=lambda w: w.figure,
        drawing=lambda w: drawing_code(PROJECT, FIGURES[w.figure]),
        paper=lambda w: paper_result(PROJECT, FIGURES[w.figure]),
    message: "draw {params.arguments}"
    shell: '"$ATTNLIB_PYTHON" -m companion.book.warm companion.book.execute {params.arguments}'


use rule figure as paper_figure with:
    input: lambda w: sources_of(w.figure, PAPER[FIGURES[w.figure].experiment])
    output: "build/notebooks-paper/{figure}.ipynb"
    params:
        arguments=lambda w: f"{w.figure} --profile paper",
        drawing=lambda w: drawing_code(PROJECT, FIGURES[w.figure]),
        paper="",


rule site:
    input:
        rules.figures.input,
        lambda _: results("quick"),  # for the scorecard
        "_config.yml",
        files("book", "*"),
        files("claims", "*"),
        files("companion", "*.jinja"),  # the scorecard and its verdicts
        [files(room, "*.py") for room in ("attnlib", "companion", "notebooks")],  # the reference pages are made from docstrings
        [name for name in ("README.md", "CHANGELOG.md", "CITATION.cff") if (ROOT / name).is_file()],
    output: "build/_build/html/index.html"
    params: results={name: paper_result(PROJECT, figure) for name, figure in FIGURES.items()}
    message: "put the book together"
    shell: '"$ATTNLIB_PYTHON" -m companion.book.site >/dev/null'


# A run with parameters of its own, by the run.json that `attnlib run -p` leaves in its folder.
use rule result as run_result with:
    input:
        lambda w: answers_of(planned_run(PROJECT, w.run)) if planned_run(PROJECT, w.run).archived else [],
        "build/runs/{run}/run.json",
    output: "build/runs/{run}/{experiment}.json"
    params:
        arguments=lambda w: planned_run(PROJECT, w.run).arguments,
        stamp=lambda w: planned_run(PROJECT, w.run).stamp,
    priority: 0


use rule figure as run_figure with:
    input:
        lambda w: sources_of(figure_of(w.run), planned_run(PROJECT, w.run)),
        "build/runs/{run}/run.json",
    output: "build/runs/{run}/{experiment}.ipynb"
    params:
        arguments=lambda w: f"{figure_of(w.run)} --run build/runs/{w.run}/run.json",
        drawing=lambda w: drawing_code(PROJECT, FIGURES[figure_of(w.run)]),
        paper="",
