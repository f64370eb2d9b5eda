"""The commands of the book; they join ``attnlib`` through the entry points of an editable install.

What is heavy is imported inside the commands, so that ``--help`` answers at once.
"""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnlib.errors import AttnlibError, BadInput, check_known
from companion.book import workflow
from companion.book.progress import last_seconds
from companion.book.project import Figure, Project, current_project, discover, find_all, minutes
from companion.data import sources
from companion.paths import PAPER, PROFILES

if TYPE_CHECKING:
    from companion.book.own_runs import OwnRun
    from companion.results.request import Request

app = typer.Typer()
data = typer.Typer(
    no_args_is_help=True, help="The data sets: what there is, where it is, whether it is intact."
)
app.add_typer(data, name="data")

Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Jobs at once.", show_default="all cores")]
Explain = Annotated[bool, typer.Option("--explain", help="Only say what would be done, and why.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the whole log of Snakemake as well.")]


def _data_beginning(incomplete: str) -> list[str]:
    """Names of data sets, for the shell to complete."""
    return [name for name in sources.names() if name.startswith(incomplete)]


Names = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets; all when none is named.", metavar="NAME", autocompletion=_data_beginning),
]
StatesOf = Callable[[sources.Dataset], list[sources.FileStatus]]
CORES = os.cpu_count() or 1
MOST_MEMBERS = 4  # of a setting that is a list, in the list of parameters


def _figures_beginning(incomplete: str) -> list[str]:
    """Ids for the shell to complete; none outside of a checkout."""
    with suppress(AttnlibError):
        return [name for name in discover(current_project()) if name.startswith(incomplete)]
    return []


def _runs_beginning(incomplete: str) -> list[str]:
    """Names of a reader's own runs, for the shell to complete."""
    from companion.book.own_runs import own_runs

    with suppress(AttnlibError):
        return [run.name for run in own_runs(current_project()) if run.name.startswith(incomplete)]
    return []


@app.command()
def figures(
    figure: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids or patterns such as 'attend/*'; all when none is given.",
            metavar="FIGURE",
            autocompletion=_figures_beginning,
        ),
    ] = None,
    part: Annotated[str, typer.Option(help="Figures of one part of the book: I, II, III or IV.")] = "",
    verdicts: Annotated[
        bool, typer.Option("--verdicts", help="Judge the claims as well, which takes some seconds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: every field, for programs.")] = False,
) -> None:
    """List the figures: id, minutes at each profile, title; of one figure, its parameters."""
    project = current_project()
    chosen = find_all(project, figure or ["*"])
    if part:
        check_known("part", part, sorted({page.part for page in discover(project).values()}))
        chosen = [page for page in chosen if page.part == part]
    judged = _verdicts(project) if verdicts else {}
    entries = [_entry(project, page, judged if verdicts else None) for page in chosen]
    if as_json:
        print(json.dumps(entries, indent=1, ensure_ascii=False))
        return
    is_about_one = len(chosen) == 1 and figure is not None
    _console().print(_overview(entries, verdicts=verdicts))
    if is_about_one:
        _print_parameters(chosen[0])
    else:
        print("Minutes include the training of networks, which figures share. ~1.5 means that a figure took")
        print("1.5 minutes on another machine and has not been made here; — means that it has not been run.")
        print("`attnlib figures FIGURE` lists a figure's parameters, `attnlib run FIGURE` makes it.")


def _verdicts(project: Project) -> dict[tuple[str, str], str]:
    from companion.claims.verify import summaries, verify

    return summaries(verify(project.root))


def _entry(project: Project, figure: Figure, verdicts: dict[tuple[str, str], str] | None) -> dict[str, Any]:
    """What is known of a figure, for programs; ``verdicts`` is None where nobody has judged."""
    name = figure.experiment
    entry: dict[str, Any] = {"id": figure.id, "title": figure.title, "part": figure.part}
    entry |= {"place": figure.place, "profiles": {}, "expected_minutes": None}
    seconds = last_seconds(project.build).get(figure.id)
    if seconds is not None:
        entry["expected_minutes"] = round(seconds / 60, 1)
    for profile in PROFILES:
        folder = project.results(profile)
        if (folder / f"{name}.json").is_file():
            entry["profiles"][profile] = {"minutes": minutes(folder, name)}
            if verdicts is not None:
                entry["profiles"][profile]["verdicts"] = verdicts.get((name, profile), "no claim")
    return entry


def _overview(entries: list[dict[str, Any]], *, verdicts: bool) -> Table:
    """A row a figure; titles are cut off at the edge of a narrow terminal, ids never."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    longest = max((len(entry["id"]) for entry in entries), default=0)
    table.add_column("id", no_wrap=True, min_width=longest)
    for profile in PROFILES:
        heading = f"{profile} min"
        table.add_column(heading, no_wrap=True, min_width=len(heading), justify="right")
    last = "verdicts at paper" if verdicts else "title"
    table.add_column(last, no_wrap=True, overflow="ellipsis")
    for entry in entries:
        paper = entry["profiles"].get("paper", {})
        text = paper.get("verdicts", "not run") if verdicts else entry["title"]
        table.add_row(entry["id"], *(_minutes(entry, profile) for profile in PROFILES), Text(text))
    return table


def _minutes(entry: dict[str, Any], profile: str) -> str:
    taken = entry["profiles"].get(profile, {}).get("minutes")
    if taken is not None:
        return f"{taken:.1f}"
    if profile == "quick" and entry["expected_minutes"] is not None:
        return f"~{entry['expected_minutes']:.1f}"
    return "—"


def _first_few(value: object) -> str:
    """A setting in a few words: of a long list its first three members."""
    from companion.book.own_runs import shown

    if isinstance(value, list | tuple) and len(value) > MOST_MEMBERS:
        return f"{shown(value[:MOST_MEMBERS])}, … ({len(value)} in all)"
    return shown(value)


def _print_parameters(figure: Figure) -> None:
    """List what ``attnlib run FIGURE -p`` takes."""
    from companion.book.parameters import parameters
    from companion.results import registry

    print(f"\n{figure.title}\n{figure.place}")
    if figure.experiment not in registry.names():
        print("It has no parameters.")
        return
    experiment = registry.load(figure.experiment)
    profiles = registry.book_profiles(experiment)
    print(f"\nparameters, for `attnlib run {figure.id} -p NAME=VALUE`:")
    for name, text in parameters(experiment.Config).items():
        values = {profile: _first_few(getattr(settings, name)) for profile, settings in profiles.items()}
        known = {profile: value for profile, value in values.items() if value not in ("", "None")}
        defaults = ", ".join(f"{profile}: {value}" for profile, value in known.items())
        _console().print(Text(f"  {name}  [{defaults}]" if defaults else f"  {name}", style="bold"))
        _console().print(Text(textwrap.indent(textwrap.fill(text, 74), "      ")))


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
        list[str],
        typer.Argument(
            help="Ids as `attnlib figures` lists them, or patterns such as 'attend/*'.",
            metavar="FIGURE",
            autocompletion=_figures_beginning,
        ),
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
            "Such a run has its own folder in build/runs, which `attnlib status` lists, and leaves the book "
            "as it is; of a row of the book's tables at the paper profile the answers are kept for the book.",
        ),
    ] = None,
    jobs: Jobs = CORES,
    explain: Explain = False,
    verbose: Verbose = False,
) -> None:
    """Bring figures up to date, with the models and results they need; nothing current is done again.

    At the paper profile, what is measured joins the archive in results/paper, to be committed.
    """
    from companion.book.parameters import own_text_sentences, request_of
    from companion.book.plan import bring_data, drop_made_without_data

    began = time.monotonic()
    project = current_project()
    chosen = find_all(project, figure)
    requests = [request_of(page.id, profile, parameter or []) for page in chosen]
    sources.mirror_folder()  # a wrong one is said here, in a line, and not from inside Snakemake
    for sentence in dict.fromkeys(chain.from_iterable(map(own_text_sentences, requests))):
        print(sentence)
    if not explain:
        bring_data(requests)
        drop_made_without_data(project, requests)
    outputs = [_prepared(project, request, explain) for request in requests]
    targets = [path.relative_to(project.root).as_posix() for path in outputs]
    published = [request for request in requests if request.profile == "paper" and not request.parameters]
    if published and not explain:
        _check_committed(project, published)
    code = workflow.run(project, targets, jobs, explain=explain, verbose=verbose)
    if published and not explain:
        _keep(project)
    if not explain:
        print(f"this command took {_duration(time.monotonic() - began)}")
        for path, request in zip(outputs, requests, strict=True):
            _print_outcome(project, request, path)
    raise typer.Exit(min(1, code))


def _duration(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> [_duration(seconds) for seconds in (9.4, 69.0, 3_725.0)]
    ['9 s', '1 min 9 s', '1 h 2 min']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _print_outcome(project: Project, request: "Request", notebook: Path) -> None:
    """Print what a run has to say: its main numbers, and what to open."""
    from companion.book.own_runs import OwnRun, leaves, main_numbers

    if not notebook.is_file():
        return
    if request.parameters:
        own_run = OwnRun(project, request)
        with suppress(AttnlibError):  # the notebook says why there are no numbers
            numbers = main_numbers(project, request, own_run.result)
            width = max(map(len, numbers), default=0)
            for key, number in numbers.items():
                print(f"{key:<{width}}  {number}")
            total = sum(1 for _ in leaves(own_run.result.values))
            if total > len(numbers):
                print(f"{len(numbers)} of {total} numbers; all are in {own_run.result_file}")
        print(f"`attnlib diff {own_run.name}` compares it with the book")
    for picture in sorted(notebook.with_suffix(".files").glob("*.svg")):
        print(f"open {picture.as_uri()}")
    print(notebook)


def _prepared(project: Project, request: "Request", explain: bool) -> Path:
    """The executed notebook to make; a run of its own is recorded in ``build/runs/<run>/run.json``.

    Raises BadInput: a setting that cannot be. DataUnavailable: data that a run of its own needs.
    """
    from companion.book.plan import check_data

    if request.parameters:
        request.needed()  # refuses values that cannot be
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
        request
        for request in requests
        if missing_of(project, request) or not paper_is_current(project, request.experiment)
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
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List your own runs, the newest first, and say how much of the book is made."""
    from companion.book.own_runs import own_runs

    project = current_project()
    runs = own_runs(project)
    if as_json:
        print(json.dumps([_own_entry(run) for run in runs], indent=1, ensure_ascii=False))
        return
    known = discover(project)
    made = sum((project.executed("quick") / f"{figure}.ipynb").is_file() for figure in known)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("nr", "figure", "state", "minutes", "started", "parameters"):
        table.add_column(heading, no_wrap=heading != "parameters", overflow="fold")
    for number, each_run in enumerate(runs, 1):
        taken = "—" if each_run.minutes is None else f"{each_run.minutes:.1f}"
        started = f"{each_run.started:%Y-%m-%d %H:%M}"
        cells = (str(number), each_run.request.figure, each_run.state, taken, started, each_run.settings)
        table.add_row(*map(Text, cells))
    if runs:
        _console().print(table)
        print("`attnlib diff NR` compares a run with the book, `attnlib diff NR NR` two runs.")
    else:
        print("no run with parameters yet: `attnlib run FIGURE -p NAME=VALUE` makes one")
    site = f"site: {project.site}" if project.site.is_file() else "no site yet: `attnlib book` builds it"
    print(f"book: {made} of {len(known)} figures made; {site}")


def _own_entry(run: "OwnRun") -> dict[str, Any]:
    return {
        "name": run.name, "figure": run.request.figure, "profile": run.request.profile,
        "parameters": dict(run.request.parameters), "state": run.state, "minutes": run.minutes,
        "started": run.started.isoformat(timespec="seconds"), "folder": str(run.folder),
    }  # fmt: skip


@app.command()
def diff(
    first: Annotated[
        str,
        typer.Argument(help="A run: its number or name in `attnlib status`.", autocompletion=_runs_beginning),
    ],
    second: Annotated[
        str | None,
        typer.Argument(help="Another run; the book's when none is given.", autocompletion=_runs_beginning),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every number that differs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare two runs, or a run with the book: settings and numbers that differ."""
    from companion.book import own_runs as runs

    project = current_project()
    run_of_first = runs.find_run(project, first)
    if second is None:
        others = runs.book_result(project, run_of_first.request)
        comparison = runs.compare(others, run_of_first.result)
        names = ("the book", run_of_first.name)
    else:
        run_of_second = runs.find_run(project, second)
        comparison = runs.compare(run_of_first.result, run_of_second.result)
        names = (run_of_first.name, run_of_second.name)
    if as_json:
        print(runs.as_json(comparison))
        return
    for line in runs.diff_lines(comparison, names, everything=everything):
        print(line)


@app.command()
def book(jobs: Jobs = CORES, explain: Explain = False, verbose: Verbose = False) -> None:
    """Bring every figure and the site up to date, and print the site's path."""
    project = current_project()
    sources.mirror_folder()
    if explain:
        raise typer.Exit(min(1, workflow.run(project, ["book"], jobs, explain=True)))
    from companion.book.plan import bring_data, drop_made_without_data
    from companion.results.request import Request

    known = discover(project)
    requests = [Request(figure) for figure in known]
    bring_data(requests)
    drop_made_without_data(project, requests)
    code = workflow.run(project, ["book"], jobs, verbose=verbose)
    if code and not all((project.executed("quick") / f"{figure}.ipynb").is_file() for figure in known):
        # The site is built all the same, with a page in a figure's place that shows the error.
        subprocess.run([sys.executable, "-m", "companion.book.site"], check=False)
    if project.site.is_file():
        print(f"open {project.site.as_uri()}, or `attnlib serve`")
        print(project.site)
    raise typer.Exit(min(1, code))


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every request.")] = False,
) -> None:
    """Show the built site on localhost until interrupted."""
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    project = current_project()
    if not project.site.is_file():
        raise BadInput(f"no site at {project.site}; build it with `make book` or `attnlib book`")

    class Handler(SimpleHTTPRequestHandler):
        """Prints nothing unless asked: a page view is forty requests."""

        def log_message(self, *message: Any) -> None:
            if verbose:
                super().log_message(*message)

    handler = partial(Handler, directory=str(project.site.parent))
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
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Claims or figures to explain: numbers, verdict and why.", metavar="NAME"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every verdict, not just counts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, every verdict in it.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Expect today's verdicts from now on.")] = False,
    recompute: Annotated[bool, typer.Option("--recompute", help="Compute all of the archive, too.")] = False,
) -> None:
    """Check every claim against the results; exit code 1 when a verdict is not the accepted one."""
    from companion.claims.verify import explain_command, verify_command

    if names:
        raise typer.Exit(explain_command(current_project().root, names))
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
    for dataset in map(sources.dataset, sources.names()):
        here = sum(sources.find(dataset, file) is not None for file in dataset.files)
        files = f"{here} of {len(dataset.files)}"
        rows.append((dataset.name, files, dataset.redistribution, dataset.licence, dataset.title))
    _show_table(("name", "files here", "redistribution", "licence", "what"), rows, ("name",))
    mirror = sources.mirror_folder() or "none; set ATTNLIB_DATA to a folder that holds the data sets"
    print(f"mirror: {mirror}\ncache:  {sources.cache_folder()}")


@data.command("results")
def data_results() -> None:
    """List the tables of the committed results, which pandas.read_csv reads."""
    from companion.results import catalogue

    rows = [(entry.figure, entry.file, f"{entry.rows:,}", entry.row) for entry in catalogue.entries()]
    _show_table(("figure", "file", "rows", "a row is"), rows, ("figure", "file"))
    print(f"folder: {PAPER}\ncolumns: {catalogue.PAGE}")


@data.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Download what is missing into the cache folder, and check it."""
    from companion.book.download_bar import bar_on_a_terminal

    fetch = partial(sources.fetch, progress=bar_on_a_terminal())
    raise typer.Exit(_tell_states(names, fetch, ("missing", "corrupt"), verbose=False))


@data.command("check")
def data_check(names: Names = None) -> None:
    """Compare every file with its checksum; exit code 1 when one is corrupt or missing."""
    bad = ("corrupt", "missing")
    code = _tell_states(names, sources.check, bad, verbose=bool(names))
    if code:
        print(
            "`attnlib data fetch NAME` downloads what is missing, or set ATTNLIB_DATA to a folder that has it"
        )
    raise typer.Exit(code)


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
