"""What varies from run to run is taken out of an executed notebook, so that equal inputs give equal bytes."""

import os
import re
import sys
from pathlib import Path

from nbformat import NotebookNode

INJECTED = "injected-parameters"
HIDDEN = "remove-cell"  # Jupyter Book leaves such cells out of the page
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# The version of Python is left out on purpose: it is in the provenance of the result.
LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}
VARYING_METADATA = ("papermill", "execution", "status", "collapsed")

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
_CELL_FILE = re.compile(r"ipykernel_\d+[/\\]\d+\.py")


def normalise(notebook: NotebookNode, root: Path) -> NotebookNode:
    """The notebook, changed in place: no timings, stable ids, merged streams, no address of this machine.

    Args:
        root: the checkout; paths in outputs below it become relative, the home folder becomes ``~``.
    """
    notebook.metadata = {
        **{key: value for key, value in notebook.metadata.items() if key not in ("papermill", "jupytext")},
        "kernelspec": dict(KERNEL),
        "language_info": dict(LANGUAGE),
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    places = _places(root)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number:03d}"
        for key in VARYING_METADATA:
            cell.metadata.pop(key, None)
        tags = cell.metadata.get("tags", [])
        if INJECTED in tags and HIDDEN not in tags:
            cell.metadata["tags"] = [*tags, HIDDEN]
        if not cell.metadata.get("tags", [True]):
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            cell.outputs = [_without_places(output, places) for output in _merged_streams(cell.outputs)]
    return notebook


def _merged_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Where a kernel cuts a stream into pieces depends on the clock."""
    merged: list[NotebookNode] = []
    for output in outputs:
        before = merged[-1] if merged else None
        same = before and output.output_type == before.output_type == "stream" and output.name == before.name
        if same:
            before.text += output.text
        else:
            merged.append(output)
    return merged


def _places(root: Path) -> list[tuple[str, str]]:
    """Folders of this machine and what to print in their stead, the longest first."""
    named = {str(root): ".", str(root.resolve()): ".", sys.prefix: "<python>", sys.base_prefix: "<python>"}
    named |= {os.environ.get("ATTNLIB_DATA", ""): "$ATTNLIB_DATA", str(Path.home()): "~"}
    known = [(place.rstrip("/"), word) for place, word in named.items()]
    return sorted((pair for pair in known if len(pair[0]) > 2), key=lambda pair: -len(pair[0]))


def _without_places(value: object, places: list[tuple[str, str]]) -> object:
    if isinstance(value, str):
        for place, word in places:
            if place in value:
                value = re.sub(re.escape(place) + r"(?=[/\\\s\"'<>:,;)]|$)", lambda _, word=word: word, value)
        return _ADDRESS.sub("at 0x0", _without_cell_files(value))
    if isinstance(value, list):
        return [_without_places(item, places) for item in value]
    if isinstance(value, dict):
        for key in value:
            value[key] = _without_places(value[key], places)
    return value


def _without_cell_files(text: str) -> str:
    """``/tmp/ipykernel_12/345.py``, as tracebacks and warnings name a cell, becomes ``<cell>``.

    The folder is looked for backwards from the name: forwards, an image of a million letters would be read a
    million times.
    """
    parts, after = [], 0
    for found in _CELL_FILE.finditer(text):
        begin = found.start()
        while begin > after and text[begin - 1] not in " \t\n\"'<>(":
            begin -= 1
        parts += [text[after:begin], "<cell>"]
        after = found.end()
    return "".join([*parts, text[after:]])
