"""Pages and parts of pages that are made from something else than prose."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import typer.main

from attnlib.companion.site_notebooks import image_of
from attnlib.errors import BadInput

MARKER = re.compile(r"^<!-- book:(?P<kind>\w+)(?P<arguments>[^>]*?) -->$", re.MULTILINE)


def fill_markers(text: str, root: Path, executed: Path) -> str:
    """Replace the lines ``<!-- book:KIND ARGUMENTS -->`` of a prose page.

    * ``book:figure attend/temporal_share [name]``: the figure's first (or named) image with a link to its page,
      or a note that it has not been run;
    * ``book:commands``: the reference of the command line.

    Raises:
        BadInput: an unknown kind.
    """

    def replaced(match: re.Match) -> str:
        kind, arguments = match["kind"], match["arguments"].split()
        if kind == "figure":
            return _figure(executed, *arguments)
        if kind == "commands":
            return commands_markdown()
        raise BadInput(f"unknown marker {match[0]!r}; expected book:figure or book:commands")

    return MARKER.sub(replaced, text)


def _figure(executed: Path, figure: str, name: str | None = None) -> str:
    found = image_of(figure, executed, name)
    if found is None:
        return f":::{{note}}\nThe figure belongs to [](/{figure}), which has not been run here.\n:::"
    image, alt = found
    one_line = " ".join(alt.split())
    return (
        f":::{{figure}} /_files/figures/{figure}/{image.name}\n:alt: {one_line}\n:target: {figure}.html\n\n"
        f"{one_line} From [](/{figure}).\n:::"
    )


def commands_markdown() -> str:
    """The command line's own help, a section a command, as Markdown."""
    app = import_module("attnlib.cli").app
    command = typer.main.get_command(app)
    context = click.Context(command, info_name="attnlib")
    return "\n".join(_command_sections(command, context, depth=2))


def _command_sections(command: click.Command, context: click.Context, depth: int) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"{'#' * depth} `{context.command_path}`", "", _help(command.help), "", "```text", usage, "```", ""]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if isinstance(parameter, click.Argument):
            record = (parameter.make_metavar(), getattr(parameter, "help", "") or "")
        if record and record[0] != "--help":
            lines += [f"`{record[0]}`", f": {_help(record[1]) or '—'}", ""]
    for name in getattr(command, "commands", {}):
        child = command.commands[name]
        if not child.hidden:
            lines += _command_sections(child, click.Context(child, info_name=name, parent=context), depth + 1)
    return lines


def _help(text: str | None) -> str:
    plain = re.sub(r"\[/?[a-z ]+\]", "", text or "")          # rich markup
    return re.sub(r"([\\<>*_{}$])", r"\\\1", plain).strip()


def scorecard_page() -> str:
    """The page of published against reproduced numbers."""
    return import_module("attnlib.companion.scorecard").scorecard_markdown()


# Pages named in the table of contents that have neither prose nor a notebook.
GENERATED: dict[str, Callable[[], str]] = {"scorecard": scorecard_page}
