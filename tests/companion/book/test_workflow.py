"""The workflow of the book: what is redone, why, what a failure leaves, how one figure is run."""

import inspect
import json
import re
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import nbformat
import pytest

from companion.book import plan, workflow
from companion.book.closure import files_behind, imported_files
from companion.book.execute import execute, main, normalise
from companion.book.project import Project, discover, find, find_root
from companion.data import registry as tasks
from companion.results import registry
from companion.results.request import Request
from companion.runs import registry as trainings
from companion.runs.identity import run_record
from tests.attnlib.refusals import assert_refused
from tests.companion.book.book_builders import ROOT, copied, output_of, texts, write
from tests.companion.data.data_builders import put

pytestmark = pytest.mark.slow


@pytest.fixture
def project(project) -> Project:
    copied(project.root, "Snakefile")
    for name in ("one", "two"):
        write(project, name, "print(1)")
    return project


def printed(capfd, code: int) -> str:
    output = capfd.readouterr()
    assert code in (0, 1), output
    return output.out + output.err


def test_after_a_failure_only_what_changed_is_redone(project, capfd):
    write(project, "two", "1 / 0")
    assert workflow.run(project, ["figures"], 2) == 1
    output = printed(capfd, 1)
    assert "Error in rule figure:" in (project.build / workflow.LOG).read_text(encoding="utf-8")
    assert "error: attend/two: cell 3, line 13" in output
    assert "ZeroDivisionError: division by zero" in output
    made = project.executed("quick") / "attend" / "one.ipynb"
    before = made.stat().st_mtime_ns
    assert not made.with_name("two.ipynb").exists()
    assert made.with_name("two.partial.ipynb").is_file()
    assert "ZeroDivisionError" in made.with_name("two.error.txt").read_text(encoding="utf-8")

    write(project, "two", "print(2)")
    assert workflow.run(project, ["figures"], 2) == 0
    assert made.stat().st_mtime_ns == before
    assert made.with_name("two.ipynb").is_file()

    write(project, "one", "print(3)")
    printed(capfd, 0)
    output = printed(capfd, workflow.run(project, ["figures"], 1, explain=True))
    assert "make attend/one: changed: notebooks/attend/one.md" in output
    assert "make attend/two" not in output

    # A figure that failed is tried again, though the site was built without it.
    made.with_name("two.ipynb").unlink()
    put(project.root, {"_config.yml": "", "build/_build/html/index.html": ""})
    assert "make attend/two: it was never made" in printed(
        capfd, workflow.run(project, ["book"], 1, explain=True)
    )


def cells_import(project, cell: str) -> set[str]:
    figure = write(project, "one", cell)
    files = plan.files_of(project, figure)
    return {Path(name).relative_to(ROOT).as_posix() for name in files if name.startswith(str(ROOT))}


def test_a_figure_rests_on_all_that_its_cells_import(project):
    files = cells_import(project, "from companion.book import markup")
    assert "companion/book/markup.py" in files
    assert "companion/book/site.py" not in files


def test_a_figure_that_asks_what_is_presupposed_rests_on_the_claims(project):
    files = cells_import(project, "from companion.claims.presupposed import holds")
    assert "claims/aitken2021.yaml" in files


def test_a_figure_that_asks_it_in_shared_code_rests_on_the_claims(project):
    files = cells_import(project, "from notebooks.shared.translators import has_learned")
    assert "claims/aitken2021.yaml" in files


def test_a_figure_that_does_not_ask_rests_on_no_claims(project):
    files = cells_import(project, "from companion.book import markup")
    assert not any(name.startswith("claims/") for name in files)


def test_a_cell_that_is_not_python_is_passed_over(project):
    assert "companion/book/markup.py" not in cells_import(
        project, "from companion.book import markup\n%matplotlib x"
    )


def test_an_import_within_a_function_counts(tmp_path):
    assert ROOT / "companion/results/run.py" in files_behind([ROOT / "companion/book/notebook.py"])


def test_what_only_type_checkers_import_does_not_count():
    assert ROOT / "companion/runs/store.py" not in imported_files(ROOT / "companion/runs/measure.py")


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("name", registry.names())
def test_a_figure_rests_on_the_code_of_its_runs(name, profile):
    """These are found by name while the code runs, so that no import leads to them."""
    experiment = registry.load(name)
    files = files_behind([registry.path_of(name)])
    for spec in experiment.models(experiment.PROFILES[profile]) if profile in experiment.PROFILES else ():
        record = run_record(spec)
        if record["training"] != "encoder_decoder":
            assert Path(trainings.load(record["training"]).__file__) in files
        if "task" in record:
            builder = inspect.unwrap(tasks.builder(record["task"]["name"]))
            assert Path(inspect.getsourcefile(builder)) in files


def test_a_checkout_is_found_from_a_folder_within(project, monkeypatch):
    monkeypatch.delenv("ATTNLIB_ROOT")
    monkeypatch.chdir(project.notebooks / "attend")
    assert find_root() == project.root.resolve()


def test_a_figure_is_found_by_its_name_or_its_file(project):
    assert find(project, "one") == find(project, "notebooks/attend/one.md") == discover(project)["attend/one"]


def test_a_misspelt_figure_is_refused_with_the_nearest(project):
    assert_refused(partial(find, project, "attnd/one"), "did you mean 'attend/one'")


def test_two_figures_of_one_name_are_refused(project):
    shutil.copytree(project.notebooks / "attend", project.notebooks / "learn")
    assert_refused(partial(discover, project), "attend/one and learn/one both end in 'one'")


def test_a_folder_that_is_no_checkout_is_refused(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ATTNLIB_ROOT", str(tmp_path_factory.mktemp("empty")))
    assert_refused(find_root, "set ATTNLIB_ROOT")


STAGE = """
from pathlib import Path
from companion.book.site import stage
stage(Path.cwd(), Path.cwd() / "build" / "notebooks", Path.cwd() / "src")
"""


def test_a_new_figure_is_in_the_book_with_its_verdict(tmp_path):
    """In a copy of what the book is made of; the toy lies in ``coin`` as in a checkout."""
    copied(tmp_path, "attnlib", "companion", "claims", "book", "notebooks")
    copied(tmp_path, "Snakefile", "_config.yml", "pyproject.toml")
    shutil.copytree(Path(__file__).with_name("coin"), tmp_path, dirs_exist_ok=True)
    variables = {"ATTNLIB_ROOT": str(tmp_path), "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def python(*arguments, code=0):
        return output_of([sys.executable, *arguments], tmp_path, code=code, **variables)

    assert not python("-m", "companion.book.parameters", "beyond/coin")  # its cell is as the settings say
    python("-m", "companion.book.execute", "beyond/coin")
    result = json.loads((tmp_path / "build" / "results" / "quick" / "coin.json").read_text())
    assert 0.4 < result["values"]["heads"]["value"] < 0.6
    python("-m", "attnlib.cli", "verify", "--accept", code=1)  # the committed results are not there
    expected = json.loads((tmp_path / "claims" / "expected.json").read_text())
    assert expected["the-coin-shows-heads"] == {"quick": "reproduced"}
    python("-c", STAGE)
    pages = (f"beyond/{name}" for name in ("along_training", "coin", "transformer_heads"))
    assert "\n".join(f"  - file: {page}" for page in pages) in (tmp_path / "src/_toc.yml").read_text()
    assert (tmp_path / "src" / "beyond" / "coin.ipynb").is_file()


# -- executing a figure: the same bytes every time, errors that name the cell --------------------------------


@pytest.fixture
def plain(project):
    """A notebook that prints what differs between runs and machines, and leaves a file."""
    leave = "pathlib.Path(os.environ['ATTNLIB_FIGURE_FILES'], '{}').write_text('a')"
    cells = (
        "import os, sys, pathlib\n"
        "from ipykernel.connect import get_connection_info as told\n"
        "for step in range(3):\n    print(step, flush=True)\n"
        'print(os.environ["ATTNLIB_ROOT"] + "/x", object(), sys.executable, os.getcwd())\nobject()',
        f'{leave.format("x.svg")}\npathlib.Path("here").touch()\nprint(profile, task, "ipc" in told())',
    )
    return cells, leave


def test_files_that_a_notebook_no_longer_makes_go(project, plain):
    cells, leave = plain
    figure = write(project, "plain", *cells, leave.format("first.csv"))
    files = execute(project, Request(figure.id)).with_suffix(".files")
    assert {path.name for path in files.iterdir()} == {"first.csv", "x.svg"}
    write(project, "plain", *cells)
    execute(project, Request(figure.id))
    assert {path.name for path in files.iterdir()} == {"x.svg"}


def test_two_runs_give_the_same_bytes(project, plain):
    figure = write(project, "plain", *plain[0])
    first, second = (execute(project, Request(figure.id)).read_bytes() for _ in range(2))
    assert first == second


def test_an_executed_notebook_names_no_place_of_this_machine(project, plain):
    figure = write(project, "plain", *plain[0])
    content = execute(project, Request(figure.id)).read_bytes()
    for place in (project.root, Path.home()):
        assert str(place).encode() not in content
    assert b"papermill" not in content


def test_streams_of_a_cell_are_merged(project, plain):
    """Whatever pieces they came in."""
    figure = write(project, "plain", *plain[0])
    output = execute(project, Request(figure.id))
    assert texts(output).endswith("quick None True\n")
    outputs = nbformat.read(output, as_version=4).cells[2].outputs
    assert [cell_output.output_type for cell_output in outputs] == ["stream", "execute_result"]


def test_a_kernel_works_beside_the_executed_notebook(project, plain):
    """Which is where nbval starts its own."""
    figure = write(project, "plain", *plain[0])
    folder = execute(project, Request(figure.id)).parent
    assert sorted(path.name for path in folder.iterdir()) == ["here", "plain.files", "plain.ipynb"]


def test_a_run_with_parameters_keeps_to_its_folder(project):
    figure = write(project, "own", "import os\nprint(task, os.getcwd())")
    request = Request(figure.id, "quick", {"task": "scan"})
    output = execute(project, request)
    assert output == project.build / "runs" / request.name / "own.ipynb"
    assert texts(output) == f"scan ./build/runs/{request.name}\n"
    assert not (project.build / "notebooks").exists()


def test_a_run_with_parameters_hides_the_injected_cell(project):
    figure = write(project, "own", "import os\nprint(task, os.getcwd())")
    request = Request(figure.id, "quick", {"task": "scan"})
    output = execute(project, request)
    injected = nbformat.read(output, as_version=4).cells[2]
    assert injected.metadata["tags"] == ["injected-parameters", "remove-cell"]


def test_what_came_before_a_failing_cell_is_kept_until_it_is_mended(project, capsys):
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
    message = output.with_suffix(".error.txt").read_text(encoding="utf-8")
    assert "ValueError: no such thing" in message
    assert "\x1b" not in message
    assert str(project.root) not in message
    write(project, "broken", "print(1)")
    assert main(["attend/broken"]) == 0
    assert sorted(path.name for path in output.parent.iterdir()) == ["broken.files", "broken.ipynb"]


def test_a_notebook_without_parameters_exits_with_2(project, capsys):
    write(project, "untagged", "1", header="# No parameters\n\n")
    assert main(["attend/untagged"]) == 2
    assert "attend/untagged has no cell tagged `parameters`" in capsys.readouterr().err
    assert "tagged `parameters`" in (project.build / "notebooks/attend/untagged.error.txt").read_text()


def test_a_build_folder_that_is_a_file_exits_with_2(project, capsys):
    shutil.rmtree(project.build, ignore_errors=True)
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
