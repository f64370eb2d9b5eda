"""The workflow of an analysis in shards: the jobs it would hand in, and what it must be told."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = ("model=m", "source=a.txt", "target=b.txt")


def dry_run(folder, *config):
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        ROOT / "workflows/analyse.smk",
        "--cores",
        "1",
    ]
    command += ["--cores", "1", "--dry-run", "--printshellcmds", "--config", *config]
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | home
    )


def test_each_reading_is_a_job_a_shard_and_the_second_waits_for_all_of_the_first(tmp_path):
    done = dry_run(tmp_path, *TEXT, "out=report", "shards=3", "options=--layers 0-1")
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert {name: int(n) for name, n in re.findall(r"^(fit|judge|report) +(\d+)$", told, re.MULTILINE)} == {
        "fit": 3,
        "judge": 3,
        "report": 1,
    }
    commands = re.findall(r"attnlib\.cli analyse (.*)", told)
    assert len(commands) == 7
    assert all("--shards 3 --layers 0-1 --stage" in command for command in commands)
    firsts = [command for command in commands if "--stage fit" in command]
    assert sorted(command[-1] for command in firsts) == ["0", "1", "2"]
    assert max(map(commands.index, firsts)) < min(
        commands.index(command) for command in commands if "--stage judge" in command
    )


def test_what_is_missing_is_named(tmp_path):
    done = dry_run(tmp_path, "out=report", "model=m")
    assert done.returncode != 0
    assert "say --config shards=… source=… target=…" in done.stdout + done.stderr
