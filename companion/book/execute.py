"""Make one figure: its result, then MyST source → notebook → papermill → an executed notebook.

``python -m companion.book.execute attend/alignment_breakdown`` makes one in the book's folder. The result is
computed here, from measurements that are kept, and the notebook opens it. An executed notebook is the same
every time. Kernels talk over sockets in a folder of their process, so that two started at once never take the
same port; as a plugin of pytest this module sees to that for nbval's.
"""

import logging
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from attnlib.errors import AttnlibError, BadInput, DataUnavailable
from attnlib.files import write_text_atomic
from companion.book import progress
from companion.book.project import Figure, Project, current_project, find, folder_to_write
from companion.paths import ARCHIVE, MEASUREMENTS
from companion.results import registry
from companion.results.request import Request
from companion.runs.command import errors_in_a_line, parser_of


class FigureFailed(AttnlibError):
    """A cell of a notebook raised; names the cell, the error, and the files kept."""


@cache
def _folder_of_sockets() -> TemporaryDirectory:
    """Removed with the process. A socket's path has at most 108 characters, so it is not below ``TMPDIR``."""
    return TemporaryDirectory(prefix="attnlib-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)


def local_sockets() -> Config:
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{_folder_of_sockets().name}/kernel"}})


def pytest_configure() -> None:
    import nbval.kernel

    nbval.kernel.KernelManager = partial(nbval.kernel.KernelManager, config=local_sockets())


def make_result(project: Project, request: Request) -> None:
    """Compute the result that a figure shows, training and measuring what is missing.

    A committed result of the paper profile is a source of the book, and left as it is; ``companion.results``
    makes it.

    Raises DataUnavailable: files that it reads are not here; an earlier result is then gone, too.
    """
    committed = request.profile == "paper" and not request.parameters
    if committed or request.experiment not in registry.names():
        return
    from companion.book.plan import shares_archive
    from companion.results.answer import report_progress
    from companion.results.run import run
    from companion.runs.archive import Archive

    folder = project.root / request.folder
    (folder / f"{request.experiment}.json").unlink(missing_ok=True)
    archive = Archive(ARCHIVE, MEASUREMENTS) if shares_archive(request) else None
    run(request, out=folder, models=project.models, report=report_progress(), archive=archive)


def execute(project: Project, request: Request) -> Path:
    """Run a figure's notebook and write it, whole, to `Project.notebook_of`, its files beside it.

    Raises BadInput: not exactly one cell tagged ``parameters``; an output folder that cannot be written.
    FigureFailed: a cell raised; the partial notebook and the error stay beside where the output would be.
    """
    import jupytext
    import papermill
    from nbclient.exceptions import DeadKernelError

    from companion.book.prose import Book, filled

    figure, output = find(project, request.figure), project.notebook_of(request)
    standard = request == Request(request.figure)
    parameters = {} if standard else {"profile": request.profile, **request.parameters}
    notebook = jupytext.read(figure.path)
    if request.parameters and (first := _opening(project, request)):
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(first))
    tagged = ["parameters" in cell.metadata.get("tags", []) for cell in notebook.cells]
    if sum(tagged) != 1:  # papermill would only warn, and run with the defaults
        number = sum(tagged) or "no"
        raise BadInput(f"{figure.id} has {number} cell tagged `parameters`; exactly one is needed")
    unfinished, failure = output.with_suffix(".partial.ipynb"), output.with_suffix(".error.txt")
    files = folder_to_write(output.with_suffix(".files"))
    for old in (unfinished, failure):
        old.unlink(missing_ok=True)
    earlier = {path: path.stat().st_mtime_ns for path in files.iterdir()}
    working = output.with_name(f".{output.stem}.running.ipynb")
    started = nbformat.v4.new_notebook()  # cells up to the one that runs, with what they have printed
    # Papermill hands its own environment to the kernel.
    variables = {
        "ATTNLIB_ROOT": str(project.root),
        "ATTNLIB_FIGURE_FILES": str(files),
        "ATTNLIB_REQUEST": request.as_text(),
        # Another number of threads gives other last bits.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # the kernel's debugger warns about frozen modules otherwise
    }
    try:
        with patch.dict(os.environ, variables):
            papermill.execute_notebook(
                notebook, working, parameters, kernel_name="python3", language="python",
                cwd=output.parent,  # as under nbval
                progress_bar=False, start_timeout=180, config=local_sockets(),
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                coalesce_streams=True,  # where a kernel cuts a stream into pieces depends on the clock
                request_save_on_cell_execute=False,  # which writes and validates all of it twice a cell
                on_cell_start=lambda cell, cell_index: started.cells.append(cell),
            )  # fmt: skip
        done = nbformat.read(working, as_version=4)
        book = Book(project.root)
        for cell in done.cells:
            if cell.cell_type == "markdown":
                cell.source, _ = filled(cell.source, book, figure.id)
        _write(done, output, project)
        for path, written in earlier.items():
            if path.is_file() and path.stat().st_mtime_ns == written:  # no longer made by the notebook
                path.unlink()
    except (papermill.PapermillExecutionError, DeadKernelError) as error:
        if isinstance(error, DeadKernelError):  # of which papermill writes nothing
            done = started
        else:
            # Without papermill's markers the number of a cell is its number in the file.
            done = papermill.execute.remove_error_markers(nbformat.read(working, as_version=4))
        _write(done, unfinished, project)
        message = _plain(_describe(error, done, figure), project)
        traceback = _plain("\n".join(getattr(error, "traceback", [])), project)
        write_text_atomic(failure, f"{message}\n\n{traceback}".strip() + "\n")
        kept = f"{unfinished} (up to that cell) and {failure} (the whole traceback)"
        raise FigureFailed(f"{message}\nKept: {_plain(kept, project)}.") from error
    except KeyboardInterrupt:
        # Whether the kernel, stopped as well, is seen to have died before this ends is a matter of chance.
        logging.getLogger("asyncio").disabled = True
        raise
    finally:
        working.unlink(missing_ok=True)
    return output


def _opening(project: Project, request: Request) -> str:
    """What opens the notebook of a run with parameters: its own numbers; empty where it has no result."""
    from companion.book.own_runs import opening
    from companion.results.result import Result

    path = project.root / request.folder / f"{request.experiment}.json"
    return opening(project, request, Result.load(path)) if path.is_file() else ""


def _write(notebook, path: Path, project: Project) -> None:
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
    line = ""
    if position >= 0:
        line = f", line {source.count(chr(10), 0, position) + 1} of the notebook's source"
    return (
        f"{figure.id}: cell {error.cell_index + 1}{line}, which starts `{first[:80]}`, "
        f"failed with {error.ename}: {error.evalue}"
    )


def _plain(text: str, project: Project) -> str:
    """Without terminal colours and without this machine's folders."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"{project.root}/", "")


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    given, _ = Request.parsed(parser_of("companion.book.execute", __doc__), arguments)
    project, started = current_project(), time.monotonic()
    request = replace(given, figure=find(project, given.figure).id)
    try:
        _make_result_or_say_why_not(project, request)
        execute(project, request)
        progress.note(project.build, request.job, time.monotonic() - started)
    except FigureFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except AttnlibError as error:
        with suppress(BadInput):  # the page of the figure shows it
            write_text_atomic(project.notebook_of(request).with_suffix(".error.txt"), f"{error}\n")
        raise
    return 0


def _make_result_or_say_why_not(project: Project, request: Request) -> None:
    """A figure of the book whose data is not here shows the committed result; any other run is refused."""
    try:
        make_result(project, request)
    except DataUnavailable as error:
        if request.parameters:
            raise
        print(f"cannot be run: data: {request.figure} ({request.profile}): {error}", file=sys.stderr)


# What varies from run to run is taken out of an executed notebook, so that equal inputs give equal bytes.

NOT_KEPT = ("papermill", "jupytext", "part", "order")  # of the notebook: of runs, of its source, of its place
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# The version of Python is left out on purpose: it is in the provenance of the result.
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
LANGUAGE["pygments_lexer"] = "ipython3"
VARYING = ("papermill", "execution", "status", "collapsed")

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
# ``/tmp/ipykernel_12/345.py``, as tracebacks and warnings name a cell. Looked for from where words begin:
# from each of its letters, an image of a million would be read a million times.
_CELL_FILE = re.compile(r"""(?<![^ \t\n"'<>(])[^ \t\n"'<>(]*ipykernel_\d+[/\\]\d+\.py""")


def normalise(notebook: NotebookNode, root: Path) -> NotebookNode:
    """The notebook, changed in place: no timings, stable ids, no place of this machine."""
    notebook.metadata = {
        **{key: value for key, value in notebook.metadata.items() if key not in NOT_KEPT},
        "kernelspec": dict(KERNEL),
        "language_info": dict(LANGUAGE),
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    places = _places(root)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number:03d}"
        for key in VARYING:
            cell.metadata.pop(key, None)
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]  # which Jupyter Book leaves out of the page
        if not cell.metadata.get("tags", [True]):
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            cell.outputs = [_without_places(output, places) for output in cell.outputs]
    return notebook


def _places(root: Path) -> dict[str, str]:
    """Folders of this machine and what to print in their stead, the longest first."""
    named = {str(root): ".", str(root.resolve()): ".", sys.prefix: "<python>", sys.base_prefix: "<python>"}
    named |= {os.environ.get("ATTNLIB_DATA", ""): "$ATTNLIB_DATA", str(Path.home()): "~"}
    known = ((place.rstrip("/"), word) for place, word in named.items())
    return dict(sorted((pair for pair in known if len(pair[0]) > 2), key=lambda pair: -len(pair[0])))


def _without_places(value: object, places: dict[str, str]) -> object:
    if isinstance(value, str):
        known = rf"({'|'.join(map(re.escape, places))})(?=[/\\\s\"'<>:,;)]|$)"
        value = re.sub(known, lambda match: places[match[0]], _CELL_FILE.sub("<cell>", value))
        return _ADDRESS.sub("at 0x0", value)
    if isinstance(value, list):
        return [_without_places(item, places) for item in value]
    if isinstance(value, dict):
        for key in value:
            value[key] = _without_places(value[key], places)
    return value


if __name__ == "__main__":
    sys.exit(main())
