"""Put the book together and build it.

`stage` lays out ``build/src``: the prose of ``book/``, the executed notebooks, pages made from data. It
writes only what changed, so that Sphinx rereads only that. `build_site` then runs it, by Jupyter Book's
settings; a warning is an error.

``python -m companion.book.site`` does both and prints the path of the front page.
"""

import gc
import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import partial
from html import escape
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode
from sphinx_external_toc.parsing import parse_toc_data

from attnlib.errors import AttnlibError, BadInput, check_known
from attnlib.files import atomic_path
from companion.book import previews, progress
from companion.book.leaving import ARCHIVE, book_archive, leaving_notebook
from companion.book.markup import template
from companion.book.notebook import BOTH_PROFILES
from companion.book.project import Project, audit_of, discover, find_root
from companion.book.prose import Book, PageHtml, filled
from companion.book.scorecard import borderline_claims, scorecard_csv, scorecard_markdown
from companion.claims.verify import ClaimVerdict, verify
from companion.paths import PROFILES, SENTINELS
from companion.runs.command import errors_in_a_line

IMAGE_TYPES = {"image/svg+xml", "image/png", "image/jpeg"}
# What an image output says about itself, and where Jupyter Book looks for it on the cell.
FROM_OUTPUT = {"alt": "image", "caption": "figure", "name": "figure"}
# A change in any of these can alter every page, and Sphinx does not see it.
WHOLE_BOOK = ("_config.yml", "book/_static", "book/_vendor", "book/_theme", "book/_index.yml")
MARKER = re.compile(r"^<!-- book:(?P<kind>\w+) ?(?P<figure>[\w/]*) ?(?P<image>\w*) -->$", re.MULTILINE)


# What a reader of the open page does not read as words.
NOT_READ = (
    r"\A---\n.*?\n---\n",
    r"^```.*?^```$",
    r"^( *)(:{3,})\{(?:dropdown|claims)\}.*?^\1\2$",
    r"^ *\|[^\n]*$|^ *:\w[^\n]*$|^ *:{3,}[^\n]*$",
    r"\$\$.*?\$\$|\$[^$]*\$|<[^>]+>",
    r"\{\w+\}`[^`]*`",
)
WORDS_A_MINUTE = 200
# What a chapter has below this heading is a page of its own in the audit part, drawn by the same notebook.
AUDIT = "## Audit\n"
DRAWINGS = Path("book", "_drawings")


class SiteError(AttnlibError):
    """The book could not be built; the message carries the warnings of the build."""


def images_of(figure: str, number: int, cell: NotebookNode) -> list[NotebookNode]:
    """The image outputs of a cell, each with its alternative text. Raises BadInput: one has none."""
    images = [output for output in cell.get("outputs", []) if IMAGE_TYPES & set(output.get("data", {}))]
    if not all(str(image.metadata.get("alt", "")).strip() for image in images):
        way_out = "show it with page.show(…, alt='what the figure shows')"
        raise BadInput(f"{figure}, cell {number} shows an image without alternative text; {way_out}")
    return images


def without_profiles(cell: NotebookNode) -> NotebookNode:
    """The cell without the line that says which profiles its figures are of."""
    cell = deepcopy(cell)
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            output.text = BOTH_PROFILES.sub("", output.text)
    if "outputs" in cell:
        cell.outputs = [output for output in cell.outputs if output.get("text") != ""]
    return cell


def one_image_each(figure: str, number: int, cell: NotebookNode) -> list[NotebookNode]:
    """The cell, its texts where Jupyter Book reads them; several images become cells of one each.

    Alternative text belongs to a cell in Jupyter Book, so a loop over figures would have one for all.
    """
    images = images_of(figure, number, cell)
    if not images:
        return [cell]
    starts = [
        0,
        *(place for place, output in enumerate(cell.outputs) if any(output is i for i in images[1:])),
    ]
    pieces = []
    for image, start, end in zip(images, starts, [*starts[1:], None], strict=True):
        piece = deepcopy(cell)
        piece.outputs = cell.outputs[start:end]
        for key, place in FROM_OUTPUT.items():
            if text := str(image.metadata.get(key, "")).strip():
                piece.metadata.setdefault("mystnb", {}).setdefault(place, {})[key] = text
        if pieces:
            piece.source = "# one more figure of the cell above"  # a cell without source is skipped
            piece["id"] = f"{cell['id']}-{len(pieces)}"
            piece.metadata.tags = [*dict.fromkeys([*cell.metadata.get("tags", []), "remove-input"])]
        pieces.append(piece)
        about = piece.metadata.get("mystnb", {})
        if len(images) > 1 and "code_prompt_show" in about:  # folds with names of their own
            about["code_prompt_show"] += f", {len(pieces)} of {len(images)}"
    return pieces


def closing(figure: str, book: Book, judged: list[ClaimVerdict]) -> str:
    """Beneath the figures of a page: the verdicts, and where the numbers come from.

    Kept out of the notebook, whose bytes are a function of the numbers alone.
    """
    experiment = figure.rpartition("/")[2]
    # Printed numbers stand in tables of the page.
    rows = [row for row in judged if row.claim.experiment == experiment and not row.claim.number]
    paths = [Project(book.root).results(profile) / f"{experiment}.json" for profile in reversed(PROFILES)]
    results = [book.load(path) for path in paths if path.is_file()]
    return _filled(figure, claims=rows, profiles=PROFILES, results=results)


def _filled(figure: str, **values: object) -> str:
    page = template(Path(__file__).with_name("closing.md.jinja"))
    return page.render(figure=figure, **values)


def downloads_of(figure: str, root: Path, executed: Path) -> list[Path]:
    """The sources of a figure, and the files that it has made, the vector figure first; equal ones once."""
    prose = root / "notebooks" / f"{figure}.md"
    sources = filter(Path.is_file, (prose, prose.with_suffix("") / "experiment.py"))
    made = (path for end in ("csv", "svg", "png") for path in (executed / f"{figure}.files").glob(f"*.{end}"))
    tidy = sorted(made, key=lambda path: (path.suffix == ".png", path.name), reverse=True)
    return [*sources, *reversed({path.read_bytes(): path for path in tidy}.values())]


def figure_page(
    figure: str,
    prose: str,
    files: list[Path],
    executed: Path,
    shown: NotebookNode | None,
    *,
    end: str,
    notes: str,
) -> str:
    """Return the page of one figure, a notebook; of one that failed, a page that says why.

    Args:
        figure: its id.
        prose: its source with all marks filled.
        files: its `downloads_of`.
        executed: the folder of executed notebooks.
        shown: the first of its `shown_pages`.
        end: its `closing`.
        notes: those that its badges open.
    """
    title = heading_of(prose, figure)
    if shown is None:
        return _page_without_figures(figure, title, files, executed)
    last = _filled(figure, files=files, title=title, version=version("attnlib"))
    summary = "Verdicts, where the numbers come from, and downloads" if end.strip() else "Downloads"
    tail = f"::::::{{dropdown}} {summary}\n:class-container: tail\n\n{end}{last}\n::::::\n{notes}"
    shown.cells.append(nbformat.v4.new_markdown_cell(tail, id="downloads"))
    return nbformat.writes(shown)


def audit_page(
    figure: str,
    prose: str,
    files: list[Path],
    executed: Path,
    shown: NotebookNode | None,
    *,
    notes: str = "",
    here: str = "",
) -> str:
    """Return the page of the audit part with what a chapter has below its heading `AUDIT`, as a notebook.

    Args:
        figure: of the chapter.
        prose: the chapter's source, with all marks filled.
        files: the `downloads_of` the chapter.
        executed: the folder of executed notebooks.
        shown: the second of its `shown_pages`.
        notes: those that badges below the heading open.
        here: the line that says where in the book the page is.
    """
    title = f"# Audit: {heading_of(prose, figure).lstrip('# ')}"
    if shown is None:
        return _page_without_figures(figure, title, files, executed)
    first = shown.cells[0]
    below = first.source.removeprefix(AUDIT.strip())
    first.source = f"{title}{here}\n\n{below.strip()}"
    if notes:
        shown.cells.append(nbformat.v4.new_markdown_cell(notes.strip(), id="notes"))
    return nbformat.writes(shown)


def heading_of(prose: str, figure: str) -> str:
    """Return the line with the title of a page; the figure's name where it has none."""
    return next((line for line in prose.splitlines() if line.startswith("# ")), f"# {figure}")


def _reason_of(figure: str, executed: Path) -> str:
    """Why a figure failed; empty where it did not."""
    path = executed / f"{figure}.error.txt"
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""


def _page_without_figures(figure: str, title: str, files: list[Path], executed: Path) -> str:
    reason = _reason_of(figure, executed)
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", reason)), default=0))
    sources = [path for path in files if path.suffix in (".md", ".py")]
    text = _filled(figure, files=sources, missing=reason, title=title, fence=fence)
    return nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text, id="failed")]))


def shown_pages(
    figure: str, prose: str, executed: Path, here: str = ""
) -> tuple[NotebookNode, NotebookNode] | tuple[None, None]:
    """Return the notebooks of a figure's chapter and of its audit page; None twice if the figure was not run.

    Args:
        figure: its id.
        prose: its source with all marks filled, since the executed notebook may be older than a number.
        executed: the folder of executed notebooks.
        here: the line that says where in the book the chapter is.
    """
    import jupytext

    path = executed / f"{figure}.ipynb"
    if not path.is_file() or _reason_of(figure, executed):
        return None, None
    title = heading_of(prose, figure)
    prose = prose.replace(title, f"{title}{here}{place_line(prose)}", 1)
    notebook = nbformat.read(path, as_version=4)
    made = [cell for cell in notebook.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    written = jupytext.reads(prose, "md:myst").cells
    if [cell.cell_type for cell in made] == [cell.cell_type for cell in written]:
        for cell, original in zip(made, written, strict=True):
            cell.source = original.source
    shown = map(without_profiles, notebook.cells)
    cells = [part for n, cell in enumerate(shown, 1) for part in one_image_each(figure, n, cell)]
    starts = (n for n, cell in enumerate(cells) if f"{cell.source}\n".startswith(AUDIT))
    start = next(starts, len(cells))
    audit = NotebookNode(notebook)
    notebook.cells, audit.cells = cells[:start], cells[start:]
    return notebook, audit


def place_line(prose: str) -> str:
    """Return the line below a title with the place in the papers; empty for a chapter that has none."""
    place = str(yaml.safe_load(prose.split("---\n")[1]).get("place", "")) if prose.startswith("---\n") else ""
    if not place or place.startswith("Part "):
        return ""
    return f'\n\n<p class="place">{escape(place)}</p>'


def words_to_read(prose: str) -> int:
    """Return how many words a page has that are open: not code, tables, formulas, marks or what is folded."""
    for pattern in NOT_READ:
        prose = re.sub(pattern, " ", prose, flags=re.MULTILINE | re.DOTALL)
    return len(re.findall(r"\w[\w'’-]*", prose))


def parted(source: str) -> tuple[str, str]:
    r"""Return what a chapter has on its own page, and what it has on its page in the audit part.

    Example:
        >>> parted("# A\n\nIt rises.\n\n+++\n\n## Audit\n\nAll numbers.\n")
        ('# A\n\nIt rises.\n\n', '## Audit\n\nAll numbers.\n')
        >>> parted("# A\n")
        ('# A\n', '')
    """
    chapter, mark, audit = source.partition(f"+++\n\n{AUDIT}")
    return chapter, mark.removeprefix("+++\n\n") + audit


def here_lines(toc: Mapping[str, Any], root: Path) -> dict[str, str]:
    """Return for each figure the line that says where in the book it is, and how long it takes to read.

    Args:
        toc: the `table_of_contents`.
        root: of the checkout. A page of the audit part names in its front matter the chapter that it belongs
            to, ``audits: primer/path_length``; what a chapter has below `AUDIT` belongs to it as well. A
            chapter names there those that it takes as read, ``builds_on: [primer/one_step]``.

    Raises BadInput: a chapter builds on a page that does not come before it.
    """
    sources = {
        entry["file"]: root / "notebooks" / f"{entry['file']}.md"
        for part in toc.get("parts", [])
        for entry in part["chapters"]
    }
    prose = {page: path.read_text(encoding="utf-8") for page, path in sources.items() if path.is_file()}
    heads = {page: yaml.safe_load(text.split("---\n")[1]) for page, text in prose.items()}
    chapter_of = {page: head.get("audits") for page, head in heads.items()}
    lines: dict[str, str] = {}
    above: set[str] = set()
    for part in toc.get("parts", []):
        pages = [entry["file"] for entry in part["chapters"]]
        for number, page in enumerate(pages):
            if page not in prose:
                continue
            chapter, audit = parted(prose[page])
            where = f"Part {part['caption']}, {number} of {len(pages) - 1}"
            if chapter_of[page]:
                where = f"An audit of [](/{chapter_of[page]})"
            audits = [f"[](/{other})" for other, audited in chapter_of.items() if audited == page]
            lines[page] = _here(where, chapter)
            builds_on = heads[page].get("builds_on", [])
            if not above.issuperset(builds_on):
                raise BadInput(f"{sources[page]} builds on {builds_on}; name chapters that come before it")
            above.add(page)
            if builds_on:
                lines[page] += f" · builds on {' and '.join(f'[](/{before})' for before in builds_on)}"
            if audits:
                lines[page] += f" · audited in {' and '.join(audits)}"
            if audit:
                own_audit = audit_of(page)
                lines[page] += f" · [all numbers and details](/{own_audit})"
                lines[own_audit] = _here(f"An audit of [](/{page})", audit)
    return lines


def _here(where: str, prose: str) -> str:
    minutes = max(1, round(words_to_read(prose) / WORDS_A_MINUTE))
    length = f"{minutes} minute" if minutes == 1 else f"{minutes} minutes"
    return f"\n\n{{.place}}\n{where} · {length} to read"


def fill_markers(text: str, executed: Path, page: str = "index") -> str:
    """``<!-- book:figure ID -->`` becomes the figure's first image with a link to its page, and
    ``<!-- book:figure ID NAME -->`` another one of that page by its name,
    ``<!-- book:commands -->`` the reference of the command line, ``<!-- book:map -->`` places in papers,
    ``<!-- book:sentinels -->`` the networks that were trained anew, ``<!-- book:drawing NAME -->`` a drawing
    inside of HTML, where the directive of drawings cannot be written.
    """

    makers = {
        "figure": partial(_figure, executed, page),
        "commands": commands_markdown,
        "map": _map,
        "sentinels": lambda _: sentinels_markdown(find_root()),
        "drawing": _drawing,
    }

    def replaced(match: re.Match) -> str:
        if match["kind"] not in makers:
            known = ", ".join(f"book:{kind}" for kind in makers)
            raise BadInput(f"unknown marker {match[0]!r}; expected one of: {known}")
        if match["image"]:
            return _figure(executed, page, match["figure"], match["image"])
        return makers[match["kind"]](match["figure"])

    return MARKER.sub(replaced, text)


def _drawing(name: str) -> str:
    path = find_root() / DRAWINGS / f"{name}.svg"
    if not path.is_file():
        raise BadInput(f"no drawing {name!r} in {DRAWINGS}")
    return path.read_text(encoding="utf-8").strip()


def _figure(executed: Path, page: str, figure: str, name: str = "") -> str:
    path, failed = executed / f"{figure}.ipynb", executed / f"{figure}.error.txt"
    cells = nbformat.read(path, as_version=4).cells if path.is_file() and not failed.is_file() else []
    images = [image for number, cell in enumerate(cells, 1) for image in images_of(figure, number, cell)]
    named = [image for image in images if name in ("", image.metadata["name"])]
    if images and not named:
        check_known("figure", name, [image.metadata["name"] for image in images])
    written = named and {key: " ".join(named[0].metadata[key].split()) for key in ("alt", "caption", "name")}
    shown = template(Path(__file__).with_name("lead_figure.md.jinja"))
    return shown.render(figure=figure, written=written, up="../" * page.count("/"))


def _map(_: str) -> str:
    """Place in a paper → page, as its front matter says it."""
    rows = sorted((page.place, page.id) for page in discover(Project(find_root())).values())
    lines = (f"| {place} | [](/{page}) |" for place, page in rows)
    return "\n".join(["| place | page |", "|---|---|", *lines])


def sentinels_markdown(root: Path) -> str:
    """The last outcome of `make sentinels` as a sentence and a table, a row a kind of training."""
    path = root / SENTINELS
    if not path.is_file():
        return "No network has been trained anew yet."
    outcome = json.loads(path.read_text(encoding="utf-8"))
    machine, rows = outcome["machine"], outcome["sentinels"]
    compared = sum("seconds" in row for row in rows)
    equal = sum(row["outcome"] == "equal" for row in rows)
    place = f"{machine['device']} with torch {machine['packages']['torch']}"
    lines = [
        f"The last time was on {outcome['date'][:10]}, at commit `{outcome['commit'][:12]}`, on {place}. "
        f"There, {equal} of {compared} networks gave every archived digit again.",
        "",
        "| training | seconds (archived) | numbers | outcome | mean difference | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_sentinel_row, rows)])


def _sentinel_row(row: Mapping[str, Any]) -> str:
    if "seconds" not in row:
        return f"| `{row['kind']}` | | | {row['outcome']} | | |"
    seconds = f"{row['seconds']:.0f} ({row['archived_seconds']:.0f})"
    if "updates" in row:
        seconds = f"{row['seconds']:.0f} for {row['updates']} updates"
    start = f"| `{row['kind']}` | {seconds} | {row['numbers']} | {row['outcome']} |"
    if "largest" not in row:
        return f"{start} 0 | |"
    largest = row["largest"]
    apart = f"`{largest['where']}`: {largest['archived']}, now {largest['today']}"
    return f"{start} {row['mean_difference']:g} | {apart} |"


def commands_markdown(_: str = "") -> str:
    """The command line's own help, a section a command, as Markdown."""
    import typer.cli
    import typer.core
    import typer.main

    command = typer.main.get_command(import_module("attnlib.cli").app)
    for below in command.commands.values():  # listed with a whole sentence, not with what fits a terminal
        below.short_help = below.short_help or " ".join((below.help or "").partition("\n\n")[0].split())
    context = typer.Context(command, obj={typer.core.MARKUP_MODE_KEY: "rich"})
    return typer.cli.get_docs_for_click(obj=command, ctx=context, name="attnlib", indent=1)


def table_of_contents(root: Path) -> dict[str, Any]:
    """Jupyter Book's table of contents: ``book/_toc.yml``, the notebooks of a part at ``- notebooks: II``.

    A notebook says where it belongs in its front matter (``part: II`` and ``order: 40``). Pages with what
    chapters have below their heading `AUDIT` are at ``- audits: chapters``.

    Raises BadInput: the file is missing; a notebook has no place, or is in a part that the book lacks.
    """
    toc = root / "book" / "_toc.yml"
    if not toc.is_file():
        raise BadInput(f"no table of contents at {toc}; run from the repository's root")
    content = yaml.safe_load(toc.read_text(encoding="utf-8"))
    placed: dict[str, list[tuple[int, str]]] = {}
    audited = set()
    for path in (root / "notebooks").rglob("*.md"):
        try:
            text = path.read_text(encoding="utf-8")
            head = yaml.safe_load(text.split("---\n")[1])
            part, order = str(head["part"]), int(head["order"])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            way_out = "begin its front matter with 'part: II' and 'order: 40'"
            raise BadInput(f"{path} has no place in the book: {way_out}") from error
        page = path.relative_to(root / "notebooks").with_suffix("").as_posix()
        placed.setdefault(part, []).append((order, page))
        if parted(text)[1]:
            audited.add(page)
    for part in content.get("parts", []):
        chapters, part["chapters"] = part["chapters"], []
        for chapter in chapters:
            notebooks = sorted(placed.pop(str(chapter.get("notebooks")), []))
            part["chapters"] += (
                [{"file": page} for _, page in notebooks] if "notebooks" in chapter else [chapter]
            )
    chapters = [entry for part in content.get("parts", []) for entry in part["chapters"]]
    audits = [{"file": audit_of(entry["file"])} for entry in chapters if entry["file"] in audited]
    parents = [entry for entry in chapters if entry.get("sections") == [{"audits": "chapters"}]]
    if audits and not parents:
        raise BadInput(
            f"{toc} has no place for {audits[0]['file']!r}: add 'sections: [audits: chapters]' to a page"
        )
    for entry in parents:
        entry["sections"] = audits
        if not audits:
            del entry["sections"]
    for part, ((_, page), *_) in placed.items():
        raise BadInput(f"notebooks/{page}.md is in part {part!r}, which book/_toc.yml does not have")
    return content


class _Pages:
    """The sources of all pages, which are gathered before any of them is written.

    Attributes:
        root: of the checkout.
        executed: the folder of the executed notebooks.
        copied: files of ``book/``, by the name that they get.
        made: texts that are made from data and prose, likewise.
        pictures: previews of pages, likewise.
        leaving: notebooks for readers to take with them, by figure.
        mistakes: marks that are wrong, by source and line.
    """

    def __init__(self, root: Path, executed: Path, toc: Mapping[str, Any]) -> None:
        self.root = root
        self.executed = executed
        self.made: dict[str, str] = {}
        self.pictures: dict[str, bytes] = {}
        self.leaving: dict[str, bytes] = {}
        self.mistakes: list[str] = []
        self._results = Book(root)
        self._judged: list[ClaimVerdict] = []
        if (root / "claims").is_dir():
            self._judged = verify(root, load=self._results.load)
        self._borderline = borderline_claims(self._judged)
        self._here = here_lines(toc, root)
        self._book_name = book_name(root)
        book = root / "book"
        self.copied: dict[str, bytes | Path] = {}
        for path in sorted(book.rglob("*")):
            if path.is_file() and book / "_theme" not in path.parents:
                self.copied[path.relative_to(book).as_posix()] = path
        self.copied["_toc.yml"] = yaml.safe_dump(toc, sort_keys=False).encode()

    def files(self) -> dict[str, bytes | Path]:
        """Return all that the folder is to hold, by name."""
        texts = {name: text.encode() for name, text in self.made.items()}
        return self.copied | self.pictures | texts

    def add_cover(self) -> None:
        """Add the preview of the whole book."""
        cover = previews.first_picture(self.executed, previews.COVER)
        if cover:
            self.pictures["_files/previews/book.png"] = previews.card(cover, self._book_name, "")

    def add(self, page: str) -> None:
        """Add a page of the table of contents.

        Raises:
            BadInput: it is neither prose, generated nor a figure.
        """
        if f"{page}.md" in self.copied:
            self._add_prose(page)
        elif page == "scorecard":
            self.made["scorecard.md"] = scorecard_markdown(self.root, self._judged)
            self.made["_files/scorecard.csv"] = scorecard_csv(self.root, self._judged)
        elif (self.root / "notebooks" / f"{page}.md").is_file():
            self._add_figure(page)
        else:
            lacking = f"there is neither book/{page}.md nor notebooks/{page}.md"
            raise BadInput(f"book/_toc.yml names {page!r}, but {lacking}; write one or remove the line")

    def _add_prose(self, page: str) -> None:
        path = self.root / "book" / f"{page}.md"
        prose, notes = self._filled(path.read_text(encoding="utf-8"), path, page)
        self.made[f"{page}.md"] = fill_markers(prose, self.executed, page) + notes

    def _add_figure(self, figure: str) -> None:
        """Add the page of a figure, that of its audit, its downloads and its preview."""
        files = downloads_of(figure, self.root, self.executed)
        for file in files:
            self.copied[f"_files/figures/{figure}/{file.name}"] = file
        notebook = self.executed / f"{figure}.ipynb"
        if notebook.is_file():
            self.leaving[figure] = leaving_notebook(notebook)
        path = self.root / "notebooks" / f"{figure}.md"
        chapter, audit = parted(path.read_text(encoding="utf-8"))
        prose, notes = self._filled(chapter, path, figure)
        prose = fill_markers(prose, self.executed, figure)
        below_notes = ""
        if audit:
            lines_above = chapter.count("\n") + 2
            below, below_notes = self._filled(audit, path, figure, lines_above=lines_above)
            prose += f"+++\n\n{fill_markers(below, self.executed, figure)}"
        shown, shown_below = shown_pages(figure, prose, self.executed, self._here[figure])
        if audit:
            name = audit_of(figure)
            self.made[f"{name}.ipynb"] = audit_page(
                figure, prose, files, self.executed, shown_below, notes=below_notes, here=self._here[name]
            )
        picture = previews.first_picture(self.executed, figure)
        if picture:
            card = previews.card(picture, title_of(prose), self._book_name)
            self.pictures[f"_files/previews/{figure}.png"] = card
        end = closing(figure, self._results, self._judged)
        self.made[f"{figure}.ipynb"] = figure_page(
            figure, prose, files, self.executed, shown, end=end, notes=notes
        )

    def _filled(self, source: str, path: Path, page: str, *, lines_above: int = 0) -> tuple[str, str]:
        """Return a part of a page with every mark filled, and the notes that its badges open."""
        form = PageHtml(page, self._borderline)
        text, mistakes = filled(source, self._results, page, form)
        name = path.relative_to(self.root).as_posix()
        for line, message in mistakes:
            self.mistakes.append(f"{name}:{lines_above + line}: {message}")
        return text, form.notes_html()


def stage(root: Path, executed: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Bring ``folder`` to hold the sources of the whole book; names of files written, and of those deleted.

    Only files whose content changed are touched. ``executed`` has the notebooks, ``<figure>.ipynb`` with
    ``<figure>.files/`` beside it.

    Raises BadInput: a page of the table of contents that is neither prose, generated nor a figure; a notebook
    without a place in it; a figure without alternative text; marks in the prose that are wrong, by source and
    line.
    """
    toc = table_of_contents(root)
    pages = _Pages(root, executed, toc)
    pages.add_cover()
    names = parse_toc_data(toc)
    audits = {audit_of(page) for page in names}
    for page in names:
        if page not in audits:  # an audit is made with its chapter
            pages.add(page)
    if pages.mistakes:
        # Each line begins as the lines of a log do that the terminal shows.
        raise BadInput("\nerror: ".join(["some of what the prose says does not hold:", *pages.mistakes]))
    if pages.leaving:  # beside the site, which would be twice as large with it
        with atomic_path(folder.parent / ARCHIVE) as path:
            path.write_bytes(book_archive(root, pages.leaving))
    return _sync(pages.files(), folder)


def title_of(prose: str) -> str:
    r"""Return the title of a page without its markup; empty if it has none.

    Example:
        >>> title_of("# Copying in *one* order\n\nIt is slow.")
        'Copying in one order'
    """
    heading = next((line for line in prose.splitlines() if line.startswith("# ")), "# ")
    return re.sub(r"[*`]", "", heading[2:]).strip()


def book_name(root: Path) -> str:
    """Return the book's name, from ``_config.yml``; empty in a folder without one."""
    config = root / "_config.yml"
    if not config.is_file():
        return ""
    return str(yaml.safe_load(config.read_text(encoding="utf-8"))["title"])


def _sync(wanted: Mapping[str, bytes | Path], folder: Path) -> tuple[list[str], list[str]]:
    written = []
    for name, content in wanted.items():
        data = content if isinstance(content, bytes) else content.read_bytes()
        target = folder / name
        if not (target.is_file() and target.read_bytes() == data):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            written.append(name)
    there = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    deleted = [name for name in there if name not in wanted]
    for name in deleted:
        (folder / name).unlink()
    return written, deleted


def moved_pages(root: Path, pages: Iterable[str]) -> dict[str, str]:
    """Return the addresses that pages of the book once had, with the page that is there instead.

    They are in ``book/_moved.yml``, ``old/name: new/name``, so that links from elsewhere keep leading on.

    Raises BadInput: an old address is that of a page; a new one is not.
    """
    path = root / "book" / "_moved.yml"
    if not path.is_file():
        return {}
    moved = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    known = set(pages)
    for old, new in moved.items():
        if old in known:
            raise BadInput(f"{path}: {old!r} is a page of the book; take its line out")
        if new not in known:
            raise BadInput(f"{path}: {old!r} leads to {new!r}, which is no page of the book")
    return moved


def leading_on(old: str, new: str) -> str:
    """Return the HTML of an address that a page had before: it leads to the page, without scripts too."""
    target = f"{'../' * old.count('/')}{new}.html"
    return template(Path(__file__).with_name("moved.html.jinja")).render(target=escape(target))


def write_moved(root: Path, site: Path) -> None:
    """Write a small page to each address of `moved_pages` below the folder of the built site."""
    for old, new in moved_pages(root, parse_toc_data(table_of_contents(root))).items():
        path = site / f"{old}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(leading_on(old, new), encoding="utf-8")


def _newest(paths: Iterable[Path]) -> float:
    """When the last of some files, or of those below some folders, was changed."""
    files = (path for start in paths for path in (start, *start.rglob("*")))
    return max(
        (path.stat().st_mtime for path in files if path.is_file() and "__pycache__" not in path.parts),
        default=0,
    )


def build_site(root: Path) -> Path:
    """Stage and build the book of a checkout; the path of its front page.

    Raises BadInput: what `stage` raises. SiteError: the build ended with an error or a warning.
    """
    from jupyter_book.sphinx import build_sphinx
    from sphinx.util.console import nocolor

    project = Project(root.resolve())
    source, built = project.build / "src", project.build / "_build"
    _, deleted = stage(project.root, project.executed("quick"), source)
    changed = _newest(project.root / name for name in WHOLE_BOOK)
    if deleted or not project.site.is_file() or changed > project.site.stat().st_mtime:
        shutil.rmtree(built, ignore_errors=True)
    nocolor()
    gc.set_threshold(500_000, 50, 50)  # doctrees are millions of objects that stay
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = build_sphinx(
            source, built / "html", noconfig=True, path_config=project.root / "_config.yml",
            confoverrides={"external_toc_path": str(source / "_toc.yml"), "latex_individualpages": False},
            warningiserror=True, keep_going=True, jobs=min(4, os.cpu_count() or 1),
        )  # fmt: skip
    if code != 0 or not project.site.is_file():
        # Sphinx warns about a page only when it reads it: without this, a second try would pass in silence.
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        lines = output.getvalue().splitlines()
        problems = [line for line in lines if re.search("WARNING|ERROR|CRITICAL", line)] or lines[-40:]
        raise SiteError("\n".join([f"Sphinx failed ({code}); warnings count as errors:", *problems]))
    write_moved(project.root, project.site.parent)
    project.site.touch()  # Sphinx leaves a page that did not change, and Snakemake goes by its date
    return project.site


@errors_in_a_line
def main(_: list[str] | None = None) -> int:
    root, started = find_root(), time.monotonic()
    print(build_site(root))
    progress.note(Project(root).build, progress.SITE, time.monotonic() - started)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
