"""What ``attnlib figures``, ``run``, ``book`` and ``serve`` do."""

import hashlib
import json
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
from companion.book.execute import notebook_parameters
from companion.book.parameters import absolute, check_known, check_parallel, from_word, split_assignments
from companion.book.plan import Plan, Run, bring_data
from companion.book.project import (
    PROFILES,
    Figure,
    Project,
    check_profile,
    current_project,
    discover,
    find,
    minutes,
    place_in_paper,
)
from companion.data.sources import (
    cache_folder,
    check,
    dataset,
    fetch,
    mirror_folder,
    names,
)
from companion.data.sources import (
    find as find_of_sources,
)


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


def run_figures(names: list[str], profile: str, words: list[str], jobs: int, explain: bool) -> int:
    """Bring figures up to date, or run them with parameters of their own; the exit code."""
    project = current_project()
    mirror_folder()  # a wrong one is said here, in a line, and not from inside Snakemake
    check_profile(profile, PROFILES)
    figures = [find(project, name) for name in names]
    assignments = split_assignments(words)
    if assignments:
        runs = [prepare_run(project, figure, profile, assignments, explain=explain) for figure in figures]
        return max(_own_run(project, run, jobs, explain) for run in runs)
    outputs = [project.executed(profile) / f"{figure.id}.ipynb" for figure in figures]
    targets = [path.relative_to(project.root).as_posix() for path in outputs]
    if explain:
        return _explain(*workflow.planned(project, targets, {}))
    _bring_data(project, profile)
    code = _outcome(workflow.run(project, targets, jobs))
    for path in outputs:
        if path.is_file():
            print(path)
    return code


def build_book(jobs: int, explain: bool) -> int:
    """Bring the whole book up to date; the exit code.

    Where a figure fails the site is built all the same, with a page in its place that shows the error.
    """
    project = current_project()
    mirror_folder()
    if explain:
        return _explain(*workflow.planned(project, ["book"], {}))
    _bring_data(project, "quick")
    outcome = workflow.run(project, ["book"], jobs)
    code = _outcome(outcome)
    if outcome.failed and "site" not in outcome.failed:
        site = [sys.executable, "-m", "companion.book.site", "--root", str(project.root)]
        code = max(code, subprocess.run(site, stdout=subprocess.DEVNULL, check=False).returncode)
        outdate(project)
    if project.site.is_file():
        print(project.site)
    return code


def outdate(project: Project) -> None:
    """Make the site older than all it is built from, so that what failed is tried again the next time."""
    if project.site.is_file():
        os.utime(project.site, (1, 1))


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


def prepare_run(
    project: Project, figure: Figure, profile: str, assignments: dict[str, str], *, explain: bool = False
) -> Run:
    """Check a run's parameters and record it in a folder of its own, ``build/runs/<figure>-<hash>/run.json``.

    Args:
        explain: only to plan it: no data is downloaded, and none that is missing stands in the way.

    Raises:
        UnknownName: a parameter that the notebook does not have.
        BadInput: a value of the wrong type; text files that do not match, or have next to nothing in them.
        DataUnavailable: it needs data that is not at hand.
    """
    if "profile" in assignments:
        raise BadInput(f"-p profile={assignments['profile']}: say --profile {assignments['profile']} instead")
    known = notebook_parameters(figure)
    check_known(assignments, (name for name in known if name != "profile"))
    parameters = _typed(figure, profile, assignments, known)
    if parameters.get("source") and parameters.get("target"):
        check_parallel(parameters["source"], parameters["target"])
    content = {"figure": figure.id, "profile": profile, "parameters": parameters}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    folder = project.build / "runs" / f"{figure.id.replace('/', '-')}-{digest}"
    run = Run(**content, caller=os.getcwd(), folder=str(folder))
    if not explain:
        _bring_data(project, profile, run)
    result = Plan(project, profile, run).result_of(figure.id)  # refuses values that cannot be
    if result is not None and result.cannot_run and not explain:
        raise DataUnavailable(result.cannot_run)
    run.write()
    return run


def _typed(
    figure: Figure, profile: str, assignments: dict[str, str], known: dict[str, object]
) -> dict[str, object]:
    """Values in the types of the experiment's settings, or else of the notebook's defaults."""
    from companion.results import registry
    from companion.results.config import override, path_fields, plain

    config = (
        registry.profile_config(figure.experiment, profile) if figure.experiment in registry.names() else None
    )
    paths = path_fields(config) if config is not None else ()
    own = {name: word for name, word in assignments.items() if config is not None and hasattr(config, name)}
    own |= {name: absolute(word, Path.cwd()) for name, word in own.items() if name in paths}
    typed = plain(override(config, own)) if own else {}
    return {
        name: typed[name] if name in own else from_word(name, word, known[name])
        for name, word in assignments.items()
    }


def _own_run(project: Project, run: Run, jobs: int, explain: bool) -> int:
    folder = Path(run.folder)
    notebook = folder / f"{find(project, run.figure).experiment}.ipynb"
    targets, config = [notebook.relative_to(project.root).as_posix()], {"run": str(folder / "run.json")}
    if explain:
        return _explain(*workflow.planned(project, targets, config))
    code = _outcome(workflow.run(project, targets, jobs, config))
    if code == 0:
        print(folder)
        taken = minutes(folder, notebook.stem)
        if taken is not None:
            print(f"{taken:.1f} minutes, with the training of its models, now or before")
    return code


def _bring_data(project: Project, profile: str, run: Run | None = None) -> None:
    """Download what the figures read; planning takes two seconds, so not where a mirror has everything."""
    if not os.environ.get("ATTNLIB_DATA"):
        bring_data(Plan(project, profile, run))


def _explain(jobs: list[workflow.Job], notes: list[str]) -> int:
    console = Console(highlight=False, soft_wrap=True)
    for note in notes:
        console.print(Text(note))
    for job in jobs:
        console.print(Text.assemble(str(job), (f"  ({job.reason})", "dim")))
    count = f"{len(jobs)} job{'s' if len(jobs) > 1 else ''} would be done."
    console.print(count if jobs else "Nothing to do: everything is up to date.")
    return 0


def _outcome(outcome: workflow.Outcome) -> int:
    """The exit code of a command: 1 when a figure, a training or the site failed."""
    return 1 if outcome.code else 0


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
