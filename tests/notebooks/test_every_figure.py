"""Every figure shows its committed result; every experiment runs at a tiny size and has what claims read.

``python tests/notebooks/test_every_figure.py`` writes the digests of all drawings and tables anew: look at
what changed.
"""

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import jupytext
import matplotlib
import pandas as pd
import pytest
from IPython.display import Markdown

from attnlib.errors import NotMeasured
from companion.book import notebook
from companion.book.style import as_svg
from companion.claims.model import load_claims
from companion.paths import PAPER as RESULTS
from companion.results import registry
from companion.results.config import override
from companion.results.result import Result
from companion.results.run import computed, run
from notebooks.attend.temporal_share.drawing import readme_figure
from tests.notebooks.figure_builders import Given, tiny, tiny_request
from tests.tables import beside

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

    def show(self, figure, name, *, alt, caption, finding="", data=None):
        assert len(alt) > 20, f"{name} says too little to who cannot see it: {alt!r}"
        assert caption, f"{name} has no caption"
        svg = as_svg(figure)
        assert not re.search(r">[^<]*\b(AED|AO|VED)-\w", svg), f"{name} has the key of a network as a label"
        if _cut_off(figure):
            figure.draw_without_rendering()  # labels are placed while drawing
            assert not _cut_off(figure), f"{name} is cut off"
        self.drawn[name] = _digest(svg)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cut_off(figure) -> bool:
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) < -0.02


def drawn(figure: str, folder: Path) -> dict[str, str]:
    """Digest of each drawing and table of a notebook's cells on the committed result."""
    result = Result.load(RESULTS / f"{figure.rpartition('/')[2]}.json")
    page = Sheet(figure, None, result, folder, drawn={})
    for shown in shown_by_cells(figure, page):
        if isinstance(shown, pd.DataFrame):
            page.drawn[f"table {len(page.drawn) + 1}"] = _digest(shown.to_csv(float_format="%.6g"))
        elif isinstance(shown, Markdown):
            page.drawn[f"table {len(page.drawn) + 1}"] = _digest(shown.data)
    return page.drawn


def shown_by_cells(figure: str, page: notebook.Page, **names: object) -> Iterator[object]:
    """What one cell of a notebook after the other shows, of what the page holds."""
    with patch.object(notebook, "open_page", lambda *_: page), redirect_stdout(StringIO()):
        for cell in jupytext.read(ROOT / "notebooks" / f"{figure}.md").cells:
            if cell.cell_type == "code":
                yield _run(cell.source, f"{figure}.md", names)


def _run(source: str, name: str, names: dict) -> object:
    """What a cell shows: the value of its last line, as Jupyter has it."""
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_shown", ast.Store())], last.value), last)
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), names)
    return names.pop("_shown", None)


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_shows_its_committed_result(figure, tmp_path):
    held = json.loads(DIGESTS.read_text())
    found = drawn(figure, tmp_path)
    if held["matplotlib"] != matplotlib.__version__:
        pytest.skip(f"drawings are compared with matplotlib {held['matplotlib']}")
    assert found == held.get(figure), f"look at {figure}, then: python {Path(__file__).relative_to(ROOT)}"


PUBLISHED = beside(__file__, "published")


@pytest.mark.parametrize(("name", "stop", "by_rule"), PUBLISHED["without_files"])
def test_without_published_files_sets_made_by_rule_are_read_unless_asked_to_stop(
    name, stop, by_rule, tmp_path, monkeypatch
):
    for place in ("ATTNLIB_DATA", "ATTNLIB_CACHE"):
        monkeypatch.setenv(place, str(tmp_path))
    module = registry.load(name)

    def reads(**changes):
        planned = module.measurements(override(module.PROFILES["quick"], changes))
        runs = [vars(one.spec.resolved) for one in planned]
        return {run[field] for run in runs for field in ("data", "dataset", "task") if field in run}

    assert reads() == set(by_rule)
    assert not all(own.startswith("known") for own in reads(**stop))


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_what_nobody_has_measured_has_no_number_and_is_no_error(name):
    if name in PUBLISHED["texts"] and not os.environ.get("ATTNLIB_DATA"):
        pytest.skip("reads published texts: set ATTNLIB_DATA")
    if not any(True for _ in registry.load(name).measurements(tiny(name))):
        pytest.skip("measures no network")
    with suppress(NotMeasured):  # which says that nothing can be told before all is there
        outcome = computed(registry.load(name), tiny(name), Given(lambda *_, **__: None))
        outcome.values.pop("distances", None)  # of links, which are counted without any network
        assert not any(_networks(outcome.values))
        assert not [row for rows in outcome.tables.values() for row in rows or () if "seed" in row]


def _networks(values: object) -> Iterator[int]:
    """How many networks each interval is of."""
    if isinstance(values, dict):
        yield from [values["n"]] if {"value", "n"} <= set(values) else chain(*map(_networks, values.values()))


@pytest.mark.slow
@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("name", registry.names())
def test_an_experiment_runs_at_a_tiny_size_and_has_what_its_claims_read(name, tmp_path, models):
    if name in PUBLISHED["texts"] and not os.environ.get("ATTNLIB_DATA"):
        pytest.skip("reads published texts: set ATTNLIB_DATA")
    module = registry.load(name)
    result = run(tiny_request(name), out=tmp_path, models=models)
    settings = [setting for profile in module.PROFILES.values() for setting in vars(profile).items()]
    several = [(field, one) for field, value in settings if isinstance(value, tuple) for one in value]
    free = {own for field, one in several for own in (str(one), f"{field}_{one}")}
    keys = [key for claim in load_claims(ROOT / "claims") if claim.experiment == name for key in claim.keys]
    asked = [key for key in dict.fromkeys(keys) if not key.startswith(tuple(PUBLISHED["by_outcome"]))]
    lost = [key for key in asked if not _resolves(result.values, key.split("."), free)]
    assert not lost


def _resolves(here: object, names: list[str], free: set[str]) -> bool:
    """Whether a key leads somewhere; any value of a setting stands for one that a tiny run leaves out."""
    if not names:
        return True
    name, *rest = names
    if not isinstance(here, dict) or name in here:
        return isinstance(here, dict) and _resolves(here[name], rest, free)
    return name in free and any(_resolves(own, rest, free) for own in here.values())


def test_the_figure_of_the_readme_is_drawn_from_the_committed_result():
    path, text = readme_figure(RESULTS)
    assert path.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "make readme draws it anew"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    digests = {"matplotlib": matplotlib.__version__} | {figure: drawn(figure, ROOT) for figure in FIGURES}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")
