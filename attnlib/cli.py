"""The command line. Everything heavy is imported inside the commands, so that ``--help`` answers at once."""

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from attnlib import __version__
from attnlib.errors import AttnlibError, line_of, stop_when_told

OF_THE_BOOK = ("figures", "run", "book", "serve", "verify", "data")  # commands that come with a checkout


class Commands(TyperGroup):
    """Turns what ends a command, but for mistakes of the code, into one red line and an exit code."""

    def get_command(self, ctx, name):
        found = super().get_command(ctx, name)
        if found is None and name in OF_THE_BOOK:
            raise AttnlibError(
                f"attnlib {name} works in a checkout of the book: clone the repository, then `make install`"
            )
        return found

    def invoke(self, ctx):
        stop_when_told()
        try:
            return super().invoke(ctx)
        except BaseException as error:
            if (told := line_of(error)) is None:
                raise
            line, code = told
            Console(stderr=True, highlight=False, soft_wrap=True).print(Text(line, style="red"))
            raise typer.Exit(code) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How attention forms in encoder-decoder networks. [bold]attnlib analyse[/bold] looks at a model of "
    "yours; with a checkout of the book, [bold]attnlib figures[/bold] lists what there is to rerun.",
    rich_markup_mode="rich",
)


def _add_commands_of_the_book() -> None:
    """Those of a checkout, by its entry points; a wheel names them too, and has nothing behind."""
    for entry in entry_points(group="attnlib.commands"):
        try:
            app.add_typer(entry.load())
        except ModuleNotFoundError as error:
            if error.name != entry.module.partition(".")[0]:
                raise


_add_commands_of_the_book()


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
def analyse(
    out: Annotated[Path, typer.Option(help="Folder of the report; a run that was cut short goes on there.")],
    model: Annotated[
        str | None, typer.Option(help="Folder of a Hugging Face encoder-decoder, or its name.")
    ] = None,
    source: Annotated[Path | None, typer.Option(help="Text, a sentence a line.")] = None,
    target: Annotated[Path | None, typer.Option(help="Its translation, line by line.")] = None,
    generate: Annotated[
        bool,
        typer.Option("--generate", help="The model writes the target itself, the likeliest piece first."),
    ] = False,
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
    method: Annotated[
        str, typer.Option(help="least_squares: position, word and constant told apart; means: as the papers.")
    ] = "least_squares",
    every: Annotated[int, typer.Option(min=1, help="One batch in so many is held out, and judged.")] = 5,
    probed: Annotated[
        int, typer.Option(min=0, help="Batches of which the lexical probe is taken; it is slow.")
    ] = 4,
    sentences: Annotated[int, typer.Option(min=0, max=12, help="Judged pairs on the page.")] = 12,
    device: Annotated[str, typer.Option(help="As torch names it: cpu, cuda.")] = "cpu",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Of the processor.", show_default="the fastest, measured")
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Parts of the corpus, read on their own.")] = 1,
    shard: Annotated[int | None, typer.Option(min=0, help="Which one, from 0.", show_default="all")] = None,
    stage: Annotated[
        str, typer.Option(help="fit, judge or report: only this; all: as far as it goes.")
    ] = "all",
) -> None:
    """Say how an encoder-decoder attends: its attention split into temporal and input-driven terms."""
    options = dict(locals())
    from attnlib.analysis.command import Request, analyse_command, numbers

    options |= {"kinds": tuple(kinds.split(",")), "layers": numbers(layers), "heads": numbers(heads)}
    analyse_command(Request(**options))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="Folder of a report, as analyse wrote it.")],
    second: Annotated[Path, typer.Argument(help="That of another model, or of another checkpoint.")],
    out: Annotated[
        Path | None, typer.Option(help="Table of all differences, such as differences.csv.")
    ] = None,
) -> None:
    """Say which heads differ between two reports: shares and rebuilt attention, with intervals."""
    from attnlib.analysis.compare import compare_command

    compare_command(first, second, out)


def main() -> None:
    """The ``attnlib`` command. Where names are not in UTF-8, it begins anew in the mode in which they are."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # where a terminal has ASCII only
    app()


if __name__ == "__main__":
    main()
