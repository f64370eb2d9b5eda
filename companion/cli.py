"""The commands of the book; they join ``attnlib`` through the entry points of an editable install."""

import os
from typing import Annotated

import typer

app = typer.Typer()
data = typer.Typer(
    no_args_is_help=True, help="The data sets: what there is, where it is, whether it is intact."
)


app.add_typer(data, name="data")


Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=1, help="Jobs at once.", show_default="number of cores")
]


CORES = os.cpu_count() or 1


@app.command()
def figures() -> None:
    """List the figures: id, place in the paper, profile, minutes it took, last verdicts."""
    from companion.commands import list_figures

    list_figures()


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
    explain: Annotated[bool, typer.Option("--explain", help="Only say what would be done, and why.")] = False,
) -> None:
    """Bring figures up to date, with the models and results they need; nothing current is done again."""
    from companion.book.parameters import read_request
    from companion.book.project import current_project
    from companion.commands import run_figures

    project = current_project()
    requests = [read_request(project, name, profile, parameter or []) for name in figure]
    raise typer.Exit(run_figures(requests, jobs, explain))


@app.command()
def book(
    jobs: Jobs = CORES,
    explain: Annotated[bool, typer.Option("--explain", help="Only say what would be done, and why.")] = False,
) -> None:
    """Bring every figure and the site up to date, and print the site's path."""
    from companion.commands import build_book

    raise typer.Exit(build_book(jobs, explain))


@app.command()
def serve(port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000) -> None:
    """Show the built site on localhost until interrupted."""
    from companion.commands import serve_site

    serve_site(port)


@app.command()
def verify(
    everything: Annotated[bool, typer.Option("--all", help="Print every verdict, not just counts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, every verdict in it.")] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Make today's verdicts the expected ones; commit them on their own."),
    ] = False,
) -> None:
    """Check every claim against the results; exit code 1 when a verdict is not the accepted one."""
    from companion.claims.verify import verify_command

    raise typer.Exit(verify_command(json=as_json, accept=accept, everything=everything))


@data.command("list")
def data_list() -> None:
    """List the data sets: what is here, from whom, under which terms."""
    from companion.commands import list_data

    list_data()


Names = Annotated[list[str] | None, typer.Argument(help="Data sets; all when none is named.", metavar="NAME")]


@data.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Download what is missing into the cache folder, and check it."""
    from companion.commands import fetch_data

    raise typer.Exit(fetch_data(names or []))


@data.command("check")
def data_check(names: Names = None) -> None:
    """Compare every file at hand with its checksum; exit code 1 when one is corrupt."""
    from companion.commands import check_data

    raise typer.Exit(check_data(names or []))
