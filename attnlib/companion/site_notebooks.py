"""The page of a figure: its executed notebook made ready for the book, or a page that says why there is none.

What a notebook must hold for the book is in `figure_page`.
"""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from attnlib.companion.origin import origin_markdown
from attnlib.companion.site_images import describe_image, one_image_each

# In the order in which a page lists them; the vector figure first.
DOWNLOAD_LABELS = {
    ".csv": "Data",
    ".svg": "Figure",
    ".png": "Figure",
    ".md": "Source of this page",
    ".py": "Experiment",
}


def figure_page(figure: str, root: Path, executed: Path) -> tuple[str, str, tuple[Path, ...]]:
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
            root / "attnlib" / "experiments" / f"{figure.rsplit('/', 1)[-1]}.py",
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
    text = f"{origin_markdown(figure, root)}\n{downloads}"
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
