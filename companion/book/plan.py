"""What a build of the book consists of, for the Snakefile: figures, the files they rest on, what is missing.

Nothing here computes. A quick figure rests on files: its notebook, the static import closure of its
experiment and of its cells, and the files of claims if it asks them what is presupposed; Snakemake redoes it
when one of them changes. A result of the paper profile rests on runs and measurements, by id and version, and
torch is imported to list them.
"""

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import file_digest
from pathlib import Path

from attnlib.errors import AttnlibError, CorruptFile, DataUnavailable
from companion.book.closure import files_behind, files_imported_by_cells
from companion.book.progress import last_seconds
from companion.book.project import Figure, Project
from companion.data import sources
from companion.paths import ARCHIVE, MEASUREMENTS, ROOT
from companion.results import registry
from companion.results.request import Request

BOOK = Path(__file__).parent
LOOK = (BOOK / "book.mplstyle", BOOK / "instrument.html.jinja", BOOK / "execute.py")  # of every figure
PLANS = ("companion/runs/training_plan.json",)  # data that settings are made of
PRESUPPOSED = ROOT / "companion" / "claims" / "presupposed.py"  # reads limits from the files of claims
CODE_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", re.MULTILINE | re.DOTALL)


def files_of(project: Project, figure: Figure) -> list[str]:
    """All files that a figure is made of, relative to the checkout where they lie in it."""
    cells = CODE_CELL.findall(figure.path.read_text(encoding="utf-8"))
    modules = files_imported_by_cells(cells)
    if figure.experiment in registry.names():
        modules.add(registry.path_of(figure.experiment))
    templates = (project.notebooks / figure.id).glob("*.jinja")
    plans = (project.root / name for name in PLANS)
    behind = files_behind(modules)
    claims = (ROOT / "claims").glob("*.yaml") if PRESUPPOSED in behind else ()
    files = {figure.path, *LOOK, *behind, *claims, *templates, *filter(Path.is_file, plans)}
    return sorted(str(_in_checkout(project, path)) for path in files)


def _in_checkout(project: Project, path: Path) -> Path:
    return path.relative_to(project.root) if path.is_relative_to(project.root) else path


def paper_result(project: Project, figure: Figure) -> str:
    """Checksum of the committed result of the paper profile, which a page shows beside its own."""
    path = project.results("paper") / f"{figure.experiment}.json"
    if not path.is_file():
        return "none"
    with path.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def seconds(project: Project, figure: Figure) -> float:
    """What a figure took when it was made last; much, where it never was."""
    return last_seconds(project.build).get(figure.id, 1e5)


@cache
def request_of_run(project: Project, name: str) -> Request:
    """A run with parameters of its own, by the name of its folder in ``build/runs``."""
    return Request.read(project.build / "runs" / name / "run.json")


# The paper profile.


def paper_is_current(project: Project, experiment: str) -> bool:
    """Whether a committed result is there and rests on what its experiment asks for today."""
    from companion.results.config import plain
    from companion.results.result import Result

    path = project.results("paper") / f"{experiment}.json"
    try:
        result = Result.load(path)
    except CorruptFile:
        return False
    return result.config == plain(Request(experiment, "paper").config) and result.current


@cache
def missing_measurements(project: Project) -> dict[str, str]:
    """Runs of the paper profile that lack a measurement, with a hash of all that is measured of them."""
    from companion.results.answer import unanswered
    from companion.runs.archive import Archive

    archive, loose = (project.root / path.relative_to(ROOT) for path in (ARCHIVE, MEASUREMENTS))
    return unanswered("paper", Archive(archive, loose))


def missing_of(project: Project, request: Request) -> dict[str, str]:
    """The same of the runs that one request of the paper profile asks for."""
    from companion.runs.identity import run_id

    wanted = {run_id(spec) for spec in registry.load(request.experiment).models(request.config)}
    return {run: asked for run, asked in missing_measurements(project).items() if run in wanted}


def shares_archive(request: Request) -> bool:
    """Whether a request asks its networks just what the book's paper profile does; its answers are shared."""
    if request.profile != "paper":
        return False
    experiment = registry.load(request.experiment)
    if not request.parameters:
        return any(True for _ in experiment.measurements(request.config))
    asked = {measurement.id for measurement in experiment.measurements(request.config)}
    return bool(asked) and asked <= {
        measurement.id for measurement in experiment.measurements(request.standard)
    }


# Data.


def check_data(request: Request) -> None:
    """Raises DataUnavailable, CorruptFile: a file that the request reads is not as it should be."""
    from companion.results.run import data_of

    data_of(registry.load(request.experiment).models(request.config))


def bring_data(requests: Iterable[Request]) -> None:
    """Download published data that figures read and that is not here, where ``ATTNLIB_DATA`` is not set.

    What cannot be had is said on standard error, and the figures that need it say so on their pages.
    """
    from companion.book.download_bar import bar_on_a_terminal

    if os.environ.get("ATTNLIB_DATA"):
        return
    for name in sorted({data for request in requests for data in data_sets_of(request)}):
        dataset = sources.dataset(name)
        if all(status.state == "ok" for status in sources.check(dataset)):
            continue
        print(f"downloading {name} …", file=sys.stderr, flush=True)
        try:
            sources.fetch(dataset, progress=bar_on_a_terminal())
        except AttnlibError as error:
            print(f"{name}: {error}", file=sys.stderr)


def drop_made_without_data(project: Project, requests: Iterable[Request]) -> None:
    """Remove notebooks without a result of their own whose data has come, so that they are made again.

    A figure that was made while its data was missing shows the committed result alone. None of its files need
    have changed since.
    """
    for request in requests:
        if request.experiment not in registry.names():
            continue
        notebook = project.notebook_of(request)
        result = project.root / request.folder / f"{request.experiment}.json"
        if notebook.is_file() and not result.is_file():
            with suppress(DataUnavailable):
                check_data(request)
                notebook.unlink()


def data_sets_of(request: Request) -> set[str]:
    """Names of the published data sets that a request reads, were all of them here."""
    from companion.runs.identity import run_record

    if request.experiment not in registry.names():
        return set()
    with sources.all_at_hand():
        specs = registry.load(request.experiment).models(request.config)
        try:
            files = {
                name
                for spec in {replace(spec, seed=0) for spec in specs}
                for name in run_record(spec)["data"]
            }
        except DataUnavailable:  # one of the reader's own files, which nobody can download
            return set()
    return {name.partition("/")[0] for name in files} & set(sources.names())
