"""The commands of the book; they join ``attnlib`` through the entry points of an editable install.

What is heavy is imported inside the commands, so that ``--help`` answers at once.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnlib.errors import AttnlibError, BadInput
from companion.book import workflow
from companion.book.project import Project, current_project, discover, find, minutes
from companion.data import sources
from companion.paths import PAPER, PROFILES

if TYPE_CHECKING:
    from companion.results.request import Request

app = typer.Typer()
data = typer.Typer(
    no_args_is_help=True, help="The data sets: what there is, where it is, whether it is intact."
)
app.add_typer(data, name="data")

Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Jobs at once.", show_default="all cores")]
Explain = Annotated[bool, typer.Option("--explain", help="Only say what would be done, and why.")]
Names = Annotated[list[str] | None, typer.Argument(help="Data sets; all when none is named.", metavar="NAME")]
StatesOf = Callable[[sources.Dataset], list[sources.FileStatus]]
CORES = os.cpu_count() or 1


@app.command()
def figures() -> None:
    """List the figures: id, place in the paper, profile, minutes it took, last verdicts."""
    from companion.claims.verify import summaries, verify

    project = current_project()
    verdicts = summaries(verify(project.root))
    rows = []
    for figure in discover(project).values():
        name = figure.experiment
        run_at = [each for each in PROFILES if (project.results(each) / f"{name}.json").is_file()]
        for profile in run_at:
            taken = minutes(project.results(profile), name)
            told = verdicts.get((name, profile), "no claim")
            rows.append((figure.id, figure.place, profile, "—" if taken is None else f"{taken:.1f}", told))
        if not run_at:
            rows.append((figure.id, figure.place, "—", "—", "not run"))
    _show_table(("id", "place in the paper", "profile", "minutes", "last verdict"), rows, ("id", "profile"))
    print("minutes: with the training of its models, which figures share.")


def _show_table(headings: Iterable[str], rows: Iterable[Iterable[str]], whole: Iterable[str]) -> None:
    """A table whose columns ``whole`` are never broken; as wide as it likes where nobody looks."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            heading, no_wrap=heading in whole, justify="right" if heading == "minutes" else "left"
        )
    for row in rows:
        table.add_row(*map(Text, row))
    _console().print(table)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=160, highlight=False)


@app.command()
def run(
    figure: Annotated[
        list[str], typer.Argument(help="Ids as `attnlib figures` lists them.", metavar="FIGURE")
    ],
    profile: Annotated[
        str, typer.Option(help="quick: minutes, the book's. paper: the published numbers, hours.")
    ] = "quick",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            metavar="NAME=VALUE",
            help="Another value for a parameter of the notebook, as in -p seeds=1 -p task=scan,one_to_one. "
            "Such a run has a folder of its own, build/runs/<figure>-<hash>/, and leaves the book as it is; "
            "of a row of the book's tables at the paper profile the answers are kept for the book, too.",
        ),
    ] = None,
    jobs: Jobs = CORES,
    explain: Explain = False,
) -> None:
    """Bring figures up to date, with the models and results they need; nothing current is done again.

    At the paper profile, what is measured joins the archive in results/paper, to be committed.
    """
    from companion.book.parameters import own_text_sentences, request_of
    from companion.book.plan import bring_data

    project = current_project()
    requests = [request_of(find(project, name).id, profile, parameter or []) for name in figure]
    sources.mirror_folder()  # a wrong one is said here, in a line, and not from inside Snakemake
    for sentence in dict.fromkeys(chain.from_iterable(map(own_text_sentences, requests))):
        print(sentence)
    if not explain:
        bring_data(requests)
    outputs = [_prepared(project, request, explain) for request in requests]
    targets = [path.relative_to(project.root).as_posix() for path in outputs]
    published = [request for request in requests if request.profile == "paper" and not request.parameters]
    if published and not explain:
        _check_committed(project, published)
    code = workflow.run(project, targets, jobs, explain=explain)
    if published and not explain:
        _keep(project)
    for path, request in zip(outputs, requests, strict=True):
        if path.is_file() and not explain:
            print(path)
            taken = minutes(path.parent, path.stem) if request.parameters else None
            if taken is not None:
                print(f"{taken:.1f} minutes, with the training of its models, now or before")
            for drawn in sorted(path.with_suffix(".files").glob("*.svg")):
                print(f"open {drawn.as_uri()}")
    raise typer.Exit(min(1, code))


def _prepared(project: Project, request: "Request", explain: bool) -> Path:
    """The executed notebook to make; a run of its own is recorded in ``build/runs/<run>/run.json``.

    Raises BadInput: a setting that cannot be. DataUnavailable: data that a run of its own needs.
    """
    from companion.book.plan import check_data
    from companion.results.run import needed

    if request.parameters:
        needed(request)  # refuses values that cannot be
        if not explain:
            check_data(request)
        request.write(project.root / request.folder / "run.json")
    return project.notebook_of(request)


def _check_committed(project: Project, requests: list["Request"]) -> None:
    """Refuse to make a published result by code that nobody could check out afterwards.

    Raises BadInput: there are uncommitted changes to the code, and a result or a measurement is to be made.
    """
    from companion.book.plan import missing_of, paper_is_current
    from companion.runs.store import uncommitted

    made = [
        each
        for each in requests
        if missing_of(project, each) or not paper_is_current(project, each.experiment)
    ]
    changes = uncommitted(project.root)
    if made and changes:
        names = ", ".join(request.figure for request in made)
        raise BadInput(
            f"{names} would be measured by code that is not committed ({_first_of(changes)}): a published "
            "number names the commit it comes from. Commit the code first, or give a parameter with -p to "
            "try the paper profile out in its own folder"
        )


def _first_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _keep(project: Project) -> None:
    """Move what was measured at the paper profile into the archive that is committed."""
    from companion.results.committed import keep

    packed = keep(project.root)
    if packed:
        print(f"{packed} runs joined results/paper/archive: commit results/paper, then `make test`")


@app.command()
def book(jobs: Jobs = CORES, explain: Explain = False) -> None:
    """Bring every figure and the site up to date, and print the site's path."""
    project = current_project()
    sources.mirror_folder()
    if explain:
        raise typer.Exit(min(1, workflow.run(project, ["book"], jobs, explain=True)))
    from companion.book.plan import bring_data
    from companion.results.request import Request

    known = discover(project)
    bring_data([Request(figure) for figure in known])
    code = workflow.run(project, ["book"], jobs)
    if code and not all((project.executed("quick") / f"{figure}.ipynb").is_file() for figure in known):
        # The site is built all the same, with a page in a figure's place that shows the error.
        subprocess.run([sys.executable, "-m", "companion.book.site"], check=False)
    if project.site.is_file():
        print(project.site)
    raise typer.Exit(min(1, code))


@app.command()
def serve(port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000) -> None:
    """Show the built site on localhost until interrupted."""
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


@app.command()
def verify(
    everything: Annotated[bool, typer.Option("--all", help="Print every verdict, not just counts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, every verdict in it.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Expect today's verdicts from now on.")] = False,
    recompute: Annotated[bool, typer.Option("--recompute", help="Compute all of the archive, too.")] = False,
) -> None:
    """Check every claim against the results; exit code 1 when a verdict is not the accepted one."""
    from companion.claims.verify import verify_command

    raise typer.Exit(verify_command(current_project().root, as_json, accept, everything, recompute))


@app.command()
def doctor() -> None:
    """Say what is missing on this machine, data, browser and packages, and how to get it."""
    from attnlib.doctor import doctor_command
    from companion.doctor import findings_of_book

    doctor_command(findings_of_book())


@data.command("list")
def data_list() -> None:
    """List the data sets: what is here, from whom, under which terms."""
    rows = []
    for each in map(sources.dataset, sources.names()):
        here = sum(sources.find(each, file) is not None for file in each.files)
        files = f"{here} of {len(each.files)}"
        rows.append((each.name, files, each.redistribution, each.licence, each.title))
    _show_table(("name", "files here", "redistribution", "licence", "what"), rows, ("name",))
    mirror = sources.mirror_folder() or "none; set ATTNLIB_DATA to a folder that holds the data sets"
    print(f"mirror: {mirror}\ncache:  {sources.cache_folder()}")


@data.command("results")
def data_results() -> None:
    """List the tables of the committed results, which pandas.read_csv reads."""
    from companion.results import catalogue

    rows = [(each.figure, each.file, f"{each.rows:,}", each.row) for each in catalogue.entries()]
    _show_table(("figure", "file", "rows", "a row is"), rows, ("figure", "file"))
    print(f"folder: {PAPER}\ncolumns: {catalogue.PAGE}")


@data.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Download what is missing into the cache folder, and check it."""
    # pooch draws its bars with tqdm, which comes with the extra `book`.
    fetch = partial(sources.fetch, progress=sys.stderr.isatty() and find_spec("tqdm") is not None)
    raise typer.Exit(_tell_states(names, fetch, ("missing", "corrupt"), verbose=False))


@data.command("check")
def data_check(names: Names = None) -> None:
    """Compare every file that is here with its checksum; exit code 1 when one is corrupt."""
    raise typer.Exit(_tell_states(names, sources.check, ("corrupt",), verbose=bool(names)))


def _tell_states(
    chosen: list[str] | None, states_of: StatesOf, bad: tuple[str, ...], *, verbose: bool
) -> int:
    """A line a data set and a corrupt file; 1 where a state is bad or a data set could not be had."""
    console, code = _console(), 0
    for data in [sources.dataset(name) for name in chosen or sources.names()]:
        try:
            states = states_of(data)
        except AttnlibError as error:
            console.print(Text.assemble((f"{data.name}: ", "bold"), (str(error), "red")), soft_wrap=True)
            code = 1
            continue
        counts = Counter(status.state for status in states)
        console.print(f"[bold]{data.name}[/bold]: {', '.join(f'{n} {state}' for state, n in counts.items())}")
        for status in states:
            if status.state == "corrupt" or (verbose and status.state != "ok"):
                detail = status.detail or "nobody here has ever held it, so there is nothing to compare with"
                line = f"  {status.file.name}: {status.state}: {detail}"
                console.print(Text(line, style="red" if status.state in bad else ""), soft_wrap=True)
        code = max(code, *(int(state in bad) for state in counts))
    return code
