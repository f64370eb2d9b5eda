"""Kernels draw from results: importing torch would cost each of them two seconds, a fifth of all drawing."""

import ast
import json
import subprocess
import sys

import pytest

from attnlib.decomposition import STATE_PARTS
from companion.book import style
from companion.book.plan import CODE_CELL
from companion.paths import ROOT

NEED_TORCH = {
    "attend/temporal_share": "its dial reads the archive",
    "beyond/your_own_model": "its report is made by attnlib",
    "learn/resting_attention": "names of labels are kept beside what reads the texts",
}
FIGURES = sorted(
    path.relative_to(ROOT / "notebooks").with_suffix("").as_posix()
    for path in (ROOT / "notebooks").glob("*/*.md")
)
# Imports the statements of one figure after the other, opens the page of its committed result, and says which
# one brought torch along.
PROGRAM = """
import json, os, sys
from companion.book.notebook import open_page
from companion.book.project import current_project
from companion.results.request import Request
for figure, statements in json.load(sys.stdin).items():
    exec(statements, {})
    request = Request(figure, "paper")
    if (current_project().root / request.folder / f"{request.experiment}.json").is_file():
        os.environ["ATTNLIB_REQUEST"] = request.as_text()
        open_page(figure, {})
    assert "torch" not in sys.modules, figure
"""


def imports_of(figure: str) -> str:
    """Return the import statements of a notebook's cells."""
    text = (ROOT / "notebooks" / f"{figure}.md").read_text(encoding="utf-8")
    tree = ast.parse("\n".join(CODE_CELL.findall(text)))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, statements))


def imported_in_a_new_process(*figures: str) -> subprocess.CompletedProcess:
    statements = json.dumps({figure: imports_of(figure) for figure in figures})
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        input=statements, capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_kernels_that_only_draw_do_not_import_torch():
    process = imported_in_a_new_process(*(figure for figure in FIGURES if figure not in NEED_TORCH))
    assert process.returncode == 0, process.stderr.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("figure", NEED_TORCH)
def test_a_kernel_that_is_let_off_does_import_torch(figure):
    assert f"AssertionError: {figure}" in imported_in_a_new_process(figure).stderr


def test_figures_name_the_parts_as_the_library_does():
    assert style.PART_NAMES == STATE_PARTS
