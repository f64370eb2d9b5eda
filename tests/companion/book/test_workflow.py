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
from companion.book.plan import imports_of, planned
from companion.book.project import Figure, Project, discover, find_root
from companion.results.request import Request

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


def said(capfd) -> str:
    """All that Snakemake and its jobs have said since."""
    found = capfd.readouterr()
    return found.out + found.err


def test_only_what_changed_is_redone_and_a_failure_leaves_the_rest_standing(project, capfd):
    assert workflow.run(project, ["figures"], 1, explain=True) == 0
    told = said(capfd)
    for name in ("one", "two"):
        assert f"draw attend/{name}\n" in told
        assert f"Missing output files: build/notebooks/attend/{name}.ipynb" in told
    assert not (project.build / "notebooks").exists()
    edit(project, "two", "1 / 0")
    assert workflow.run(project, ["figures"], 2) == 1
    told = said(capfd)
    assert "Error in rule figure:" in told
    assert "error: attend/two: cell 3, line 14" in told
    assert "ZeroDivisionError: division by zero" in told
    made = project.executed("quick") / "attend" / "one.ipynb"
    before = made.stat().st_mtime_ns
    assert not made.with_name("two.ipynb").exists()
    assert made.with_name("two.partial.ipynb").is_file()
    assert "ZeroDivisionError" in made.with_name("two.error.txt").read_text(encoding="utf-8")

    edit(project, "two", "print(2)")
    assert workflow.run(project, ["figures"], 2) == 0
    assert made.stat().st_mtime_ns == before
    assert made.with_name("two.ipynb").is_file()

    edit(project, "one", "print(3)")
    said(capfd)
    assert workflow.run(project, ["figures"], 1, explain=True) == 0
    told = said(capfd)
    assert "Updated input files: notebooks/attend/one.md" in told
    assert "draw attend/two" not in told


def test_a_figure_that_failed_is_tried_again_though_the_site_was_built_without_it(project, capfd):
    (project.root / "_config.yml").touch()
    assert workflow.run(project, ["figures"], 2) == 0
    (project.executed("quick") / "attend" / "one.ipynb").unlink()  # as a failure leaves it
    project.site.parent.mkdir(parents=True)
    project.site.touch()
    said(capfd)
    workflow.run(project, ["book"], 1, explain=True)
    assert "draw attend/one\n" in said(capfd)


def test_a_run_of_its_own_is_computed_and_drawn_in_its_folder(project, capfd):
    path = project.notebooks / "primer" / "path_length.md"
    path.parent.mkdir()
    shutil.copy(ROOT / "notebooks" / "primer" / path.name, path)
    request = Request("primer/path_length", "quick", {"seeds": 1})
    folder = f"build/runs/{request.name}"
    request.write(project.root / folder / "run.json")
    assert workflow.run(project, [f"{folder}/path_length.ipynb"], 1, explain=True) == 0
    told = said(capfd)
    assert "compute path_length\n" in told
    assert f"draw primer/path_length --run {folder}/run.json\n" in told


def test_a_book_is_current_until_something_changes(project):
    for path in ("_config.yml", "book/index.md", "build/_build/html/index.html"):
        (project.root / path).parent.mkdir(parents=True, exist_ok=True)
        (project.root / path).touch()
    assert not workflow.is_current(project)
    workflow.mark_current(project, workflow.state(project, workflow.INPUTS))
    assert workflow.is_current(project)
    edit(project, "one", "print(4)")
    assert not workflow.is_current(project)
    workflow.mark_current(project, workflow.state(project, workflow.INPUTS))
    project.site.unlink()
    assert not workflow.is_current(project)


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


def test_the_longest_results_come_first():
    project = Project(ROOT)
    long, short, unknown = (
        planned(project, name, "quick").seconds
        for name in ("agreement", "early_dynamics", "your_own_model")
    )
    assert short < long < unknown
