"""The workflow on a checkout of two small notebooks: what is redone, why, and what a failure leaves."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from companion.book import workflow
from companion.book.plan import Plan, imports_of
from companion.book.project import Figure, Project, discover, find_root
from companion.book.workflow import Job, JobReader, readable
from companion.commands import outdate

ROOT = Path(__file__).parents[3]
NOTEBOOK = """---
jupytext:
  text_representation: {{extension: .md, format_name: myst}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
---
# A figure

```{{code-cell}} python3
:tags: [parameters]
profile = "quick"
```

```{{code-cell}} python3
{cell}
```
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Project:
    shutil.copy(ROOT / "Snakefile", tmp_path)
    for name in ("one", "two"):
        edit(Project(tmp_path), name, "print(1)")
    monkeypatch.setenv("ATTNLIB_ROOT", str(tmp_path))
    return Project(tmp_path)


def edit(project: Project, name: str, cell: str) -> None:
    path = project.notebooks / "attend" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(NOTEBOOK.format(cell=cell), encoding="utf-8")


def test_only_what_changed_is_redone_and_a_failure_leaves_the_rest_standing(project, capfd):
    assert set(workflow.planned(project, ["figures"], {})[0]) == {
        Job("figure", "attend/one", "not made yet"),
        Job("figure", "attend/two", "not made yet"),
    }
    edit(project, "two", "1 / 0")
    outcome = workflow.run(project, ["figures"], 2)
    assert outcome.code != 0
    assert outcome.failed == {"figure"}
    said = capfd.readouterr().err
    assert "draw figure attend/one  (not made yet)" in said
    assert "draw figure attend/two  (failed)" in said
    assert "error: attend/two: cell 3, line 14" in said
    assert "ZeroDivisionError: division by zero" in said
    made = project.executed("quick") / "attend" / "one.ipynb"
    before = made.stat().st_mtime_ns
    assert not made.with_name("two.ipynb").exists()
    assert made.with_name("two.partial.ipynb").is_file()
    assert "ZeroDivisionError" in made.with_name("two.error.txt").read_text(encoding="utf-8")

    edit(project, "two", "print(2)")
    assert workflow.run(project, ["figures"], 2) == workflow.Outcome(0, frozenset())
    assert made.stat().st_mtime_ns == before
    assert made.with_name("two.ipynb").is_file()

    edit(project, "one", "print(3)")
    (job,), notes = workflow.planned(project, ["figures"], {})
    assert notes == []
    assert job == Job("figure", "attend/one", "changed: notebooks/attend/one.md")


def test_a_figure_that_failed_is_tried_again_though_the_site_was_built_without_it(project):
    (project.root / "_config.yml").touch()
    assert workflow.run(project, ["figures"], 2).code == 0
    (project.executed("quick") / "attend" / "one.ipynb").unlink()  # as a failure leaves it
    project.site.parent.mkdir(parents=True)
    project.site.touch()
    outdate(project)
    jobs, _ = workflow.planned(project, ["book"], {})
    assert Job("figure", "attend/one", "not made yet") in jobs


def test_jobs_are_read_from_the_log_as_they_begin():
    log = """Building DAG of jobs...
[Fri Nov 20 10:35:42 2026]
localrule train:
    output: build/trained/scan-AED-gru-w64-s0-and-2-more-0642a296fa29
    jobid: 3
    reason: Missing output files: build/trained/scan-AED-gru-w64-s0-and-2-more-0642a296fa29
    wildcards: batch=scan-AED-gru-w64-s0-and-2-more-0642a296fa29
rule run_result:
    input: a, b, c
    output: build/runs/attend-x-0123456789ab/x.json
    reason: Params have changed since last execution: x; Input files updated by another job: a, b, c
rule answer:
    output: build/answers/translation-s0-0642a296fa29~0123456789ab
    reason: Missing output files: build/answers/translation-s0-0642a296fa29~0123456789ab
rule book:
    input: build/_build/html/index.html
    reason: Input files updated by another job: build/_build/html/index.html
1 of 5 steps (20%) done
Error in rule train:
    message: None
    output: build/trained/scan-AO-gru-w64-s0-0642a296fa29 (corrupted)
    shell:
        exit 1"""
    reader = JobReader()
    jobs = [job for line in log.splitlines() if (job := reader.feed(line))]
    assert jobs == [
        Job("train", "scan-AED-gru-w64-s0-and-2-more", "not made yet"),
        Job("result", "x", "code, settings or data behind it changed; made anew: a and 2 more"),
        Job("answer", "translation-s0-0642a296fa29", "not made yet"),
        Job("train", "scan-AO-gru-w64-s0", "failed"),
    ]
    assert str(jobs[0]) == "train scan-AED-gru-w64-s0-and-2-more"


def test_a_reason_that_is_not_known_is_passed_on():
    assert readable("The moon is full") == "The moon is full"


def test_two_builds_of_one_checkout_do_not_meet(project):
    with (
        workflow.sole_worker(project),
        pytest.raises(BadInput, match="another attnlib is building"),
        workflow.sole_worker(project),
    ):
        pass
    with (project.build / ".lock").open() as handle:  # nobody holds it any more
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_lock_outlives_a_killed_attnlib_as_long_as_its_workflow(project, tmp_path):
    engine = tmp_path / "engine"
    slow = (
        f"import os, pathlib, time; pathlib.Path({str(engine)!r}).write_text(f'{{os.getpid()}}.')\n"
        "time.sleep(60)"
    )
    script = (
        "import sys\nfrom companion.book import workflow\n"
        "from companion.book.project import current_project\n"
        f"workflow.command = lambda *_, **__: [sys.executable, '-c', {slow!r}]\n"
        "workflow.run(current_project(), ['figures'], 1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as parent:
        until(lambda: engine.is_file() and engine.read_text().endswith("."))
        parent.kill()
    pid = int(engine.read_text().removesuffix("."))
    try:
        with pytest.raises(BadInput, match="another attnlib is building"), workflow.sole_worker(project):
            pass
    finally:
        os.kill(pid, signal.SIGKILL)
    until(lambda: is_free(project))


def until(true) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_free(project: Project) -> bool:
    try:
        with workflow.sole_worker(project):
            return True
    except BadInput:
        return False


def test_a_build_folder_that_cannot_be_written_is_named(project):
    project.build.write_text("a file where the folder should be")
    with pytest.raises(BadInput, match=r"cannot write into .*/build"), workflow.sole_worker(project):
        pass


def test_what_a_notebook_imports(project):
    edit(
        project,
        "one",
        "import numpy, attnlib.files\nfrom companion.book import project\n%matplotlib inline",
    )
    assert imports_of(discover(project)["attend/one"]) == frozenset()  # not Python: its own job says so
    edit(project, "one", "import numpy, attnlib.files\nfrom companion.book import project")
    found = imports_of(discover(project)["attend/one"])
    assert found == {"companion.book:project"}


def test_two_notebooks_of_one_experiment_are_refused(project):
    (project.notebooks / "learn").mkdir()
    shutil.copy(project.notebooks / "attend" / "one.md", project.notebooks / "learn")
    with pytest.raises(BadInput, match="attend/one and learn/one both end in 'one'"):
        discover(project)


def test_the_checkout_is_found_from_below_and_its_absence_is_said(project, monkeypatch, tmp_path_factory):
    monkeypatch.delenv("ATTNLIB_ROOT")
    monkeypatch.chdir(project.notebooks / "attend")
    assert find_root() == project.root.resolve()
    monkeypatch.setenv("ATTNLIB_ROOT", str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(BadInput, match="set ATTNLIB_ROOT"):
        find_root()


def test_a_figure_has_a_title(project):
    assert Figure("attend/one", project.notebooks / "attend" / "one.md").title == "A figure"


def test_what_trains_on_in_its_own_job_and_what_it_waits_for_are_begun_first():
    plan = Plan(Project(ROOT))
    assert plan.long_tails == ["multi_head"]
    marks = plan.trained(plan.results["multi_head"])
    targets = [*marks, "build/results/quick/multi_head.json"]
    call = [*workflow.command(Project(ROOT), targets, 2, config={}, dry=True), "--forceall"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    begun = [
        line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("rule ", "localrule "))
    ]
    assert sorted({line.split()[1] for line in begun}) == ["first_result:", "first_train:"]
