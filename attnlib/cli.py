"""Define the command line. Heavy imports are made inside the commands, so that ``--help`` answers at once."""

import io
import os
import sys
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from attnlib import __version__
from attnlib.errors import AttnlibError, BadInput, line_of, stop_on_sigterm
from attnlib.options import AlignOptions, AnalyseOptions

BOOK_COMMANDS = (
    "figures",
    "run",
    "status",
    "diff",
    "book",
    "serve",
    "verify",
    "data",
)  # commands that come with a checkout


READ_ONCE = ("model", "source", "target", "traces", "gold", "reverse")  # options that name what is read


class Once(TyperCommand):
    """A command that refuses two values of an option that names what it reads; of others the last counts."""

    def parse_args(self, ctx, args):
        """Parse the words of a command line.

        Args:
            ctx: of click.
            args: the words.

        Raises:
            AttnlibError: a model or a text is given twice, of which one would not be read.
        """
        _, _, in_order = self.make_parser(ctx).parse_args(args=[*args])
        for param in self.get_params(ctx):
            if param.name in READ_ONCE and in_order.count(param) > 1:
                raise BadInput(f"{param.opts[0]} is given {in_order.count(param)} times; it takes one value")
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """Commands whose expected errors end in one red line and an exit code; others show a traceback."""

    def get_command(self, ctx, name):
        """Return a command by its name.

        Args:
            ctx: of click.
            name: as it was typed.

        Raises:
            AttnlibError: the command belongs to the book, and needs a source checkout.
        """
        command = super().get_command(ctx, name)
        if command is None and name in BOOK_COMMANDS:
            raise AttnlibError(
                f"attnlib {name} works in a checkout of the book: clone the repository, then `make install`"
            )
        return command

    def invoke(self, ctx):
        """Run a command; print the line of an expected error and exit with its code.

        Args:
            ctx: of click.
        """
        stop_on_sigterm()
        try:
            return super().invoke(ctx)
        except BaseException as error:
            line_and_code = line_of(error)
            if line_and_code is None:
                raise
            line, code = line_and_code
            Console(stderr=True, highlight=False, soft_wrap=True).print(Text(line, style="red"))
            raise typer.Exit(code) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How attention forms in encoder-decoder networks. [bold]attnlib analyse[/bold] looks at a model of "
    "yours; with a checkout of the book, [bold]attnlib figures[/bold] lists what there is to rerun.\n\n"
    "Exit codes: 0 done; 1 a verdict, a file or a figure is not as it should be; 2 wrong use or input, "
    "said in a line; 130 stopped by Ctrl-C; 143 told to end.",
    rich_markup_mode="rich",
)


def _add_commands_of_the_book() -> None:
    """Register the book's commands; they exist only in a source checkout, though a wheel names them too."""
    for entry in entry_points(group="attnlib.commands"):
        try:
            app.add_typer(entry.load())
        except ModuleNotFoundError as error:
            if error.name != entry.module.partition(".")[0]:
                raise


_add_commands_of_the_book()


def _version(show: bool) -> None:  # noqa: FBT001, typer calls it with the value of the option
    if show:
        print(f"attnlib {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Handle the options that precede the commands.

    Args:
        version: show the version and exit.
    """


def analyse(**options: Any) -> None:
    """Report how an encoder-decoder attends: its attention split into temporal and input-driven terms."""
    read_options = AnalyseOptions(**options)
    from attnlib.commands.analyse import analyse_command

    analyse_command(read_options)


# Typer reads the options and their help from the signature, an attribute that no type of functions has.
setattr(analyse, "__signature__", signature(AnalyseOptions))  # noqa: B010, pyright would refuse it as an assignment
app.command(cls=Once)(analyse)


def align(**options: Any) -> None:
    """Link the words of two texts by a model's cross-attention, and score heads against gold links."""
    read_options = AlignOptions(**options)
    from attnlib.commands.align import align_command

    align_command(read_options)


setattr(align, "__signature__", signature(AlignOptions))  # noqa: B010, pyright would refuse it as an assignment
app.command(cls=Once)(align)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="Folder of a report, as analyse wrote it.")],
    second: Annotated[
        Path, typer.Argument(help="Folder of a report on another model, or on another checkpoint.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File for a table of all differences, such as differences.csv.")
    ] = None,
) -> None:
    """List which heads differ between two reports: shares and rebuilt attention, with intervals."""
    from attnlib.commands.compare import compare_command

    compare_command(first, second, out)


def _doctor() -> None:
    """Say what is missing on this machine, and how to get it."""
    from attnlib.doctor import doctor_command

    doctor_command()


def _commands_of_the_book() -> set[str]:
    """Return the names of the book's commands, if this is a checkout."""
    groups = [group.typer_instance for group in app.registered_groups]
    commands = [command for group in groups if group is not None for command in group.registered_commands]
    return {command.name or getattr(command.callback, "__name__", "") for command in commands}


if "doctor" not in _commands_of_the_book():  # which looks for data and a browser as well
    app.command("doctor")(_doctor)


def main() -> None:
    """Run the ``attnlib`` command, re-executed in UTF-8 mode if the file-system encoding is not UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where a terminal has ASCII only
    app()


if __name__ == "__main__":
    main()
