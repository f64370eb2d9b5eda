"""Put the book together and build it.

`stage` lays out ``build/src``: the prose of ``book/``, the executed notebooks, pages made from data. It
writes only what changed, so that Sphinx rereads only that. `build_site` then runs Jupyter Book; a warning is
an error.

``python -m attnlib.companion.site`` does both and prints the path of the front page.
"""

import argparse
import hashlib
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from attnlib.companion.site_notebooks import figure_page
from attnlib.companion.site_pages import GENERATED, fill_markers
from attnlib.errors import AttnlibError, BadInput

# Jupyter Book has no __main__, and a script beside the interpreter need not be on the path.
RUN_JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
NOT_STAGED = ("__pycache__",)
# A change in any of these can alter every page, and Sphinx does not see it.
WHOLE_BOOK = ("_config.yml", "companion/book", "book/_static", "book/_vendor")


class SiteError(AttnlibError):
    """The book could not be built; the message carries the warnings of the build."""


@dataclass(frozen=True)
class Staged:
    """What `stage` did: paths relative to the staged folder."""

    folder: Path
    written: tuple[str, ...]
    deleted: tuple[str, ...]


def toc_pages(toc: Path) -> tuple[str, ...]:
    """Pages named in a table of contents of Jupyter Book, in order, without suffix.

    Raises:
        BadInput: the file is missing or has no root.
    """
    if not toc.is_file():
        raise BadInput(f"no table of contents at {toc}; run from the repository's root or give --root")
    content = yaml.safe_load(toc.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or "root" not in content:
        raise BadInput(f"{toc} has no 'root:' page; it should start with 'format: jb-book' and 'root: index'")
    pages = [content["root"]]

    def walk(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        elif isinstance(node, dict):
            if "file" in node:
                pages.append(node["file"])
            for key in ("parts", "chapters", "sections"):
                walk(node.get(key))

    walk({key: content.get(key) for key in ("parts", "chapters", "sections")})
    return tuple(pages)


def stage(root: Path, executed: Path, folder: Path) -> Staged:
    """Bring ``folder`` to hold the sources of the whole book, touching only files whose content changed.

    Args:
        root: the repository.
        executed: folder of executed notebooks, ``<figure>.ipynb`` with ``<figure>.files/`` beside it.
        folder: the staged folder; files in it that the book no longer has are deleted.

    Raises:
        BadInput: a page of the table of contents that is neither prose, generated nor a figure; a notebook
            that the table of contents leaves out; a figure without alternative text.
    """
    book = root / "book"
    pages = toc_pages(book / "_toc.yml")
    sources = root / "notebooks"
    figures = sorted(path.relative_to(sources).with_suffix("").as_posix() for path in sources.rglob("*.md"))
    forgotten = [figure for figure in figures if figure not in pages]
    if forgotten:
        raise BadInput(
            f"notebooks without a page in book/_toc.yml: {', '.join(forgotten)}; add a '- file:' line"
        )

    wanted: dict[str, bytes | Path] = {}
    for path in sorted(book.rglob("*")):
        name = path.relative_to(book).as_posix()
        if path.is_file() and not any(part in NOT_STAGED for part in path.relative_to(book).parts):
            wanted[name] = path
    for page in pages:
        if f"{page}.md" in wanted:
            text = (book / f"{page}.md").read_text(encoding="utf-8")
            wanted[f"{page}.md"] = fill_markers(text, root, executed).encode()
        elif page in GENERATED:
            wanted[f"{page}.md"] = GENERATED[page](root).encode()
        elif page in figures or any(
            (executed / f"{page}{end}").is_file() for end in (".ipynb", ".error.txt")
        ):
            suffix, text, downloads = figure_page(page, root, executed)
            wanted[page + suffix] = text.encode()
            for download in downloads:
                wanted[f"_files/figures/{page}/{download.name}"] = download
        else:
            raise BadInput(
                f"book/_toc.yml names {page!r}, but there is neither book/{page}.md nor notebooks/{page}.md; "
                "write one or remove the line"
            )
    for page in pages:
        for name in (f"{page}.md", f"{page}.ipynb"):
            if isinstance(content := wanted.get(name), bytes):
                wanted[name] = _links_that_hold(content.decode(), page, wanted).encode()
    return _sync(wanted, folder)


def _links_that_hold(text: str, page: str, wanted: Mapping[str, object]) -> str:
    """Links to a notebook lead to the page that stands in for it where the figure failed."""

    def replaced(match: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), match["path"]))
        return f"]({match['path']}.md)" if f"{target}.md" in wanted else match[0]

    return re.sub(r"\]\((?P<path>[^()\s#:]+)\.ipynb(#[^()\s]*)?\)", replaced, text)


def _sync(wanted: dict[str, bytes | Path], folder: Path) -> Staged:
    written, deleted = [], []
    for name, content in wanted.items():
        data = content if isinstance(content, bytes) else content.read_bytes()
        target = folder / name
        if not (target.is_file() and target.read_bytes() == data):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            written.append(name)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
            deleted.append(path.relative_to(folder).as_posix())
    return Staged(folder, tuple(written), tuple(deleted))


def _digest_of_whole_book_inputs(root: Path) -> str:
    digest = hashlib.sha256()
    for entry in WHOLE_BOOK:
        path = root / entry
        for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
            if "__pycache__" not in file.parts:
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def build_site(
    root: str | Path = ".", executed: str | Path | None = None, output: str | Path | None = None
) -> Path:
    """Stage and build the book; warnings are errors.

    Args:
        root: the repository.
        executed: folder of executed notebooks; ``root/build/notebooks`` unless given.
        output: folder for ``src`` (staged) and ``_build`` (built); ``root/build`` unless given.

    Returns:
        The path of the front page, ``output/_build/html/index.html``.

    Raises:
        BadInput: what `stage` raises.
        SiteError: Jupyter Book ended with an error or a warning.
    """
    root = Path(root).resolve()
    executed = Path(executed).resolve() if executed else root / "build" / "notebooks"
    output = Path(output).resolve() if output else root / "build"
    staged = stage(root, executed, output / "src")
    built = output / "_build"
    stamp, digest = built / "whole-book.sha256", _digest_of_whole_book_inputs(root)
    if staged.deleted or not stamp.is_file() or stamp.read_text(encoding="ascii") != digest:
        shutil.rmtree(built, ignore_errors=True)

    command = [
        *(sys.executable, "-c", RUN_JUPYTER_BOOK, "build", str(staged.folder)),
        *("--config", str(root / "_config.yml"), "--path-output", str(output), "-W", "--keep-going"),
    ]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)
    index = built / "html" / "index.html"
    if done.returncode != 0 or not index.is_file():
        # Sphinx warns about a page only when it reads it: without this, a second try would pass in silence.
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        raise SiteError(_failure_message(done))
    stamp.write_text(digest, encoding="ascii")
    return index


def _failure_message(done: subprocess.CompletedProcess) -> str:
    lines = (done.stderr + "\n" + done.stdout).splitlines()
    told = [line for line in lines if any(word in line for word in ("WARNING", "ERROR", "CRITICAL"))]
    shown = "\n".join(told or lines[-40:])
    return f"Jupyter Book failed with exit code {done.returncode}; warnings count as errors:\n{shown}"


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m attnlib.companion.site", description="Build the book.")
    parser.add_argument("--root", default=".", help="the repository (default: here)")
    parser.add_argument("--executed", help="folder of executed notebooks (default: build/notebooks)")
    parser.add_argument("--output", help="folder that receives src/ and _build/ (default: build)")
    given = parser.parse_args(arguments)
    try:
        print(build_site(given.root, given.executed, given.output))
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
