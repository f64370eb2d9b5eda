"""Executing figures: the same bytes every time, errors that name the cell, nothing lost."""

import json
import time
from pathlib import Path

import nbformat
import pytest

from attnlib.errors import BadInput, UnknownName
from companion.book.execute import FigureFailed, _writable, execute, for_a_run, for_the_book, main, normalise
from companion.book.project import Project, find
from tests.companion.book.book_builders import checkout, write

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return checkout(tmp_path)


def texts(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def test_two_runs_give_the_same_bytes_and_no_place_of_this_machine(project):
    """And files of figures that the notebook no longer makes go once it has run."""
    leave = "pathlib.Path(os.environ['ATTNLIB_FIGURE_FILES'], '{}').write_text('a')"
    cells = (
        "import os, sys, pathlib\n"
        "from ipykernel.connect import get_connection_info as told\n"
        "for step in range(3):\n    print(step, flush=True)\n"
        'print(os.environ["ATTNLIB_ROOT"] + "/x", object(), sys.executable, os.getcwd())\nobject()',
        f'{leave.format("x.svg")}\npathlib.Path("here").touch()\n'
        'print(profile, task, "ATTNLIB_RUN_DIR" in os.environ, "ipc" in told())',
    )
    figure = write(project, "plain", *cells, leave.format("first.csv"))
    execution = for_the_book(figure, project)
    execute(execution, project)
    assert {path.name for path in execution.files.iterdir()} == {"first.csv", "x.svg"}
    write(project, "plain", *cells)
    first, second = (execute(execution, project).read_bytes() for _ in range(2))
    assert {path.name for path in execution.files.iterdir()} == {"x.svg"}
    assert first == second
    assert str(project.root).encode() not in first
    assert str(Path.home()).encode() not in first
    notebook = json.loads(first)
    assert [cell["id"] for cell in notebook["cells"]] == ["cell-001", "cell-002", "cell-003", "cell-004"]
    assert "papermill" not in notebook["metadata"]
    assert not any("papermill" in cell["metadata"] for cell in notebook["cells"])
    assert texts(execution.output).endswith("quick None False True\n")
    # The kernel stands beside the executed notebook, which is where nbval starts its own.
    names = sorted(path.name for path in execution.output.parent.iterdir())
    assert names == ["here", "plain.files", "plain.ipynb"]


def test_a_run_with_parameters_keeps_to_its_folder_and_hides_the_injected_cell(project):
    figure = write(project, "own", 'import os\nprint(task, os.environ["ATTNLIB_RUN_DIR"], os.getcwd())')
    run = project.build / "runs" / "own-1"
    output = execute(for_a_run(figure, {"task": "scan"}, run), project)
    assert output == run / "own.ipynb"
    assert texts(output) == "scan ./build/runs/own-1 ./build/runs/own-1\n"
    injected = nbformat.read(output, as_version=4).cells[2]
    assert injected.metadata["tags"] == ["injected-parameters", "remove-cell"]
    assert not (project.build / "notebooks").exists()
    with pytest.raises(UnknownName, match="no parameter 'tsk'; did you mean 'task'"):
        execute(for_a_run(figure, {"tsk": "scan"}, run), project)


def test_a_failing_cell_is_named_and_what_came_before_is_kept(project, monkeypatch):
    figure = write(
        project, "broken", "before = 41 + 1\nprint(before)", '# why\nraise ValueError("no such thing")', "3"
    )
    execution = for_the_book(figure, project)
    execution.files.mkdir(parents=True)
    (execution.files / "before.csv").touch()
    expected = r"attend/broken: cell 4, line 18 .*starts `# why`, failed with ValueError: no such thing"
    with pytest.raises(FigureFailed, match=expected):
        execute(execution, project)
    assert not execution.output.exists()
    assert (execution.files / "before.csv").exists()
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
