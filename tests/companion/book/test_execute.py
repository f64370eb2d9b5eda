"""Executing figures: the same bytes every time, errors that name the cell, nothing lost."""

import json
import time
from pathlib import Path

import nbformat
import pytest

from attnlib.errors import BadInput, UnknownName
from companion.book.execute import (
    FigureFailed,
    _writable,
    execute,
    for_a_run,
    for_the_book,
    main,
    normalise,
)
from companion.book.parameters import notebook_parameters
from companion.book.project import Figure, Project, find

HEADER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A figure

```{code-cell} ipython3
:tags: [parameters]
profile = "quick"
task = None
```

"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "notebooks" / "attend").mkdir(parents=True)
    (tmp_path / "Snakefile").touch()
    return Project(tmp_path)


def write(project: Project, name: str, *cells: str, header: str = HEADER) -> Figure:
    text = header + "\n".join(f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells)
    path = project.notebooks / "attend" / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return Figure(f"attend/{name}", path)


def texts(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def test_two_runs_give_the_same_bytes_and_no_place_of_this_machine(project):
    figure = write(
        project,
        "plain",
        "import os, sys, pathlib\n"
        "for step in range(3):\n    print(step, flush=True)\n"
        'print(os.environ["ATTNLIB_ROOT"] + "/x", object(), sys.executable, os.getcwd())\nobject()',
        'print(profile, task, "ATTNLIB_RUN_DIR" in os.environ)\n'
        'pathlib.Path(os.environ["ATTNLIB_FIGURE_FILES"], "x.svg").write_text("<svg/>")\n'
        'pathlib.Path("here").touch()',
    )
    execution = for_the_book(figure, project)
    first = execute(execution, project).read_bytes()
    second = execute(execution, project).read_bytes()
    assert first == second
    assert str(project.root).encode() not in first
    assert str(Path.home()).encode() not in first
    notebook = json.loads(first)
    assert [cell["id"] for cell in notebook["cells"]] == ["cell-001", "cell-002", "cell-003", "cell-004"]
    assert "papermill" not in notebook["metadata"]
    assert not any("papermill" in cell["metadata"] for cell in notebook["cells"])
    assert texts(execution.output).endswith("quick None False\n")
    assert (project.root / "build/notebooks/attend/plain.files/x.svg").is_file()
    # The kernel stands beside the executed notebook, which is where nbval starts its own.
    assert (project.root / "build/notebooks/attend/here").is_file()
    assert sorted(path.name for path in execution.output.parent.iterdir()) == [
        "here",
        "plain.files",
        "plain.ipynb",
    ]


def test_files_of_figures_that_a_notebook_no_longer_makes_go_once_it_has_run(project, monkeypatch):
    leave = "import os, pathlib\npathlib.Path(os.environ['ATTNLIB_FIGURE_FILES'], '{}.csv').write_text('a')"
    figure = write(project, "one", leave.format("first"), leave.format("second"))
    files = for_the_book(figure, project).files
    execute(for_the_book(figure, project), project)
    write(project, "one", leave.format("second"), "1 / 0")
    with pytest.raises(FigureFailed):
        execute(for_the_book(figure, project), project)
    assert {path.name for path in files.iterdir()} == {"first.csv", "second.csv"}
    write(project, "one", leave.format("second"))
    execute(for_the_book(figure, project), project)
    assert {path.name for path in files.iterdir()} == {"second.csv"}


def test_a_run_with_parameters_keeps_to_its_folder_and_hides_the_injected_cell(project):
    figure = write(project, "own", 'import os\nprint(task, os.environ["ATTNLIB_RUN_DIR"], os.getcwd())')
    run = project.build / "runs" / "own-1"
    output = execute(for_a_run(figure, {"task": "scan"}, run), project)
    assert output == run / "own.ipynb"
    assert texts(output) == "scan ./build/runs/own-1 ./build/runs/own-1\n"
    injected = nbformat.read(output, as_version=4).cells[2]
    assert injected.metadata["tags"] == ["injected-parameters", "remove-cell"]
    assert not (project.build / "notebooks").exists()


def test_a_failing_cell_is_named_and_what_came_before_is_kept(project, monkeypatch, capsys):
    figure = write(
        project, "broken", "before = 41 + 1\nprint(before)", '# why\nraise ValueError("no such thing")', "3"
    )
    execution = for_the_book(figure, project)
    expected = r"attend/broken: cell 4, line 20 .*starts `# why`, failed with ValueError: no such thing"
    with pytest.raises(FigureFailed, match=expected):
        execute(execution, project)
    assert not execution.output.exists()
    assert texts(execution.partial) == "42\n"
    assert len(nbformat.read(execution.partial, as_version=4).cells) == 5
    said = execution.error.read_text(encoding="utf-8")
    assert "ValueError: no such thing" in said
    assert "\x1b" not in said
    assert str(project.root) not in said
    # Once it is mended, nothing of the failure remains.
    monkeypatch.setenv("ATTNLIB_ROOT", str(project.root))
    write(project, "broken", "print(1)")
    assert main(["attend/broken"]) == 0
    assert sorted(path.name for path in execution.output.parent.iterdir()) == ["broken.files", "broken.ipynb"]


def test_a_killed_kernel_is_a_failed_figure(project):
    figure = write(project, "killed", "print(1)", "import os\nos.kill(os.getpid(), 9)")
    with pytest.raises(FigureFailed, match="attend/killed: the kernel died"):
        execute(for_the_book(figure, project), project)
    assert texts(for_the_book(figure, project).partial) == "1\n"


def test_a_figure_that_cannot_start_says_so_and_exits_with_2(project, monkeypatch, capsys):
    monkeypatch.setenv("ATTNLIB_ROOT", str(project.root))
    write(project, "untagged", "1", header="# No parameters\n\n")
    assert main(["attend/untagged"]) == 2
    assert "attend/untagged has no cell tagged `parameters`" in capsys.readouterr().err
    assert "tagged `parameters`" in (project.root / "build/notebooks/attend/untagged.error.txt").read_text()


def test_an_unknown_parameter_is_an_error_with_the_nearest(project, tmp_path):
    figure = write(project, "known", "1")
    with pytest.raises(UnknownName, match="no parameter 'tsk'; did you mean 'task'"):
        execute(for_a_run(figure, {"tsk": "scan"}, tmp_path / "run"), project)
    assert notebook_parameters(figure) == {"profile": "quick", "task": None}


def test_a_folder_that_cannot_be_written_is_named(project):
    figure = write(project, "readonly", "1")
    project.build.write_text("a file where the folder should be")
    with pytest.raises(BadInput, match=r"cannot write into .*build/notebooks/attend"):
        execute(for_the_book(figure, project), project)


def test_unknown_figure_offers_the_nearest_and_short_names_will_do(project):
    write(project, "alignment_breakdown", "1")
    assert find(project, "alignment_breakdown").id == "attend/alignment_breakdown"
    assert find(project, "notebooks/attend/alignment_breakdown.md").experiment == "alignment_breakdown"
    with pytest.raises(UnknownName, match="did you mean 'attend/alignment_breakdown'"):
        find(project, "attend/alignement_breakdown")


def test_streams_are_merged_whatever_pieces_they_came_in(project):
    def notebook(*pieces: str) -> nbformat.NotebookNode:
        outputs = [nbformat.v4.new_output("stream", name="stdout", text=piece) for piece in pieces]
        outputs.append(nbformat.v4.new_output("stream", name="stderr", text="at 0x7f0012345678"))
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs)])

    whole = nbformat.writes(normalise(notebook("one\ntwo\n"), project.root))
    assert nbformat.writes(normalise(notebook("one\n", "two\n"), project.root)) == whole
    assert "0x7f" not in whole


def test_large_images_are_read_in_linear_time(project):
    pixels = "iVBOR" * 400_000 + " /tmp/ipykernel_12/345.py:3: UserWarning"
    output = nbformat.v4.new_output("display_data", {"image/png": pixels[:2_000_000], "text/plain": pixels})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])])
    started = time.monotonic()
    (cell,) = normalise(notebook, project.root).cells
    assert time.monotonic() - started < 20  # a quadratic search takes hours
    assert cell.outputs[0].data["text/plain"].endswith(" <cell>:3: UserWarning")


def test_two_figures_may_probe_one_folder_at_the_same_moment(tmp_path, monkeypatch):
    """As when two run in parallel: the other's probe is gone before ours is taken away."""
    touch = Path.touch
    monkeypatch.setattr(
        Path, "touch", lambda path, *given, **more: (touch(path, *given, **more), path.unlink())
    )
    _writable(tmp_path)
    assert list(tmp_path.iterdir()) == []
