"""Executing figures: the same bytes every time, errors that name the cell, kernels forked by a server."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from companion.book import warm
from companion.book.execute import FigureFailed, execute, main, normalise
from companion.results.request import Request
from tests.companion.book.book_builders import until, write

pytestmark = pytest.mark.slow


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
        f'{leave.format("x.svg")}\npathlib.Path("here").touch()\nprint(profile, task, "ipc" in told())',
    )
    figure = write(project, "plain", *cells, leave.format("first.csv"))
    output = execute(project, Request(figure.id))
    files = output.with_suffix(".files")
    assert {path.name for path in files.iterdir()} == {"first.csv", "x.svg"}
    write(project, "plain", *cells)
    first, second = (execute(project, Request(figure.id)).read_bytes() for _ in range(2))
    assert {path.name for path in files.iterdir()} == {"x.svg"}
    assert first == second
    for place in (project.root, Path.home()):
        assert str(place).encode() not in first
    assert b"papermill" not in first
    assert texts(output).endswith("quick None True\n")
    # Streams are merged, whatever pieces they came in.
    outputs = nbformat.read(output, as_version=4).cells[2].outputs
    assert [each.output_type for each in outputs] == ["stream", "execute_result"]
    # The kernel stands beside the executed notebook, which is where nbval starts its own.
    assert sorted(path.name for path in output.parent.iterdir()) == ["here", "plain.files", "plain.ipynb"]


def test_a_run_with_parameters_keeps_to_its_folder_and_hides_the_injected_cell(project):
    request = Request(
        write(project, "own", "import os\nprint(task, os.getcwd())").id, "quick", {"task": "scan"}
    )
    output = execute(project, request)
    assert output == project.build / "runs" / request.name / "own.ipynb"
    assert texts(output) == f"scan ./build/runs/{request.name}\n"
    injected = nbformat.read(output, as_version=4).cells[2]
    assert injected.metadata["tags"] == ["injected-parameters", "remove-cell"]
    assert not (project.build / "notebooks").exists()


def test_a_failing_cell_is_named_and_what_came_before_is_kept_until_it_is_mended(project, capsys):
    cells = "before = 41 + 1\nprint(before)", '# why\nraise ValueError("no such thing")', "3"
    write(project, "broken", *cells)
    output = project.executed("quick") / "attend" / "broken.ipynb"
    earlier, partial = output.with_suffix(".files") / "before.csv", output.with_suffix(".partial.ipynb")
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    assert main(["attend/broken"]) == 1
    expected = "attend/broken: cell 4, line 18 of the notebook's source, which starts `# why`, failed with "
    assert f"{expected}ValueError: no such thing" in capsys.readouterr().err
    assert not output.exists()
    assert earlier.exists()
    assert texts(partial) == "42\n"
    assert len(nbformat.read(partial, as_version=4).cells) == 5
    said = output.with_suffix(".error.txt").read_text(encoding="utf-8")
    assert "ValueError: no such thing" in said
    assert "\x1b" not in said
    assert str(project.root) not in said
    write(project, "broken", "print(1)")
    assert main(["attend/broken"]) == 0
    assert sorted(path.name for path in output.parent.iterdir()) == ["broken.files", "broken.ipynb"]


def test_a_killed_kernel_is_a_failed_figure(project):
    figure = write(project, "killed", "print(1)", "import os\nos.kill(os.getpid(), 9)")
    output = project.notebook_of(Request(figure.id))
    with pytest.raises(FigureFailed, match="attend/killed: the kernel died"):
        execute(project, Request(figure.id))
    assert texts(output.with_suffix(".partial.ipynb")) == "1\n"


def test_a_figure_that_cannot_start_says_so_and_exits_with_2(project, capsys):
    write(project, "untagged", "1", header="# No parameters\n\n")
    assert main(["attend/untagged"]) == 2
    assert "attend/untagged has no cell tagged `parameters`" in capsys.readouterr().err
    assert "tagged `parameters`" in (project.build / "notebooks/attend/untagged.error.txt").read_text()
    shutil.rmtree(project.build)
    project.build.write_text("a file where the folder should be")
    write(project, "readonly", "1")
    assert main(["attend/readonly"]) == 2
    assert re.search(r"cannot write into .*build/notebooks/attend", capsys.readouterr().err)


def test_large_images_are_read_in_linear_time(project):
    pixels = "iVBOR" * 400_000 + " /tmp/ipykernel_12/345.py:3: UserWarning"
    data = {"image/png": pixels[:2_000_000], "text/plain": pixels}
    shown = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data)])
    started = time.monotonic()
    (cell,) = normalise(nbformat.v4.new_notebook(cells=[shown]), project.root).cells
    assert time.monotonic() - started < 20  # a quadratic search takes hours
    assert cell.outputs[0].data["text/plain"].endswith(" <cell>:3: UserWarning")


# -- a module forked by the server runs as if Python had been started for it ---------------------------------

CLIENT = [sys.executable, "-P", warm.__file__]
TOLD = """
import os, sys
if __name__ == "__main__":
    here = os.path.basename(os.getcwd())
    libraries = [name for name in ("torch", "pandas") if name in sys.modules]
    print(sys.argv[1:], sys.stdin.read(), here, os.environ["OWN"], libraries)
    print("said", file=sys.stderr)
    sys.exit(3)
"""


def test_streams_folder_environment_and_exit_code_are_the_callers(tmp_path):
    (tmp_path / "told.py").write_text(TOLD)
    own = {"PYTHONPATH": str(tmp_path), "OWN": "set"}

    def told() -> tuple[int, str, str]:
        asked = {"cwd": tmp_path, "env": os.environ | own, "input": "in"}
        done = subprocess.run([*CLIENT, "told", "a b", "c"], **asked, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    with warm.server():
        forked = told()
    assert forked == (3, f"['a b', 'c'] in {tmp_path.name} set ['torch']\n", "said\n")
    assert told() == (3, forked[1].replace("['torch']", "[]"), "said\n")  # Python anew


def test_one_whose_caller_is_killed_ends(tmp_path):
    (tmp_path / "slow.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    with warm.server():
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        command = [*CLIENT, "slow"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as caller:
            forked = int(caller.stdout.readline())
            caller.kill()
            until(lambda: not os.path.exists(f"/proc/{forked}"))


def test_only_a_module_is_run_by_the_server():
    kernel = ["ipykernel_launcher", "-f", "connection.json"]
    assert warm.warm(["python", "-m", *kernel])[3:] == kernel
    assert warm.warm(["ruby", "kernel.rb"]) == ["ruby", "kernel.rb"]
