"""What ``attnlib figures``, ``run``, ``book`` and ``serve`` do."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnlib.errors import AttnlibError, BadInput, DataUnavailable
from companion.book import workflow
from companion.book.project import PROFILES, Project, current_project, discover, minutes, place_in_paper
from companion.data.sources import cache_folder, check, dataset, fetch, mirror_folder, names
from companion.data.sources import find as find_of_sources
from companion.results.request import Request


def list_figures() -> None:
    """A line for every figure and profile it has been run at."""
    from companion.claims.verify import summaries, verify

    project = current_project()
    verdicts = summaries(verify(project.root))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "place in the paper", "profile", "minutes", "last verdict"):
        table.add_column(
            heading, no_wrap=heading in ("id", "profile"), justify="right" if heading == "minutes" else "left"
        )
    for figure in discover(project).values():
        place = place_in_paper(figure, project)
        run_at = [
            profile
            for profile in PROFILES
            if (project.results(profile) / f"{figure.experiment}.json").is_file()
        ]
        for profile in run_at or ["—"]:
            taken = minutes(project.results(profile), figure.experiment) if run_at else None
            verdict = verdicts.get((figure.experiment, profile), "no claim") if run_at else "not run"
            table.add_row(figure.id, place, profile, "—" if taken is None else f"{taken:.1f}", Text(verdict))
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(width=160, highlight=False)
    console.print(table)
    console.print("minutes: with the training of its models, which figures share.")


def run_figures(requests: list[Request], jobs: int, explain: bool) -> int:
    """Bring figures up to date, or run them with parameters of their own; the exit code.

    Raises:
        BadInput: a setting that cannot be. DataUnavailable: a run of its own needs data that is not at hand.
    """
    project = current_project()
    mirror_folder()  # a wrong one is said here, in a line, and not from inside Snakemake
    outputs = [_prepared(project, request, explain) for request in requests]
    if not explain:
        _bring_data(project, [request for request in requests if not request.parameters])
    targets = [path.relative_to(project.root).as_posix() for path in outputs]
    code = min(1, workflow.run(project, targets, jobs, explain=explain))
    for path, request in zip(outputs, requests, strict=True):
        if path.is_file() and not explain:
            print(path)
            taken = minutes(path.parent, path.stem) if request.parameters else None
            if taken is not None:
                print(f"{taken:.1f} minutes, with the training of its models, now or before")
    return code


def _prepared(project: Project, request: Request, explain: bool) -> Path:
    """The executed notebook to make; a run of its own is recorded in ``build/runs/<run>/run.json``."""
    from companion.book.plan import PlannedResult

    if not request.parameters:
        return project.executed(request.profile) / f"{request.figure}.ipynb"
    result = PlannedResult(project, request)
    result.specs  # noqa: B018  refuses values that cannot be
    if not explain:
        _bring_data(project, [request])
        if result.cannot_run:
            raise DataUnavailable(result.cannot_run)
    folder = project.root / result.folder
    request.write(folder / "run.json")
    return folder / f"{request.experiment}.ipynb"


def _bring_data(project: Project, requests: list[Request]) -> None:
    """Download what figures read; planning takes two seconds, so not where a mirror has everything."""
    if not os.environ.get("ATTNLIB_DATA"):
        from companion.book.plan import PlannedResult, bring_data
        from companion.results import registry

        known = (request for request in requests if request.experiment in registry.names())
        bring_data(PlannedResult(project, request) for request in known)


def build_book(jobs: int, explain: bool) -> int:
    """Bring the whole book up to date; the exit code.

    Where a figure fails the site is built all the same, with a page in its place that shows the error.
    """
    project = current_project()
    mirror_folder()
    if explain:
        return min(1, workflow.run(project, ["book"], jobs, explain=True))
    code = 0
    if not workflow.is_current(project):
        inputs, figures = workflow.state(project, workflow.INPUTS), discover(project)
        _bring_data(project, [Request(figure) for figure in figures])
        code = workflow.run(project, ["book"], jobs)
        if code == 0:
            workflow.mark_current(project, inputs)
        elif not all((project.executed("quick") / f"{figure}.ipynb").is_file() for figure in figures):
            subprocess.run([sys.executable, "-m", "companion.book.site", "--root", project.root], check=False)
    if project.site.is_file():
        print(project.site)
    return min(1, code)


def serve_site(port: int) -> None:
    """Serve the site on localhost until interrupted.

    Raises:
        BadInput: the site is not built, or the port is taken.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    project = current_project()
    if not project.site.is_file():
        raise BadInput(f"no site at {project.site}; build it with `make book` or `attnlib book`")
    handler = partial(SimpleHTTPRequestHandler, directory=str(project.site.parent))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise BadInput(f"port {port} is not free ({error.strerror}); take another with --port") from error
    with server:
        print(f"http://localhost:{port}/   (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


# What ``attnlib data list``, ``fetch`` and ``check`` do.


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=160, highlight=False)


def list_data() -> None:
    """A line a data set: how many of its files are here, whether its text may be passed on, its licence."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "files here", "redistribution", "licence", "what"):
        table.add_column(heading, no_wrap=heading == "name")
    for name in names():
        data = dataset(name)
        here = sum(find_of_sources(data, file) is not None for file in data.files)
        cells = f"{here} of {len(data.files)}", data.redistribution, data.licence, data.title
        table.add_row(Text(name), *map(Text, cells))
    console = _console()
    console.print(table)
    mirror = mirror_folder()
    console.print(f"mirror: {mirror or 'none; set ATTNLIB_DATA to a folder that holds the data sets'}")
    console.print(f"cache:  {cache_folder()}")


def fetch_data(chosen: list[str]) -> int:
    """Download what is missing; 1 when a data set could not be had in full, after all have been tried."""
    console, code = _console(), 0
    for data in [dataset(name) for name in chosen or names()]:
        # pooch draws its bars with tqdm, which comes with the extra `book`.
        progress = sys.stderr.isatty() and find_spec("tqdm") is not None
        try:
            states = fetch(data, progress=progress)
        except AttnlibError as error:
            console.print(Text.assemble((f"{data.name}: ", "bold"), (str(error), "red")), soft_wrap=True)
            code = 1
            continue
        code = max(code, _tell(console, data.name, states, verbose=False, bad=("missing", "corrupt")))
    return code


def check_data(chosen: list[str]) -> int:
    """Compare what is here with the checksums; 1 when a file is corrupt. A missing file is no error."""
    console = _console()
    codes = [
        _tell(console, data.name, check(data), verbose=bool(chosen), bad=("corrupt",))
        for data in [dataset(name) for name in chosen or names()]
    ]
    return max(codes)


def _tell(console: Console, name: str, states: list, *, verbose: bool, bad: tuple[str, ...]) -> int:
    counts = {
        state: sum(status.state == state for status in states)
        for state in dict.fromkeys(s.state for s in states)
    }
    console.print(f"[bold]{name}[/bold]: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    for status in states:
        if status.state == "corrupt" or (verbose and status.state != "ok"):
            detail = status.detail or "nobody here has ever held it, so there is nothing to compare it with"
            line = f"  {status.file.name}: {status.state}: {detail}"
            console.print(Text(line, style="red" if status.state in bad else ""), soft_wrap=True)
    return int(any(status.state in bad for status in states))
