"""Every figure draws its committed result, and every experiment runs at a tiny size with what its claims read.

``python tests/notebooks/test_every_figure.py`` writes the digests of all drawings anew: look at what changed.
"""

import hashlib
import json
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import jupytext
import matplotlib
import pytest

from attnlib.errors import DataUnavailable
from attnlib.plots.style import as_svg
from companion.book import notebook
from companion.claims.model import load_claims
from companion.results import registry
from companion.results.recompute import RESULTS
from companion.results.request import Request
from companion.results.result import Result
from companion.results.run import run

ROOT = RESULTS.parents[1]
DIGESTS = Path(__file__).with_name("drawings.json")
FIGURES = sorted(
    f"{path.parent.name}/{path.stem}"
    for path in (ROOT / "notebooks").glob("*/*.md")
    if (RESULTS / f"{path.stem}.json").is_file()
)


@dataclass(frozen=True)
class Sheet(notebook.Page):
    """A page that keeps its drawings instead of showing them."""

    drawn: tuple = ()

    def show(self, figure, name, *, alt, caption, data=None):
        assert len(alt) > 20, f"{name} says too little to who cannot see it: {alt!r}"
        assert caption, f"{name} has no caption"
        svg = as_svg(figure)
        if _cut_off(figure):
            figure.draw_without_rendering()  # labels are placed while drawing
            assert not _cut_off(figure), f"{name} is cut off"
        self.drawn[name] = hashlib.sha256(svg.encode()).hexdigest()[:16]


def _cut_off(figure) -> bool:
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) < -0.02


def drawn(figure: str, folder: Path) -> dict[str, str]:
    """Digest of each drawing of a notebook's cells on the committed result."""
    result = Result.load(RESULTS / f"{figure.rpartition('/')[2]}.json")
    page = Sheet(figure, None, result, folder, drawn={})
    cells = jupytext.read(ROOT / "notebooks" / f"{figure}.md").cells
    names: dict = {}
    with patch.object(notebook, "open_page", lambda *_: page), redirect_stdout(StringIO()):
        for cell in cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{figure}.md", "exec"), names)
    return page.drawn


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_draws_its_committed_result(figure, tmp_path):
    held = json.loads(DIGESTS.read_text())
    found = drawn(figure, tmp_path)
    if held["matplotlib"] != matplotlib.__version__:
        pytest.skip(f"drawings are compared with matplotlib {held['matplotlib']}")
    assert found == held[figure], f"look at {figure}; if it is right: python {Path(__file__).relative_to(ROOT)}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    digests = {"matplotlib": matplotlib.__version__} | {figure: drawn(figure, ROOT) for figure in FIGURES}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")
