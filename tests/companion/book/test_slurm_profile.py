"""The SLURM profile: a dry run of the paper profile plans every training as a job of one thread."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from companion.results import registry

ROOT = Path(__file__).parents[3]
PROFILE = Path("profiles") / "slurm" / "config.yaml"
EXPERIMENT = "robustness"  # its tasks are made by rule, so that no data need be at hand


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> list[dict[str, str]]:
    """Rule and resources of every job of a dry run, in a checkout without results or models."""
    checkout = tmp_path_factory.mktemp("checkout")
    for path in (Path("Snakefile"), PROFILE, Path("notebooks") / "attend" / f"{EXPERIMENT}.md"):
        (checkout / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, checkout / path)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", "--dry-run", "paper"],
        cwd=checkout,
        env=os.environ | {"ATTNLIB_ROOT": str(checkout), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    blocks = re.findall(r"^rule (\w+):\n((?:    .*\n)+)", said, re.MULTILINE)
    return [{"rule": rule} | _resources(block) for rule, block in blocks]


def _resources(block: str) -> dict[str, str]:
    (line,) = re.findall(r"^    resources: (.*)$", block, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in line.split(", "))


def test_every_model_is_a_job_with_the_resources_of_a_training(jobs):
    trainings = [job for job in jobs if job["rule"] == "answer"]
    experiment = registry.load(EXPERIMENT)
    assert len(trainings) == len(set(experiment.models(experiment.PROFILES["paper"])))
    asked = yaml.safe_load((ROOT / PROFILE).read_text(encoding="utf-8"))["set-resources"]["answer"]
    for job in trainings:
        assert job["cpus_per_task"] == "1"
        assert {name: int(job[name]) for name in asked} == asked


def test_the_result_is_a_job_of_its_own(jobs):
    (result,) = [job for job in jobs if job["rule"] == "paper_result"]
    assert int(result["runtime"]) < int(next(job for job in jobs if job["rule"] == "answer")["runtime"])
    assert result["cpus_per_task"] == "1"


def test_the_profile_leaves_the_computing_to_slurm():
    profile = yaml.safe_load((ROOT / PROFILE).read_text(encoding="utf-8"))
    assert profile["executor"] == "slurm"
    assert profile["jobs"] > 1
    # `cores` would be the number of jobs at once, all of one thread.
    assert "cores" not in profile
    assert profile["retries"] >= 1
    assert profile["rerun-incomplete"]
