"""Execute one figure: MyST source → notebook → papermill → an executed notebook that is the same every time.

``python -m companion.book.execute attend/alignment_breakdown`` runs one into the book's folder.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from attnlib.errors import AttnlibError, BadInput
from attnlib.files import write_text_atomic
from companion.book.kernels import local_sockets
from companion.book.parameters import check_known, notebook_parameters
from companion.book.project import PROFILES, Figure, Project, current_project, find
from companion.results.request import Request


class FigureFailed(AttnlibError):
    """A cell of a notebook raised; names the cell, the error, and the files kept."""


@dataclass(frozen=True)
class Execution:
    """One execution of a figure; ``run_folder`` is that of a run with parameters of its own."""

    figure: Figure
    output: Path
    parameters: Mapping[str, object] = field(default_factory=dict)
    run_folder: Path | None = None

    @property
    def files(self) -> Path:
        """Folder for the figure's svg, png and csv."""
        return self.output.with_suffix(".files")

    @property
    def partial(self) -> Path:
        """What was executed before a cell failed."""
        return self.output.with_suffix(".partial.ipynb")

    @property
    def error(self) -> Path:
        """What failed, as text."""
        return self.output.with_suffix(".error.txt")


def for_the_book(figure: Figure, project: Project, profile: str = "quick") -> Execution:
    """The execution whose product the book shows."""
    parameters = {} if profile == "quick" else {"profile": profile}
    return Execution(figure, project.executed(profile) / f"{figure.id}.ipynb", parameters)


def for_a_run(figure: Figure, parameters: Mapping[str, object], run_folder: Path) -> Execution:
    """The execution of a run with parameters of its own, apart from the book."""
    return Execution(figure, run_folder / f"{figure.experiment}.ipynb", parameters, run_folder)


def execute(execution: Execution, project: Project) -> Path:
    """Run a notebook and write it, whole, to ``execution.output``, which is returned.

    Raises:
        UnknownName: a parameter that the notebook does not have.
        BadInput: no cell tagged ``parameters``; an output folder that cannot be written.
        FigureFailed: a cell raised; the partial notebook and the error stay beside where the output would be.
    """
    import jupytext
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError

    from companion.book.prose import Book, fill_cells

    figure = execution.figure
    check_known(execution.parameters, notebook_parameters(figure))
    for needed in (execution.output.parent, execution.files):
        _writable(needed)
    for old in (execution.partial, execution.error):
        old.unlink(missing_ok=True)
    earlier = {path: path.stat().st_mtime_ns for path in execution.files.iterdir()}
    working = execution.output.with_name(f".{execution.output.stem}.running.ipynb")
    try:
        with _kernel_environment(execution, project):
            papermill.execute_notebook(
                jupytext.read(figure.path), working, dict(execution.parameters),
                kernel_name="python3", language="python",
                cwd=execution.output.parent,  # as under nbval
                progress_bar=False, start_timeout=180, config=local_sockets(),
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            )  # fmt: skip
        done = nbformat.read(working, as_version=4)
        fill_cells(done, Book(project.root), figure.id)
        _write(done, execution.output, project)
        for path, written in earlier.items():
            if path.is_file() and path.stat().st_mtime_ns == written:  # no longer made by the notebook
                path.unlink()
    except (papermill.PapermillExecutionError, DeadKernelError) as error:
        # Without papermill's markers the number of a cell is its number in the file.
        partial = papermill.execute.remove_error_markers(nbformat.read(working, as_version=4))
        _write(partial, execution.partial, project)
        message = _plain(_describe(error, partial, figure), project)
        traceback = _plain("\n".join(getattr(error, "traceback", [])), project)
        write_text_atomic(execution.error, f"{message}\n\n{traceback}".strip() + "\n")
        kept = f"{execution.partial} (up to that cell) and {execution.error} (the whole traceback)"
        raise FigureFailed(f"{message}\nKept: {_plain(kept, project)}.") from error
    finally:
        working.unlink(missing_ok=True)
    return execution.output


@contextmanager
def _kernel_environment(execution: Execution, project: Project) -> Iterator[None]:
    """Papermill hands its own environment to the kernel, so the variables are set here and put back."""
    variables = {
        "ATTNLIB_ROOT": str(project.root),
        "ATTNLIB_FIGURE_FILES": str(execution.files),
        # Another number of threads gives other last bits.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # the kernel's debugger warns about frozen modules otherwise
    }
    before = dict(os.environ)
    os.environ.pop("ATTNLIB_RUN_DIR", None)
    if execution.run_folder is not None:
        variables["ATTNLIB_RUN_DIR"] = str(execution.run_folder)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process may have probed at the same moment
    except OSError as error:
        raise BadInput(
            f"cannot write into {folder}: {error.strerror}; choose a folder you may write to"
        ) from error


def _write(notebook, path: Path, project: Project) -> None:
    import nbformat

    write_text_atomic(path, nbformat.writes(normalise(notebook, project.root)) + "\n")


def _describe(error, partial, figure: Figure) -> str:
    """One line: the figure, the cell by number, line and first words, the error."""
    if not hasattr(error, "cell_index"):
        done = sum(cell.get("execution_count") is not None for cell in partial.cells)
        return (
            f"{figure.id}: the kernel died after {done} cells had run ({error}); "
            "something killed it, perhaps for want of memory: try --jobs 1"
        )
    first = next((line.strip() for line in error.source.splitlines() if line.strip()), "")
    source = figure.path.read_text(encoding="utf-8")
    position = source.find(error.source.strip())
    line = f", line {source.count(chr(10), 0, position) + 1} of the notebook's source" * (position >= 0)
    return (
        f"{figure.id}: cell {error.cell_index + 1}{line}, which starts `{first[:80]}`, "
        f"failed with {error.ename}: {error.evalue}"
    )


def _plain(text: str, project: Project) -> str:
    """Without terminal colours and without this machine's folders."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"{project.root}/", "")


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module, for the workflow; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m companion.book.execute", description="Execute one figure."
    )
    parser.add_argument("figure", help="its id, such as attend/alignment_breakdown")
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--run", metavar="RUN.JSON", help="a run with parameters of its own, into its folder")
    given = parser.parse_args(arguments)
    execution = None
    try:
        project = current_project()
        figure = find(project, given.figure)
        if given.run:
            request = Request.read(given.run)
            parameters = {"profile": request.profile, **request.parameters}
            execution = for_a_run(figure, parameters, Path(given.run).resolve().parent)
        else:
            execution = for_the_book(figure, project, given.profile)
        execute(execution, project)
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        failed = isinstance(error, FigureFailed)
        if execution and not failed:
            with suppress(BadInput):
                write_text_atomic(execution.error, f"{error}\n")  # the figure's page shows it
        return 1 if failed else 2
    return 0


# What varies from run to run is taken out of an executed notebook, so that equal inputs give equal bytes.

INJECTED = "injected-parameters"
HIDDEN = "remove-cell"  # Jupyter Book leaves such cells out of the page
NOT_KEPT = ("papermill", "jupytext", "part", "order")  # of the notebook: of runs, of its source, of its place
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# The version of Python is left out on purpose: it is in the provenance of the result.
LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}
VARYING_METADATA = ("papermill", "execution", "status", "collapsed")

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
_CELL_FILE = re.compile(r"ipykernel_\d+[/\\]\d+\.py")


def normalise(notebook: NotebookNode, root: Path) -> NotebookNode:
    """The notebook, changed in place: no timings, stable ids, merged streams, no place of this machine."""
    notebook.metadata = {
        **{key: value for key, value in notebook.metadata.items() if key not in NOT_KEPT},
        "kernelspec": dict(KERNEL),
        "language_info": dict(LANGUAGE),
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    places = _places(root)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number:03d}"
        for key in VARYING_METADATA:
            cell.metadata.pop(key, None)
        tags = cell.metadata.get("tags", [])
        if INJECTED in tags and HIDDEN not in tags:
            cell.metadata["tags"] = [*tags, HIDDEN]
        if not cell.metadata.get("tags", [True]):
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            cell.outputs = [_without_places(output, places) for output in _merged_streams(cell.outputs)]
    return notebook


def _merged_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Where a kernel cuts a stream into pieces depends on the clock."""
    merged: list[NotebookNode] = []
    for output in outputs:
        if merged and output.output_type == "stream" and output.name == merged[-1].get("name"):
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def _places(root: Path) -> list[tuple[str, str]]:
    """Folders of this machine and what to print in their stead, the longest first."""
    named = {str(root): ".", str(root.resolve()): ".", sys.prefix: "<python>", sys.base_prefix: "<python>"}
    named |= {os.environ.get("ATTNLIB_DATA", ""): "$ATTNLIB_DATA", str(Path.home()): "~"}
    known = [(place.rstrip("/"), word) for place, word in named.items()]
    return sorted((pair for pair in known if len(pair[0]) > 2), key=lambda pair: -len(pair[0]))


def _without_places(value: object, places: list[tuple[str, str]]) -> object:
    if isinstance(value, str):
        for place, word in places:
            if place in value:
                value = re.sub(re.escape(place) + r"(?=[/\\\s\"'<>:,;)]|$)", lambda _, word=word: word, value)
        return _ADDRESS.sub("at 0x0", _without_cell_files(value))
    if isinstance(value, list):
        return [_without_places(item, places) for item in value]
    if isinstance(value, dict):
        for key in value:
            value[key] = _without_places(value[key], places)
    return value


def _without_cell_files(text: str) -> str:
    """``/tmp/ipykernel_12/345.py``, as tracebacks and warnings name a cell, becomes ``<cell>``.

    The folder is looked for backwards from the name: forwards, an image of a million letters would be read a
    million times.
    """
    parts, after = [], 0
    for found in _CELL_FILE.finditer(text):
        begin = found.start()
        while begin > after and text[begin - 1] not in " \t\n\"'<>(":
            begin -= 1
        parts += [text[after:begin], "<cell>"]
        after = found.end()
    return "".join([*parts, text[after:]])


if __name__ == "__main__":
    sys.exit(main())
