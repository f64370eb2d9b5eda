"""Put the book together and build it.

`stage` lays out ``build/src``: the prose of ``book/``, the executed notebooks, pages made from data. It
writes only what changed, so that Sphinx rereads only that. `build_site` then runs Jupyter Book; a warning is
an error.

``python -m companion.book.site`` does both and prints the path of the front page.
"""

import argparse
import hashlib
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import typer.main
import yaml
from nbformat import NotebookNode

from attnlib.errors import AttnlibError, BadInput
from companion.book.markup import badge, plain
from companion.book.project import PROFILES, Project
from companion.claims import UNDECIDED, ClaimVerdict
from companion.claims.verify import is_stale, verify
from companion.results.result import Result

# Images of an executed notebook, brought to what Jupyter Book reads: one a cell, described there.

IMAGE_TYPES = ("image/svg+xml", "image/png", "image/jpeg")
# What a cell's image output may say about itself, and where Jupyter Book looks for it.
FROM_OUTPUT = {"alt": "image", "caption": "figure", "name": "figure"}


def one_image_each(cell: NotebookNode) -> list[NotebookNode]:
    """The cell; or, where it shows several images, cells of one image each, the source with the first.

    Alternative text belongs to a cell in Jupyter Book, so a loop over figures would have one for all.
    """
    outputs = cell.get("outputs", [])
    if sum(map(_is_image, outputs)) < 2:
        return [cell]
    pieces: list[NotebookNode] = []
    for output in outputs:
        if not pieces or (_is_image(output) and any(map(_is_image, pieces[-1].outputs))):
            piece = deepcopy(cell)
            piece.outputs = []
            if pieces:
                piece.source = "# one more figure of the cell above"  # a cell without source is skipped
                piece["id"] = f"{cell['id']}-{len(pieces)}"
                piece.metadata.tags = [*dict.fromkeys([*cell.metadata.get("tags", []), "remove-input"])]
            pieces.append(piece)
        pieces[-1].outputs.append(output)
    return pieces


def _is_image(output: NotebookNode) -> bool:
    return any(kind in output.get("data", {}) for kind in IMAGE_TYPES)


def describe_image(figure: str, number: int, cell: NotebookNode) -> bool:
    """Move what an image output says of itself to where Jupyter Book reads it; say whether there is one."""
    images = [output for output in cell.outputs if _is_image(output)]
    if not images:
        return False
    metadata = images[0].get("metadata", {})
    said = dict(metadata)
    for kind in IMAGE_TYPES:
        said |= metadata.get(kind, {})
    options = cell.metadata.setdefault("mystnb", {})
    for key, place in FROM_OUTPUT.items():
        if str(said.get(key, "")).strip():
            options.setdefault(place, {})[key] = str(said[key]).strip()
    if not str(options.get("image", {}).get("alt", "")).strip():
        raise BadInput(
            f"{figure}, cell {number} shows an image without alternative text; display it with "
            'metadata={"image/svg+xml": {"alt": "what the figure shows"}} or set mystnb.image.alt on the cell'
        )
    return True


# What a figure's page says beneath its figures: the verdicts, and where the numbers come from.
#
# Kept out of the notebook, whose bytes are a function of the numbers alone.

ORDER = ("paper", "quick")  # as the page shows them


def origin_markdown(figure: str, root: Path, judged: list[ClaimVerdict] | None = None) -> str:
    """The closing sections of a figure's page, as MyST Markdown.

    Args:
        figure: id, such as ``attend/temporal_share``.
        root: the checkout.
        judged: the verdicts on all claims, to spare judging them again for every page.
    """
    experiment = figure.rpartition("/")[2]
    project = Project(root)
    rows = _judged(root) if judged is None else judged
    # Numbers stand in tables of the page's own.
    rows = [row for row in rows if row.claim.experiment == experiment and not row.claim.number]
    results = {profile: project.results(profile) / f"{experiment}.json" for profile in ORDER}
    boxes = [_provenance(Result.load(path)) for path in results.values() if path.is_file()]
    parts = []
    if rows:
        parts += ["## Verdicts", _verdicts(rows, "../" * figure.count("/"))]
    if boxes:
        parts += ["## Where the numbers come from", *boxes]
    return "\n\n".join(parts) + "\n"


def _judged(root: Path) -> list[ClaimVerdict]:
    return verify(root) if (root / "claims").is_dir() else []


def _verdicts(rows: list[ClaimVerdict], up: str) -> str:
    lines = ["| statement, in our words | quick | paper |", "|---|---|---|"]
    for claim in dict.fromkeys(row.claim for row in rows):
        cells = {row.profile: _verdict(row) for row in rows if row.claim == claim}
        link = f'<a href="{up}scorecard.html#claim-{claim.id}">{plain(claim.place)}</a>'
        verdicts = " | ".join(cells.get(profile, "") for profile in PROFILES)
        lines.append(f"| {plain(claim.says)} {link} | {verdicts} |")
    return "\n".join(lines)


def _verdict(row: ClaimVerdict) -> str:
    stale = ' <span class="verdict stale">stale</span>' if row.stale else ""
    undecided = "<br>undecided" if row.judgement.reason == UNDECIDED else ""
    return badge(row.verdict) + stale + undecided


def _provenance(result: Result) -> str:
    origin = result.provenance
    commit = (origin.get("commit") or "not in a repository")[:12]
    entries = {
        "profile": result.profile,
        "made": origin.get("date", "unknown"),
        "commit": commit + (", with changes not committed" if origin.get("dirty") else ""),
        "code": result.provenance.get("code", "unknown")
        + (" — stale: it has changed since" if is_stale(result) else ", the present one"),
        "on": f"{origin.get('device', 'unknown')}, {origin.get('threads', '?')} thread(s), "
        f"{origin.get('platform', '')}, Python {origin.get('python', '?')}",
        "training": _training(result),
        "packages": ", ".join(f"{name} {version}" for name, version in origin.get("packages", {}).items()),
        "settings": ", ".join(
            f"{name} = {_plain(value)}" for name, value in result.config.items() if value is not None
        ),
        "data": _data(result.data),
    }
    if result.missing:
        entries["not run yet"] = ", ".join(result.missing)
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(text))}</dd>" for name, text in entries.items())
    return f'<div class="provenance"><dl>{rows}</dl></div>'


def _training(result: Result) -> str:
    number = result.provenance.get("networks", len(result.models))
    machines = result.provenance.get("trained_on", ["an unknown machine"])
    seconds = result.provenance.get("training_seconds")
    if not number and not seconds:
        return "none"
    on = f", on {' and '.join(machines)}" if machines else ""
    return f"{_duration(seconds)} for {number} model{'' if number == 1 else 's'}{on}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _plain(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _data(data: dict[str, str]) -> str:
    if not data:
        return "none: every sample is made by rule"
    return ", ".join(f"{name} (sha256 {digest[:8]}…)" for name, digest in data.items())


# The page of a figure: its executed notebook made ready for the book, or a page that says why there is none.
#
# What a notebook must hold for the book is in `figure_page`.

# In the order in which a page lists them; the vector figure first.
DOWNLOAD_LABELS = {
    ".csv": "Data",
    ".svg": "Figure",
    ".png": "Figure",
    ".md": "Source of this page",
    ".py": "Experiment",
}


def figure_page(
    figure: str, root: Path, executed: Path, judged: list[ClaimVerdict] | None = None
) -> tuple[str, str, tuple[Path, ...]]:
    """Suffix, text and downloads of the page of one figure.

    In an executed notebook every image output carries alternative text, either in the metadata of its cell
    (``mystnb: {image: {alt: …}, figure: {caption: …, name: …}}``) or in the metadata of the output
    (``{"alt": …, "caption": …, "name": …}``, for the whole output or for its mime type). A cell that shows
    several becomes as many cells. Cells that papermill injected are left out; verdicts, provenance and
    downloads are added at the end.

    Args:
        figure: path without suffix, such as ``attend/temporal_share``.
        root: the repository; the notebook's source and its experiment become downloads.
        executed: folder with ``<figure>.ipynb``, ``<figure>.files/`` and, after a failure,
            ``<figure>.error.txt``.
        judged: see `origin_markdown`.

    Returns:
        ``(".ipynb" or ".md", text, files to offer)``.

    Raises:
        BadInput: an image without alternative text.
    """
    notebook_path = executed / f"{figure}.ipynb"
    error_path = executed / f"{figure}.error.txt"
    sources = tuple(
        path
        for path in (
            root / "notebooks" / f"{figure}.md",
            root / "notebooks" / figure / "experiment.py",
        )
        if path.is_file()
    )
    if error_path.is_file() or not notebook_path.is_file():
        reason = error_path.read_text(encoding="utf-8", errors="replace") if error_path.is_file() else ""
        return ".md", _missing_page(figure, reason, sources), sources
    notebook = nbformat.read(notebook_path, as_version=4)
    failure = _failed_cell(notebook)
    if failure:
        return ".md", _missing_page(figure, failure, sources), sources

    _take_prose_of(root / "notebooks" / f"{figure}.md", notebook)
    cells: list[NotebookNode] = []
    for number, cell in enumerate(notebook.cells, start=1):
        for piece in (pieces := one_image_each(cell)):
            if piece.cell_type == "code":
                describe_image(figure, number, piece)
        cells += pieces
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata.tags = [*cell.metadata.tags, "remove-cell"]
    notebook.cells = cells
    products = (executed / f"{figure}.files").glob("*")
    files = tuple(sorted(path for path in products if path.suffix in (".csv", ".svg", ".png")))
    downloads = f"## Downloads, and how to rerun this page\n\n{_download_list(figure, files + sources)}"
    text = f"{origin_markdown(figure, root, judged)}\n{downloads}"
    cell = nbformat.v4.new_markdown_cell(text)
    cell["id"] = "downloads"
    notebook.cells.append(cell)
    return ".ipynb", nbformat.writes(notebook), files + sources


@dataclass(frozen=True)
class FigureImage:
    """An image that a figure offers as a file, and what its notebook says about it."""

    path: Path
    alt: str
    caption: str


def image_of(figure: str, executed: Path, name: str | None = None) -> FigureImage | None:
    """The named image of a figure, or its first; None where the figure has not been run.

    The file is ``<figure>.files/<name>.svg``; the texts are those of the cell whose figure has this name,
    else of the first cell with an image.
    """
    notebook_path = executed / f"{figure}.ipynb"
    if not notebook_path.is_file() or (executed / f"{figure}.error.txt").is_file():
        return None
    notebook = nbformat.read(notebook_path, as_version=4)
    told = [
        piece.metadata.mystnb
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
        for piece in one_image_each(cell)
        if describe_image(figure, number, piece)
    ]
    folder = executed / f"{figure}.files"
    names = [name] if name else [options.get("figure", {}).get("name", "") for options in told]
    files = [path for path in (folder / f"{stem}.svg" for stem in names) if path.is_file()]
    files += sorted(folder.glob("*.svg")) if not name else []
    if not told or not files:
        return None
    by_name = {options.get("figure", {}).get("name"): options for options in told}
    options = by_name.get(files[0].stem, told[0])
    return FigureImage(files[0], options["image"]["alt"], options.get("figure", {}).get("caption", ""))


def _take_prose_of(source: Path, notebook: NotebookNode) -> None:
    """Markdown as it is written: an executed notebook has text where the book reads the numbers itself."""
    import jupytext

    executed = [cell for cell in notebook.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    written = jupytext.read(source).cells if source.is_file() else []
    if [cell.cell_type for cell in executed] == [cell.cell_type for cell in written]:
        for cell, own in zip(executed, written, strict=True):
            cell.source = own.source


def _failed_cell(notebook: NotebookNode) -> str:
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"Cell {number} stopped with {output.ename}: {output.evalue}"
    return ""


def _download_list(figure: str, files: tuple[Path, ...]) -> str:
    up = "../" * figure.count("/")
    groups: dict[str, list[str]] = {}
    for path in sorted(files, key=lambda path: (list(DOWNLOAD_LABELS).index(path.suffix), path.name)):
        link = f"{up}_static/figures/{figure}/{path.name}"
        groups.setdefault(DOWNLOAD_LABELS[path.suffix], []).append(
            f'<a href="{escape(link)}" download>{escape(path.name)}</a>'
        )
    rows = "".join(f"<li><b>{label}:</b> {' · '.join(links)}</li>" for label, links in groups.items())
    return f'<ul class="downloads">{rows}</ul>\n\n```bash\nattnlib run {figure}\n```\n'


def _missing_page(figure: str, reason: str, sources: tuple[Path, ...]) -> str:
    title = "# " + figure.rsplit("/", 1)[-1].replace("_", " ").capitalize()
    for source in sources:
        if source.suffix == ".md":
            lines = source.read_text(encoding="utf-8").splitlines()
            title = next((line for line in lines if line.startswith("# ")), title)
    what = "This figure has not been run here."
    quoted = ""
    if reason.strip():
        what = "This figure was run and did not finish. The rest of the book is not affected."
        fence = "`" * max(4, 1 + max(map(len, re.findall("`+", reason)), default=0))
        quoted = f"{fence}text\n{reason.strip()}\n{fence}\n\n"
    return (
        f"{title}\n\n:::{{admonition}} No figure on this page\n:class: warning\n{what}\n:::\n\n{quoted}"
        f"## How to run it\n\n{_download_list(figure, sources)}"
    )


# Pages and parts of pages that are made from something else than prose.

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


def table_of_contents(root: Path) -> dict[str, Any]:
    """Jupyter Book's table of contents: ``book/_toc.yml``, with the notebooks of each part in their order.

    A notebook says where it belongs in its front matter (``part: II`` and ``order: 40``); ``- notebooks:
    II`` is where the notebooks of that part go.

    Raises:
        BadInput: the file is missing or has no root, or a notebook's part is none of the book's.
    """
    toc = root / "book" / "_toc.yml"
    if not toc.is_file():
        raise BadInput(f"no table of contents at {toc}; run from the repository's root or give --root")
    content = yaml.safe_load(toc.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or "root" not in content:
        raise BadInput(f"{toc} has no 'root:' page; it should start with 'format: jb-book' and 'root: index'")
    notebooks = root / "notebooks"
    placed = sorted((*place_in_book(path), path) for path in notebooks.rglob("*.md"))
    for part in content.get("parts", []):
        part["chapters"] = [
            listed
            for chapter in part["chapters"]
            for listed in (
                [
                    {"file": path.relative_to(notebooks).with_suffix("").as_posix()}
                    for name, _, path in placed
                    if name == str(chapter["notebooks"])
                ]
                if "notebooks" in chapter
                else [chapter]
            )
        ]
    pages = toc_pages(content)
    for name, _, path in placed:
        if path.relative_to(notebooks).with_suffix("").as_posix() not in pages:
            raise BadInput(f"{path.relative_to(root)} is in part {name!r}, which book/_toc.yml does not have")
    return content


def place_in_book(notebook: Path) -> tuple[str, int]:
    """Part and order of a notebook, from its front matter.

    Raises:
        BadInput: it has none, or one of the two is missing.
    """
    text = notebook.read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---\n")[1]) if text.startswith("---\n") else {}
    try:
        return str(head["part"]), int(head["order"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{notebook} has no place in the book: begin its front matter with 'part: II' and 'order: 40'"
        ) from error


def toc_pages(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Pages named in a table of contents of Jupyter Book, in order, without suffix."""
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
            without a place in it; a figure without alternative text.
    """
    book = root / "book"
    toc = table_of_contents(root)
    pages = toc_pages(toc)
    sources = root / "notebooks"
    figures = {path.relative_to(sources).with_suffix("").as_posix() for path in sources.rglob("*.md")}
    judged = _judged(root)
    wanted: dict[str, bytes | Path] = {}
    for path in sorted(book.rglob("*")):
        name = path.relative_to(book).as_posix()
        if path.is_file() and not any(part in NOT_STAGED for part in path.relative_to(book).parts):
            wanted[name] = path
    wanted["_toc.yml"] = yaml.safe_dump(toc, sort_keys=False).encode()
    for page in pages:
        if f"{page}.md" in wanted:
            text = (book / f"{page}.md").read_text(encoding="utf-8")
            wanted[f"{page}.md"] = fill_markers(text, root, executed).encode()
        elif page in GENERATED:
            wanted[f"{page}.md"] = GENERATED[page](root).encode()
        elif page in figures or any(
            (executed / f"{page}{end}").is_file() for end in (".ipynb", ".error.txt")
        ):
            suffix, text, downloads = figure_page(page, root, executed, judged)
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
    parser = argparse.ArgumentParser(prog="python -m companion.book.site", description="Build the book.")
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
