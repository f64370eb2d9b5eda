"""The command line. Everything heavy is imported inside the commands, so that ``--help`` answers at once."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from attnlib import __version__
from attnlib.errors import AttnlibError


class Commands(TyperGroup):
    """Turns the errors we raise on purpose into one red line and exit code 2."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except AttnlibError as error:
            Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"error: {error}", style="red"))
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How attention forms in encoder-decoder networks: rerun the figures of the book, check its claims, "
    "get its data. Start with [bold]attnlib figures[/bold], then [bold]attnlib run[/bold] one of them.",
    rich_markup_mode="rich",
)
data = typer.Typer(
    no_args_is_help=True, help="The data sets: what there is, where it is, whether it is intact."
)
app.add_typer(data, name="data")

Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=1, help="Jobs at once.", show_default="number of cores")
]
CORES = os.cpu_count() or 1


def _version(wanted: bool) -> None:
    if wanted:
        print(f"attnlib {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What precedes the commands."""


@app.command()
def figures() -> None:
    """List the figures: id, place in the paper, profile, minutes it took, last verdicts."""
    from attnlib.companion.commands import list_figures

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
    from attnlib.companion.commands import run_figures

    raise typer.Exit(run_figures(figure, profile, parameter or [], jobs, explain))


@app.command()
def book(
    jobs: Jobs = CORES,
    explain: Annotated[bool, typer.Option("--explain", help="Only say what would be done, and why.")] = False,
) -> None:
    """Bring every figure and the site up to date, and print the site's path."""
    from attnlib.companion.commands import build_book

    raise typer.Exit(build_book(jobs, explain))


@app.command()
def serve(port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000) -> None:
    """Show the built site on localhost until interrupted."""
    from attnlib.companion.commands import serve_site

    serve_site(port)


@app.command()
def verify(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Make today's verdicts the expected ones; commit them on their own."),
    ] = False,
) -> None:
    """Check every claim against the results; exit code 1 when a verdict is not the accepted one."""
    from attnlib.companion.verify import verify_command

    raise typer.Exit(verify_command(json=as_json, accept=accept))


@app.command()
def analyse(
    out: Annotated[Path, typer.Option(help="Folder of the report; a run that was cut short goes on there.")],
    model: Annotated[
        str | None, typer.Option(help="Folder of a Hugging Face encoder-decoder, or its name.")
    ] = None,
    source: Annotated[Path | None, typer.Option(help="Text, a sentence a line.")] = None,
    target: Annotated[Path | None, typer.Option(help="Its translation, line by line.")] = None,
    traces: Annotated[
        Path | None,
        typer.Option(help="Folder of safetensors that other code saved, in place of model and text."),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(help="For mBART, M2M100, NLLB: as their tokenizer writes it, such as en_XX."),
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Likewise, such as de_DE; both are needed.")
    ] = None,
    prefix: Annotated[
        str, typer.Option(help='Put before every source line, such as T5\'s "translate English to German: ".')
    ] = "",
    kinds: Annotated[
        str, typer.Option(help="Attentions, with commas: cross, encoder_self, decoder_self.")
    ] = "cross",
    layers: Annotated[str | None, typer.Option(help="Layers, as in 0,4-6.", show_default="all")] = None,
    heads: Annotated[str | None, typer.Option(help="Heads, as in 0,4-6.", show_default="all")] = None,
    ignore_special: Annotated[
        bool,
        typer.Option(
            "--ignore-special",
            help="Leave out where a special token is read: end marks of the source, and the step at which "
            "the decoder reads its start mark. Unknown words stay.",
        ),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs passed through the model at once.")] = 32,
    longest: Annotated[int, typer.Option(min=1, help="Pieces of a side; the rest is cut off.")] = 128,
    every: Annotated[int, typer.Option(min=1, help="One batch in so many is held out, and judged.")] = 5,
    probed: Annotated[
        int, typer.Option(min=0, help="Batches of which the lexical probe is taken; it is dear.")
    ] = 4,
    device: Annotated[str, typer.Option(help="As torch names it: cpu, cuda.")] = "cpu",
    shards: Annotated[int, typer.Option(min=1, help="Parts of the corpus, read on their own.")] = 1,
    shard: Annotated[int | None, typer.Option(min=0, help="Which one, from 0.", show_default="all")] = None,
    stage: Annotated[
        str, typer.Option(help="fit, judge or report: only this; all: as far as it goes.")
    ] = "all",
) -> None:
    """Say how an encoder-decoder attends: its attention split into temporal and input-driven terms."""
    from attnlib.analysis.command import Request, analyse_command, numbers

    analyse_command(
        Request(
            out=out,
            model=model,
            source=source,
            target=target,
            traces=traces,
            source_language=source_language,
            target_language=target_language,
            prefix=prefix,
            kinds=tuple(kinds.split(",")),
            layers=numbers(layers),
            heads=numbers(heads),
            ignore_special=ignore_special,
            batch_size=batch_size,
            longest=longest,
            every=every,
            probed=probed,
            device=device,
            shards=shards,
            shard=shard,
            stage=stage,
        )
    )


@data.command("list")
def data_list() -> None:
    """List the data sets: what is here, from whom, under which terms."""
    from attnlib.companion.data_commands import list_data

    list_data()


Names = Annotated[list[str] | None, typer.Argument(help="Data sets; all when none is named.", metavar="NAME")]


@data.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Download what is missing into the cache folder, and check it."""
    from attnlib.companion.data_commands import fetch_data

    raise typer.Exit(fetch_data(names or []))


@data.command("check")
def data_check(names: Names = None) -> None:
    """Compare every file at hand with its checksum; exit code 1 when one is corrupt."""
    from attnlib.companion.data_commands import check_data

    raise typer.Exit(check_data(names or []))


def main() -> None:
    """The ``attnlib`` command."""
    app()


if __name__ == "__main__":
    main()
