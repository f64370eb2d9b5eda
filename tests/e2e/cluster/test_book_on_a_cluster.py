"""The book's paper profile on a cluster: its jobs and what they ask for."""

import re
import sys

import pytest
import yaml

from companion.results import registry
from tests.companion.book.book_builders import ROOT, copied, output_of


@pytest.mark.long
def test_on_a_cluster_every_model_is_a_job_with_the_resources_of_a_training(tmp_path):
    """A dry run in a checkout without results or models; its tasks are synthetic and need no data."""
    profile, name = "profiles/slurm/config.yaml", "robustness"
    copied(tmp_path, "Snakefile", profile, f"notebooks/attend/{name}.md")
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", "--dry-run", "paper"]
    output = output_of(command, tmp_path, ATTNLIB_ROOT=str(tmp_path), PYTHONPATH=str(ROOT))
    rules = re.findall(r"^rule (\w+):\n(?:    .*\n)*?    resources: (.*)$", output, re.MULTILINE)
    jobs = [(rule, dict(pair.split("=", 1) for pair in line.split(", "))) for rule, line in rules]
    trainings = [resources for rule, resources in jobs if rule == "answer"]
    experiment = registry.load(name)
    assert len(trainings) == len(set(experiment.models(experiment.PROFILES["paper"])))
    settings = yaml.safe_load((ROOT / profile).read_text(encoding="utf-8"))
    asked = {"cpus_per_task": 1, **settings["set-resources"]["answer"]}
    for resources in trainings:
        assert {name: int(resources[name]) for name in asked} == asked
    (result,) = [resources for rule, resources in jobs if rule == "paper_result"]
    assert int(result["runtime"]) < asked["runtime"]
    assert "cores" not in settings  # it would be the number of jobs at once, all of one thread
