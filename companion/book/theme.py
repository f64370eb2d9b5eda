"""Sphinx extension: nothing from the network, nothing that throws in the console."""

import re

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.ext import viewcode

from companion.runs.fingerprint import path_of

# Lines whose indented continuation is not a block of its own: section headings, list items, doctests.
OWN_INDENT = re.compile(r"[A-Z][a-z]+( [a-z]+)?:$|[*-] |\d+\. |>>> |\.\. |:\w")


def switch_off_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect sphinx-thebe, which Jupyter Book always loads: it throws, and names a foreign server."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.split(".")[0] == "sphinx_thebe":
                app.disconnect(listener.id)
    app.registry.css_files = [entry for entry in app.registry.css_files if entry[0] != "sphinx-thebe.css"]


def serve_folders(app: Sphinx, config: Config) -> None:
    """Copy two folders to _static: scripts below _static itself would be loaded on every page."""
    config.html_static_path.extend(name for name in ("_vendor", "_files") if (app.srcdir / name).is_dir())


def show_indented_text_literally(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Make the indented paragraphs of a docstring literal blocks: there they are formulas and code.

    The indented text of a section such as ``Args:`` and of list items is left to Napoleon.
    """
    last_text, result = "", []
    for line in lines:
        starts_block = line.startswith("    ") and result and not result[-1].strip() and last_text[:1].strip()
        if starts_block and not last_text.endswith("::") and not OWN_INDENT.match(last_text):
            result += ["::", ""]
        result.append(line)
        last_text = line if line.strip() else last_text
    lines[:] = result


def module_file(app: Sphinx, name: str) -> str | None:
    """Where a module's source lies, found without importing it, and torch with it, as viewcode does."""
    return str(path) if (path := path_of(name)) else None


def setup(app: Sphinx) -> dict[str, object]:
    viewcode.get_module_filename = module_file
    app.connect("config-inited", switch_off_thebe)
    app.connect("config-inited", serve_folders)
    app.connect("autodoc-process-docstring", show_indented_text_literally, priority=400)  # before Napoleon
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
