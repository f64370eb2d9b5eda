"""The workflow of an analysis in shards: its jobs, what it must be told, and what it does again."""

import os
import re
import shlex
import shutil
import sys

import pytest

from attnlib.commands.analyse import analyse_command
from attnlib.options import AnalyseOptions
from tests.attnlib.analysis.builders import save_traces
from tests.companion.book.book_builders import ROOT, killed, output_of
from tests.companion.data.data_builders import put
from tests.e2e.cluster.slurm import ON_SLURM, SOON, with_one_killed

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflows/analyse.smk")]
TEXT = ("model=m", "source=a.txt", "target=b.txt")
ALL = {"fit": 2, "judge": 2, "report": 1}
pytestmark = pytest.mark.slow


def home(folder) -> dict[str, str]:
    return {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}


def snakemake(folder, *config, dry=False, where=("--cores", "1"), code=0):
    """How often each rule runs, and all that is said."""
    command = [*SNAKEMAKE, *where, *(["--dry-run"] if dry else []), "--printshellcmds", "--config", *config]
    output = output_of(command, folder, code=code, **home(folder))
    jobs = re.findall(r"^(fit|judge|report) +(\d+)$", output, re.MULTILINE)
    return {name: int(count) for name, count in jobs}, output


@pytest.mark.long
def test_each_reading_of_a_shard_is_a_job(tmp_path):
    put(tmp_path, {"a.txt": "", "b.txt": ""})
    config = (*TEXT, "out=report", "shards=3", "options=--layers 0-1")
    cluster = ("--executor", "slurm", "--jobs", "8")
    jobs, output = snakemake(tmp_path, *config, dry=True, where=cluster)
    assert jobs == {"fit": 3, "judge": 3, "report": 1}
    commands = re.findall(r"attnlib\.cli analyse .*--shards 3 --layers 0-1 --stage (.*)", output)
    assert sorted(commands[:3]) == [f"fit --shard {shard}" for shard in range(3)]
    assert len(commands) == 7


@pytest.mark.long
def test_what_is_missing_is_named_before_any_job(tmp_path):
    put(tmp_path, {"a.txt": "", "b.txt": ""})
    config = (*TEXT, "out=report", "shards=3", "options=--layers 0-1")
    (tmp_path / "a.txt").unlink()
    for given, message in (
        (config, "a.txt"),
        (("out=report", "model=m"), "say --config shards=… source=… t"),
        ((*config, "shards=two"), "shards=two: expected how many"),
    ):
        assert message in snakemake(tmp_path, *given, dry=True, code=1)[1]


@pytest.mark.parametrize("name", ["1e3", '"q"', "[a, b]"])
def test_a_name_that_is_yaml_as_well_is_a_name(name, tmp_path):
    save_traces(tmp_path / name, 0)
    output = snakemake(tmp_path, f"traces={name}", f"out={name}", "shards=1", dry=True)[1]
    assert f"--traces {shlex.quote(name)} --out {shlex.quote(name)} --shards 1" in output


def test_a_changed_text_or_model_is_noticed(tmp_path):
    """Marks that are newer than all that was read: nothing to do, until one file is newer."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "m/model.safetensors"]
    marks = [tmp_path / f"report/parts/{stage}-0-of-1/done" for stage in ("fit", "judge")]
    for date, path in enumerate([*files, *marks, tmp_path / "report/index.html"]):
        put(path.parent, {path.name: ""})
        os.utime(path, (1000 + date, 1000 + date))
    config = (*TEXT, "out=report", "shards=1")
    assert "Nothing to be done" in snakemake(tmp_path, *config, dry=True)[1]
    for path in (files[0], files[-1]):
        before = path.stat().st_mtime
        os.utime(path, (5000, 5000))
        assert snakemake(tmp_path, *config, dry=True)[0] == {"fit": 1, "judge": 1, "report": 1}, path
        os.utime(path, (before, before))


@pytest.mark.long
def test_a_killed_analysis_with_hostile_names_goes_on(tmp_path):
    """Nothing of a name or of the options is run by the shell, and no lock outlives the killed process."""
    hostile = "'t' {x} {wildcards.shard} \"$(touch ran)\" `touch ran`;touch ran"
    save_traces(tmp_path / hostile, *range(4), name="{{{}}}")
    names = (f"traces={hostile}", "out=report", "shards=2")
    output = snakemake(tmp_path, *names, "options=--every 2 --heads 0;touch${IFS}ran", code=1)[1]
    assert "is not a list of numbers" in " ".join(output.split())
    config = (*names, "options=--every 2")
    command = [*SNAKEMAKE, "--cores", "1", "--config", *config]
    killed(command, tmp_path, lambda: any(tmp_path.glob("report/parts/*/.lock")), **home(tmp_path))
    snakemake(tmp_path, *config)
    analyse_command(AnalyseOptions(tmp_path / "alone", traces=tmp_path / hostile, shards=2, every=2))
    alone = {path.name: path for path in (tmp_path / "alone").iterdir() if path.suffix in (".csv", ".html")}
    for name, path in alone.items():
        assert (tmp_path / "report" / name).read_text() == path.read_text().replace(f"{tmp_path}/", "")
    report = tmp_path / "report/index.html"
    before = report.read_bytes()
    assert "Nothing to be done" in snakemake(tmp_path, *config, dry=True)[1]
    assert snakemake(tmp_path, *names, "options=--every 1", dry=True)[0] == ALL
    # A part that was deleted, and the report, which is what is asked for; its mark has gone with the part.
    shutil.rmtree(tmp_path / "report/parts/fit-0-of-2")
    report.unlink()
    assert snakemake(tmp_path, *config)[0] == {"fit": 1, "judge": 2, "report": 1}
    assert report.read_bytes() == before
    # Other traces are read again, also where the file that takes the place of another is older.
    changed = tmp_path / hostile / "{0}.safetensors"
    date = changed.stat().st_mtime - 1000
    save_traces(changed.parent, 99)
    changed.with_name("99.safetensors").replace(changed)
    os.utime(changed, (date, date))
    jobs, output = snakemake(tmp_path, *config, code=1)
    assert jobs == ALL
    output = " ".join(output.split())
    assert "report/parts belongs to another --traces; delete it or choose another --out" in output
    assert not list(tmp_path.rglob("ran"))


# -- on a real scheduler it gives the bytes that it gives here ----------------------------------------------


@ON_SLURM
@pytest.mark.long
def test_an_analysis_with_a_killed_job_gives_the_bytes_of_one_without_a_cluster(cluster, tmp_path):
    """Under any name: a cluster's shell runs nothing of it. The same command goes on after the kill."""
    name = 'it\'s "x" $(touch ran) `touch ran`'
    save_traces(tmp_path / name, *range(4))
    config = ["--config", f"traces={name}", "shards=2", "options=--every 2"]
    variables = cluster | home(tmp_path) | {"PYTHONPATH": str(ROOT)}
    there = [*SNAKEMAKE, "--executor", "slurm", "--jobs", "4", *SOON, *config, "out=there"]
    reading = "there/parts/*/.lock", "-m", "attnlib.cli", "analyse"
    output, code = with_one_killed(there, tmp_path, variables, *reading)
    assert code == 1, output
    assert re.search(
        r"^fit +1$", output_of(there, tmp_path, **variables), re.MULTILINE
    )  # not the other shard
    output_of([*SNAKEMAKE, "--cores", "1", *config, "out=here"], tmp_path, **variables)
    given = {}
    for out in ("there", "here"):
        files = sorted((tmp_path / out).glob("[!.]*.*"))
        # run.json says when the last command ran.
        given[out] = {path.name: path.read_bytes() for path in files if path.name != "run.json"}
    assert given["there"] == given["here"]
    assert "index.html" in given["here"]
    assert not list(tmp_path.rglob("ran"))
