"""Sphinx extension: ``{num}``, ``{verdict}`` and ``{claims}`` in the pages of the book.

What each of them means is in :mod:`companion.book.prose`. A mark that is wrong is a warning that names the
source of the page and the line, and so an error in this book. Pages depend on the files behind their marks:
they are read again when a result or a claim changes.
"""

from pathlib import Path
from typing import ClassVar

import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from attnlib.errors import AttnlibError
from companion.book import prose
from companion.book.project import find_root

LOGGER = logging.getLogger(__name__)


class titled(nodes.inline):
    """Text with a title, which browsers show to who points at it."""


def visit_titled(writer, node: titled) -> None:
    writer.body.append(writer.starttag(node, "span", "", title=node["title"]))


def depart_titled(writer, node: titled) -> None:
    writer.body.append("</span>")


class FromResult(SphinxRole):
    """``{num}`` or ``{verdict}``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        book = prose.Book(find_root())
        try:
            shown = prose.ROLES[self.name](book, self.text, self.env.docname)
        except AttnlibError as error:
            mark = f"{{{self.name}}}`{self.text}`"
            LOGGER.warning(str(error), location=prose.place_of(mark, book.root, self.env.docname))
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        finally:
            depend(self.env, book)
        css = ["verdict", shown.css_class] if shown.claim else ["num"]
        span = titled(self.rawtext, shown.text, classes=css, title=shown.title)
        if not shown.claim:
            return [span], []
        scorecard = self.env.app.builder.get_relative_uri(self.env.docname, "scorecard")
        row = f"{scorecard}#claim-{shown.claim}"
        return [nodes.reference("", "", span, internal=True, refuri=row, classes=["verdict-link"])], []


class Claims(SphinxDirective):
    """A table of claims; its body may hold their ids."""

    has_content = True
    option_spec: ClassVar = {"kind": str}

    def run(self) -> list[nodes.Node]:
        book = prose.Book(find_root())
        ids = tuple(" ".join(self.content).split())
        try:
            text = prose.claims_table(book, self.env.docname, self.options.get("kind"), ids)
        except AttnlibError as error:
            LOGGER.warning(str(error), location=prose.place_of("{claims}", book.root, self.env.docname))
            return []
        finally:
            depend(self.env, book)
        container = nodes.container(classes=["claims"])
        self.state.nested_parse(StringList(text.splitlines(), self.env.docname), 0, container)
        return [container]


def depend(env, book: prose.Book) -> None:
    """The page is read again when a file behind it changes."""
    for path in sorted(book.files):
        env.note_dependency(str(path))


def leave_the_book(app: Sphinx, error: Exception | None) -> None:
    """Notebooks offered for download are read without this extension: they get the text of every mark."""
    for page in getattr(app, "written_pages", ()) if error is None else ():
        path = Path(app.outdir) / "_sources" / f"{page}.ipynb"
        if path.is_file():
            notebook = nbformat.read(path, as_version=4)
            prose.leave_the_book(notebook, find_root(), page)
            path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def note_written(app: Sphinx, page: str, *_: object) -> None:
    app.written_pages = [*getattr(app, "written_pages", ()), page]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(titled, html=(visit_titled, depart_titled))
    for name in prose.ROLES:
        app.add_role(name, FromResult())
    app.add_directive("claims", Claims)
    app.connect("html-page-context", note_written)
    app.connect("build-finished", leave_the_book)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
