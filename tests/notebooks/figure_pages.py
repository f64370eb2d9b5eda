"""Pages that keep what the cells of a notebook show, so that tests can look at it."""

import ast
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import jupytext
import pandas as pd
from IPython.display import Markdown
from matplotlib.figure import Figure
from matplotlib.text import Text

from companion.book import notebook
from companion.book.style import as_svg
from companion.paths import PAPER as RESULTS
from companion.results.result import Result

ROOT = RESULTS.parents[1]
FIGURES = sorted(
    f"{path.parent.name}/{path.stem}"
    for path in (ROOT / "notebooks").glob("*/*.md")
    if (RESULTS / f"{path.stem}.json").is_file()
)
TOLERATED = 0.02  # inches beyond the edge, less than a screen shows
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Drawing:
    """A drawing as a page has it: its figure, its SVG, and the texts that go with it."""

    name: str
    figure: Figure
    svg: str
    alt: str
    caption: str

    def faults(self) -> list[str]:
        """Return what is wrong with it, in words; nothing where a reader sees all that was drawn."""
        faults = []
        if not any(axes.has_data() for axes in self.figure.axes):
            faults.append("draws nothing")
        if not _texts(self.figure):
            faults.append("has no text")
        if is_cut_off(self.figure):
            self.figure.draw_without_rendering()  # labels are placed while drawing
            if is_cut_off(self.figure):
                faults.append("is cut off")
        if len(self.alt) <= 20:
            faults.append(f"says too little to those who cannot see it: {self.alt!r}")
        if not self.caption:
            faults.append("has no caption")
        if key := re.search(r">[^<]*\b((?:AED|AO|VED)-\w+)", self.svg):
            faults.append(f"labels a network with its key {key[1]!r}")
        return faults


@dataclass(frozen=True)
class Sheet(notebook.Page):
    """A page that keeps its drawings instead of showing them."""

    drawings: list[Drawing] = field(default_factory=list)

    def show(self, figure, name, *, alt, caption, finding="", data=None):
        self.drawings.append(Drawing(name, figure, as_svg(figure), alt, caption))


def is_cut_off(figure: Figure) -> bool:
    """Return True if something of the figure is beyond its edges."""
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) < -TOLERATED


def _texts(figure: Figure) -> list[str]:
    """Return the words that a figure shows, tick labels left out, which matplotlib writes by itself."""
    ticks = {label for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())}
    texts = [text for text in figure.findobj(Text) if text not in ticks and text.get_visible()]
    return [text.get_text() for text in texts if text.get_text().strip()]


def sheet_of(figure: str, folder: Path) -> tuple[Sheet, list[object]]:
    """Return the page of a notebook with its committed result, drawn, and what each cell shows."""
    page = _empty_sheet(figure, folder)
    return page, list(shown_by_cells(figure, page))


def sheet_until(figure: str, name: str, folder: Path) -> Sheet:
    """Return the page of a notebook as it is once a certain drawing was made."""
    page = _empty_sheet(figure, folder)
    for _ in shown_by_cells(figure, page):
        if page.drawings and page.drawings[-1].name == name:
            return page
    raise LookupError(f"{figure} draws no {name}, but {[drawing.name for drawing in page.drawings]}")


def _empty_sheet(figure: str, folder: Path) -> Sheet:
    result = Result.load(RESULTS / f"{figure.rpartition('/')[2]}.json")
    return Sheet(figure, None, result, folder)


def numbers_of_tables(shown: list[object]) -> dict[str, list[str]]:
    """Return the numbers of each table that cells show, row by row, and none of its words."""
    texts = []
    for table in shown:
        if isinstance(table, pd.DataFrame):
            texts.append(table.to_csv(float_format="%.6g"))
        elif isinstance(table, Markdown):
            texts.append(table.data)
    return {f"table {place}": _numbers_of_lines(text) for place, text in enumerate(texts, start=1)}


def _numbers_of_lines(text: str) -> list[str]:
    lines = [" ".join(NUMBER.findall(line)) for line in text.splitlines()]
    return [line for line in lines if line]


def shown_by_cells(figure: str, page: notebook.Page, **names: object) -> Iterator[object]:
    """Yield what one cell of a notebook after the other shows, of what the page holds."""
    with patch.object(notebook, "open_page", lambda *_: page), redirect_stdout(StringIO()):
        for cell in jupytext.read(ROOT / "notebooks" / f"{figure}.md").cells:
            if cell.cell_type == "code":
                yield _run(cell.source, f"{figure}.md", names)


def _run(source: str, name: str, names: dict) -> object:
    """Return what a cell shows: the value of its last line, as Jupyter has it."""
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_shown", ast.Store())], last.value), last)
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), names)
    return names.pop("_shown", None)
