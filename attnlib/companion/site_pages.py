"""Pages and parts of pages that are made from something else than prose."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import typer.main

from attnlib.companion.site_notebooks import image_of
from attnlib.errors import BadInput

MARKER = re.compile(r"^<!-- book:(?P<kind>\w+)(?P<arguments>[^>]*?) -->$", re.MULTILINE)


def fill_markers(text: str, root: Path, executed: Path) -> str:
    """Replace the lines ``<!-- book:KIND ARGUMENTS -->`` of a prose page.

    * ``book:figure attend/temporal_share [name]``: the figure's first (or named) image with a link to its
      page, or a note that it has not been run;
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
    alt, caption = " ".join(found.alt.split()), " ".join((found.caption or found.alt).split())
    # An image and a paragraph, not a figure: the numbers of figures start in the chapters.
    return (
        f":::{{image}} /_files/figures/{figure}/{found.path.name}\n:alt: {alt}\n:target: {figure}.html\n"
        f":class: lead-figure\n:::\n\n{{.figure-note}}\n{caption} From [](/{figure}).\n"
    )


def commands_markdown() -> str:
    """The command line's own help, a section a command, as Markdown."""
    return "\n".join(
        _command_sections(typer.main.get_command(import_module("attnlib.cli").app), "attnlib", None)
    )


# No type of click is named here: typer brings a click of its own, and which one it is depends on its version.
def _command_sections(command: Any, name: str, parent: Any) -> list[str]:
    context = command.context_class(command, info_name=name, parent=parent)
    depth = 2 if parent is None else context.command_path.count(" ") + 1
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [
        f"{'#' * depth} `{context.command_path}`",
        "",
        _help(command.help),
        "",
        "```text",
        usage,
        "```",
        "",
    ]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and not record[0].startswith("--help"):
            lines += [f"`{record[0]}`", f": {_help(record[1]) or 'no further help'}", ""]
    children = getattr(command, "commands", {})
    for child in children:
        if not children[child].hidden:
            lines += _command_sections(children[child], child, context)
    return lines


def _help(text: str | None) -> str:
    """Help text as Markdown: what is bold or in backticks becomes code, other marks are shown as they are."""
    pieces = re.split(r"(`[^`]+`)", re.sub(r"\[/?bold\]", "`", " ".join((text or "").split())))
    return "".join(
        piece if number % 2 else re.sub(r"([\\<>*_{}\[\]$#])", r"\\\1", piece)
        for number, piece in enumerate(pieces)
    )


def scorecard_page(root: Path) -> str:
    """The page of published against reproduced numbers."""
    # Its tables are wide: they get the room of the list of contents.
    front = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"
    return front + import_module("companion.claims.scorecard").scorecard_markdown(root)


# Pages named in the table of contents that have neither prose nor a notebook.
GENERATED: dict[str, Callable[[Path], str]] = {"scorecard": scorecard_page}
