"""On a real scheduler, the paper profile and an analysis in shards give the bytes that they give here."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.attnlib.analysis.builders import save_traces
from tests.companion.book import slurm
from tests.companion.book.book_builders import ROOT, at_work, checkout_of_two, output_of, until
from tests.companion.book.test_analyse_workflow import SNAKEMAKE as ANALYSIS
from tests.companion.book.test_analyse_workflow import home

SNAKEMAKE = [sys.executable, "-m", "snakemake"]
SOON = ["--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"]
SOON += ["--latency-wait", "10", "--slurm-status-command", "squeue"]  # sacct needs a database
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(slurm.why_not()), reason=slurm.why_not())]


@pytest.fixture(scope="module")
def cluster():
    with slurm.cluster() as environment:
        yield environment


def kill_one(checkout, module: str) -> None:
    """Kill the process of one job, once it trains."""
    found: list[int] = []

    def trains() -> bool:
        found[:] = [number for number, command in at_work(checkout) if command[1:3] == ["-m", module]]
        return bool(found) and any(checkout.glob("build/models/*/.lock"))

    until(trains, 300)
    os.kill(found[0], signal.SIGKILL)


def test_the_paper_profile_survives_a_killed_job_with_the_same_numbers(cluster, tmp_path):
    checkout = checkout_of_two(tmp_path)
    command = [*SNAKEMAKE, "--profile", "profiles/slurm", *SOON, "paper"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    own = cluster | {"PYTHONPATH": str(checkout), "ATTNLIB_ROOT": str(checkout)}
    process = subprocess.Popen(command, cwd=checkout, env=own, **pipes)
    try:
        kill_one(checkout, "companion.runs.answer")
        said = process.communicate(timeout=400)[0]
    finally:
        process.kill()
    assert process.returncode == 0, said
    submitted = set(re.findall(r"SLURM jobid (\d+)", said))
    assert len(submitted) == 4, said  # two networks, one of them twice, and the result
    first = (checkout / "results" / "paper" / "temporal_share.json").read_bytes()
    shutil.rmtree(checkout / "build")
    shutil.rmtree(checkout / "results")
    output_of([*SNAKEMAKE, "--cores", "2", "paper"], checkout, **own)
    assert (checkout / "results" / "paper" / "temporal_share.json").read_bytes() == first


def test_an_analysis_in_shards_gives_the_bytes_of_one_without_a_cluster(cluster, tmp_path):
    """Under any name: a cluster's shell runs nothing of it."""
    name = 'it\'s "x" $(touch ran) `touch ran`'
    save_traces(tmp_path / name, *range(4))
    given = {}
    for out, where in (("there", ["--executor", "slurm", "--jobs", "4", *SOON]), ("here", ["--cores", "1"])):
        config = [f"traces={name}", f"out={out}", "shards=2", "options=--every 2"]
        own = cluster | home(tmp_path) | {"PYTHONPATH": str(ROOT)}
        output_of([*ANALYSIS, *where, "--config", *config], tmp_path, **own)
        files = sorted((tmp_path / out).glob("[!.]*.*"))
        # run.json says when the last command ran.
        given[out] = {path.name: path.read_bytes() for path in files if path.name != "run.json"}
    assert given["there"] == given["here"]
    assert "index.html" in given["here"]
    assert not list(tmp_path.rglob("ran"))
