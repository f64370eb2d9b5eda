"""The workflow of an analysis in shards: its jobs, what it must be told, and what it does again."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

ROOT = Path(__file__).parents[3]
TEXT = ("model=m", "source=a.txt", "target=b.txt")


def snakemake(folder, *config, dry=False, where=("--cores", "1")):
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "workflows/analyse.smk"]
    command += [*where, *(["--dry-run"] if dry else []), "--printshellcmds", "--config", *config]
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | home
    )


def jobs_of(done):
    """How often each rule would run."""
    found = re.findall(r"^(fit|judge|report) +(\d+)$", done.stdout + done.stderr, re.MULTILINE)
    return {name: int(count) for name, count in found}


def test_each_reading_is_a_job_a_shard_and_the_second_waits_for_all_of_the_first(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    done = snakemake(tmp_path, *TEXT, "out=report", "shards=3", "options=--layers 0-1", dry=True)
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert jobs_of(done) == {"fit": 3, "judge": 3, "report": 1}
    commands = re.findall(r"attnlib\.cli analyse (.*)", told)
    assert len(commands) == 7
    assert all("--shards 3 --layers 0-1 --stage" in command for command in commands)
    firsts = [command for command in commands if "--stage fit" in command]
    assert sorted(command[-1] for command in firsts) == ["0", "1", "2"]
    assert max(map(commands.index, firsts)) < min(
        commands.index(command) for command in commands if "--stage judge" in command
    )


def test_the_same_on_a_cluster(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    config, where = (*TEXT, "out=report", "shards=8"), ("--executor", "slurm", "--jobs", "8")
    done = snakemake(tmp_path, *config, dry=True, where=where)
    assert done.returncode == 0, done.stderr
    assert jobs_of(done) == {"fit": 8, "judge": 8, "report": 1}


def test_what_is_missing_is_named(tmp_path):
    done = snakemake(tmp_path, "out=report", "model=m", dry=True)
    assert done.returncode != 0
    assert "say --config shards=… source=… target=…" in done.stdout + done.stderr


def test_a_text_that_is_not_there_is_named_before_any_job(tmp_path):
    done = snakemake(tmp_path, *TEXT, "out=report", "shards=1", dry=True)
    assert done.returncode != 0
    assert "a.txt" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Traces that are saved, and the report of two shards of them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "traces").mkdir()
    for number in range(4):
        save_trace(folder / "traces" / f"{number}.safetensors", number)
    done = snakemake(folder, *TRACES)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


TRACES = ("traces=traces", "out=report", "shards=2", "options=--every 2")


def save_trace(path, seed):
    rng = torch.Generator().manual_seed(seed)
    valid = torch.ones(2, 3, dtype=torch.bool)
    tokens = {f"{side}_tokens": torch.randint(9, (2, 3), generator=rng) for side in ("source", "target")}
    states = {f"cross.0.{side}_states": torch.randn(2, 3, 2, generator=rng) for side in ("query", "key")}
    save_file(tokens | states | {"source_mask": valid, "target_mask": valid.clone()}, path)


def test_what_is_made_is_not_made_again(made):
    done = snakemake(made, *TRACES, dry=True)
    assert "Nothing to be done" in done.stdout + done.stderr
    assert (made / "report/index.html").exists()


def test_other_traces_are_read_again_and_old_parts_refused(made, tmp_path):
    """Also where the file that takes the place of another is older."""
    folder = Path(shutil.copytree(made, tmp_path / "copy"))
    changed = folder / "traces/0.safetensors"
    before = changed.stat().st_mtime
    save_trace(changed, 99)
    os.utime(changed, (before - 1000, before - 1000))
    assert jobs_of(snakemake(folder, *TRACES, dry=True)) == {"fit": 2, "judge": 2, "report": 1}
    done = snakemake(folder, *TRACES)
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "is a part of another analysis (traces is" in said
    assert "delete report/parts to begin anew" in said


def test_other_options_are_another_analysis(made):
    asked = snakemake(made, *TRACES[:-1], "options=--every 1", dry=True)
    assert jobs_of(asked) == {"fit": 2, "judge": 2, "report": 1}


def test_a_part_that_was_deleted_is_made_again(made, tmp_path):
    """With the report, which is what is asked for; its mark has gone with the part."""
    folder = Path(shutil.copytree(made, tmp_path / "copy"))
    before = (folder / "report/index.html").read_bytes()
    shutil.rmtree(folder / "report/parts/fit-0-of-2")
    (folder / "report/index.html").unlink()
    done = snakemake(folder, *TRACES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert jobs_of(done) == {"fit": 1, "judge": 2, "report": 1}
    assert (folder / "report/parts/fit-0-of-2/sums.safetensors").exists()
    assert (folder / "report/index.html").read_bytes() == before


def test_a_changed_text_or_model_is_noticed(tmp_path):
    """Marks that are newer than all that was read: nothing to do, until one file is newer."""
    (tmp_path / "m").mkdir()
    files = [tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "m/model.safetensors"]
    marks = [tmp_path / f"report/parts/{stage}-0-of-1/done" for stage in ("fit", "judge")]
    for date, path in enumerate([*files, *marks, tmp_path / "report/index.html"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000 + date, 1000 + date))
    config = (*TEXT, "out=report", "shards=1")
    assert "Nothing to be done" in (done := snakemake(tmp_path, *config, dry=True)).stdout + done.stderr
    for path in files:
        before = path.stat().st_mtime
        os.utime(path, (5000, 5000))
        assert jobs_of(snakemake(tmp_path, *config, dry=True)) == {"fit": 1, "judge": 1, "report": 1}, path
        os.utime(path, (before, before))
