# The book, from trained models to the site. `snakemake --cores 2` brings everything up to date and says why it
# redoes what it redoes; `attnlib book` and `attnlib run` call it and add progress bars. Elsewhere, add an executor:
# `snakemake --executor slurm --jobs 100`.
#
#   snakemake --cores 2                 the book at the quick profile
#   snakemake --cores 2 figures         its executed notebooks only
#   snakemake --cores 2 paper           the published numbers, results/paper/ (hours)
#
# What a job depends on beyond its files (code, settings, data) enters as a hash in its `params`. Jobs say what they
# do on standard error; it is sent to standard output, which keeps it apart from Snakemake's own words.

import os
import sys
from functools import cache
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from companion.book.plan import ANSWERS, ARCHIVE, Plan, Run
from companion.book.project import Project

PROJECT = Project(ROOT)
QUICK, PAPER = Plan(PROJECT, "quick"), Plan(PROJECT, "paper")
RUN = Run.read(config["run"]) if "run" in config else None
OWN = Plan(PROJECT, RUN.profile, RUN) if RUN else None
PLANS = [plan for plan in (QUICK, OWN) if plan]
BATCHES = {batch.name: batch for plan in PLANS for batch in plan.batches}
# Begun before all else: results that train further networks in their own job, and what these wait for.
TAILS = [name for plan in PLANS for name in plan.long_tails]
FIRST = [Path(mark).name for plan in PLANS for name in plan.long_tails for mark in plan.trained(plan.results[name])]
# A committed result that is current is a source; no rule may remake it.
STALE = [name for name, result in PAPER.results.items() if not result.current]

# One thread a job: trainings give the same bits, and the jobs share the cores.
# Kernels and jobs find the three rooms from whatever folder they work in.
PATH = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ.update(PYTHONPATH=PATH, ATTNLIB_PYTHON=sys.executable, ATTNLIB_ROOT=str(ROOT), OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
envvars: "PYTHONPATH", "ATTNLIB_PYTHON", "ATTNLIB_ROOT", "OMP_NUM_THREADS", "MKL_NUM_THREADS"


def files(folder, *patterns):
    """Sources below a folder, relative to the checkout."""
    found = {path for pattern in patterns for path in (ROOT / folder).rglob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)


@cache
def asked_still():
    """Models of the paper profile that lack an answer, with a hash of what they are asked."""
    from companion.results.answer import unanswered
    from companion.runs.archive import Archive

    return unanswered("paper", Archive(ROOT / ARCHIVE, ROOT / ANSWERS))


def answers_of(result):
    """Marks of the answers that a result of the paper profile still lacks."""
    return [f"build/answered/{key}~{stamp}" for key, stamp in asked_still().items() if key in result.specs]


@cache
def runnable(result):
    """Whether the data behind a result is at hand; says so where it is not, and the rest goes on without."""
    if result.cannot_run and workflow.is_main_process:
        print(f"cannot be run: data: {result.experiment} ({result.profile}): {result.cannot_run}", file=sys.stderr)
    return not result.cannot_run


def sources_of_figure(plan, figure):
    """The notebook and its result; a notebook whose result cannot be made shows the committed one instead."""
    result = plan.result_of(figure)
    return [f"notebooks/{figure}.md", *([result.path] if result and runnable(result) else [])]


wildcard_constraints:
    key=r"[^/]+",
    experiment=r"[a-z0-9_]+",


rule book:
    input: "build/_build/html/index.html"


rule figures:
    input: [f"build/notebooks/{figure}.ipynb" for figure in QUICK.figures]


rule paper:
    input: lambda _: [result.path for result in PAPER.results.values() if runnable(result)]


# What is trained: models, and runs of recipes, some in one process. A product that is there is not made again.
rule train:
    output: touch("build/trained/{batch}")
    params:
        module=lambda w: BATCHES[w.batch].module,
        specs=lambda w: BATCHES[w.batch].arguments,
    shell: '"$ATTNLIB_PYTHON" -m {params.module} {params.specs} --models build/models 2>&1 >/dev/null'


rule result:
    input: lambda w: QUICK.trained(QUICK.results[w.experiment])
    output: "build/results/quick/{experiment}.json"
    params:
        arguments=lambda w: QUICK.results[w.experiment].arguments,
        stamp=lambda w: QUICK.results[w.experiment].stamp,
    shell: '"$ATTNLIB_PYTHON" -m companion.results {params.arguments} 2>&1 >/dev/null'


use rule train as first_train with:
    priority: 1
    wildcard_constraints: batch="|".join(FIRST) or "none_is_first"


use rule result as first_result with:
    priority: 1
    wildcard_constraints: experiment="|".join(TAILS) or "none_is_first"


ruleorder: first_train > train
ruleorder: first_result > result


# A job a model: train it, answer all that the paper-sized experiments ask, keep the answers. What is answered in
# the archive already, on whatever machine, needs no job.
rule answer:
    output: touch("build/answered/{key}~{stamp}")
    shell: '"$ATTNLIB_PYTHON" -m companion.results.answer {wildcards.key:q} --archive {ARCHIVE} --answers {ANSWERS} --models build/models 2>&1 >/dev/null'


use rule result as paper_result with:
    input: lambda w: answers_of(PAPER.results[w.experiment])
    output: "results/paper/{experiment}.json"
    params:
        arguments=lambda w: PAPER.results[w.experiment].arguments,
        stamp=lambda w: PAPER.results[w.experiment].stamp,
    wildcard_constraints: experiment="|".join(STALE) or "none_is_stale"


rule figure:
    input: lambda w: sources_of_figure(QUICK, w.figure)
    output: "build/notebooks/{figure}.ipynb"
    params:
        arguments=lambda w: w.figure,
        drawing=lambda w: QUICK.drawing_code(w.figure),
        paper=lambda w: QUICK.paper_result(w.figure),
    shell: '"$ATTNLIB_PYTHON" -m companion.book.execute {params.arguments} 2>&1'


use rule figure as paper_figure with:
    input: lambda w: sources_of_figure(PAPER, w.figure)
    output: "build/notebooks-paper/{figure}.ipynb"
    params:
        arguments=lambda w: f"{w.figure} --profile paper",
        drawing=lambda w: PAPER.drawing_code(w.figure),
        paper="",


rule site:
    input:
        [f"build/notebooks/{figure}.ipynb" for figure in QUICK.figures],
        lambda _: [result.path for result in QUICK.results.values() if runnable(result)],  # for the scorecard
        "_config.yml",
        files("book", "*"),
        files("claims", "*"),
        files("companion", "*.py", "*.jinja"),  # the scorecard and its verdicts
        [files(room, "*.py") for room in ("attnlib", "companion")],  # the reference pages are made from docstrings
        [name for name in ("README.md", "CHANGELOG.md", "CITATION.cff") if (ROOT / name).is_file()],
    output: "build/_build/html/index.html"
    params: results={name: QUICK.paper_result(name) for name in QUICK.figures}
    shell: '"$ATTNLIB_PYTHON" -m companion.book.site 2>&1 >/dev/null'


if OWN:
    result = OWN.result_of(RUN.figure)
    folder = Path(RUN.folder).relative_to(ROOT).as_posix()

    if result and not result.current:
        use rule result as run_result with:
            input: answers_of(result) if result.archived else OWN.trained(result)
            output: result.path
            params: arguments=result.arguments, stamp=result.stamp

    use rule figure as run_figure with:
        input: sources_of_figure(OWN, RUN.figure), f"{folder}/run.json"
        output: f"{folder}/{OWN.figures[RUN.figure].experiment}.ipynb"
        params:
            arguments=f"{RUN.figure} --run {folder}/run.json",
            drawing=OWN.drawing_code(RUN.figure),
            paper="",
