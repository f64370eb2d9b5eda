"""Cells draw with few words: the first figure of a page fits on a screen, and intervals have shared marks."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks").glob("*/*.md"))
}
MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks").rglob("*.py"))
}
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)\n?(.*?)^```$", re.MULTILINE | re.DOTALL)
A_SCREEN = 40  # lines
DRAWS_LINES = {"plot", "vlines", "hlines", "errorbar", "fill_between", "fill_betweenx"}
ENDS = {"low", "high"}  # of an interval
MARKS = "notebooks/shared/marks.py"  # which draws intervals for all


def code_of_cells(page: str) -> list[str]:
    """Return the code of each cell, without its options."""
    return [cell[2] for cell in CELL.finditer(page)]


def first_figure(page: str) -> str:
    """Return the code of the cell that shows the first figure of a page."""
    return next(code for code in code_of_cells(page) if "page.show(" in code)


def words_in(node: ast.AST) -> set[str]:
    """Return the names and the strings of an expression."""
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    strings = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
    return names | strings


def intervals_by_hand(code: str) -> list[str]:
    """Return the calls that draw a line or a band from the low to the high end of an interval."""
    drawn = []
    for call in ast.walk(ast.parse(code)):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in DRAWS_LINES
        ):
            words = {word for argument in call.args for word in words_in(argument)}
            if words >= ENDS:
                drawn.append(ast.unparse(call))
    return drawn


@pytest.mark.parametrize("page", PAGES)
def test_the_cell_of_the_first_figure_fits_on_a_screen(page):
    lines = first_figure(PAGES[page]).splitlines()
    assert len(lines) <= A_SCREEN, "move what draws into `drawing.py` of the figure's folder"


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_draws_an_interval_by_hand(page):
    drawn = [call for code in code_of_cells(PAGES[page]) for call in intervals_by_hand(code)]
    assert drawn == [], "use `dot`, `error_bar` or `line_with_band` of notebooks/shared/marks.py"


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {MARKS}))
def test_no_module_of_a_figure_draws_an_interval_by_hand(module):
    assert intervals_by_hand(MODULES[module]) == [], "use `dot`, `error_bar` or `line_with_band`"


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        pytest.param('axes.plot([row["low"], row["high"]], [0, 0])', 1, id="ends_of_a_row"),
        pytest.param("axes.fill_between(x, low, high)", 1, id="ends_by_name"),
        pytest.param('axes.errorbar(x, y, [rows["low"], rows["high"]])', 1, id="an_error_bar_of_matplotlib"),
        pytest.param('axes.plot(rows["low"], rows["value"])', 0, id="one_end"),
        pytest.param("dot(axes, row, 0, INK)", 0, id="a_shared_mark"),
        pytest.param("print(low, high)", 0, id="no_drawing"),
    ],
)
def test_an_interval_by_hand_is_a_line_between_both_ends(code, calls):
    assert len(intervals_by_hand(code)) == calls


def test_options_of_a_cell_are_not_its_code():
    page = '```{code-cell} python3\n:tags: [hide-input]\n\npage.show(figure, "name")\n```\n'
    assert code_of_cells(page) == ['page.show(figure, "name")\n']
