"""Every figure draws its committed result; every experiment runs at a tiny size and has what claims read.

``python tests/notebooks/test_every_figure.py`` writes the digests of all drawings anew: look at what changed.
"""

import hashlib
import json
import os
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import jupytext
import matplotlib
import pytest

from attnlib.errors import BadInput
from companion.book import notebook
from companion.book.style import as_svg
from companion.claims.model import load_claims
from companion.results import registry
from companion.results.config import override
from companion.results.recompute import RESULTS
from companion.results.result import Result
from companion.results.run import run
from notebooks.attend.temporal_share.drawing import readme_figure
from tests.notebooks.figure_builders import TINY

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


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_draws_its_committed_result(figure, tmp_path):
    held = json.loads(DIGESTS.read_text())
    found = drawn(figure, tmp_path)
    if held["matplotlib"] != matplotlib.__version__:
        pytest.skip(f"drawings are compared with matplotlib {held['matplotlib']}")
    assert found == held.get(figure), (
        f"look at {figure}; if it is right: python {Path(__file__).relative_to(ROOT)}"
    )


READ_TEXTS = ("dataset_sizes", "early_dynamics", "one_step", "scoring_functions")
BY_OUTCOME = ("sms_spam.by_mark.", "imdb.whole_test.")  # there for some networks, and for one set of data


# Settings that no figure can use, for reasons that its refusal tells.
REFUSED: dict[str, list[tuple[dict, str]]] = {
    "along_training": [
        ({"task": "copying_samples"}, "did you mean 'copying_sample'"),
        ({"least": 0.0}, "least is 0"),
        ({"steps": 0}, "steps is 0"),
    ],
    "context_bottleneck": [
        ({"shortest": 9, "longest": 8}, "shortest ≤ longest"),
        ({"probed": (2,)}, "at least 3"),
    ],
    "one_step": [({"pair": 3}, "there are 3, counted from 0"), ({"place": 20}, "has places from 0")],
    "order_words": [
        ({"task": "one_to_one"}, "order words are not known"),
        ({"task": "reordering_0"}, "no word that turns the order"),
        ({"pairs": 0}, "at least 1"),
        ({"width": 7}, "odd"),
    ],
    "path_length": [({"length": 2}, "at least 3")],
    "readout": [({"architecture": "VED"}, "VED")],
    "robustness": [
        ({"varied": "one_to_won"}, "one_to_one"),
        ({"length": "0.5,-1"}, "length is"),
        ({"weight_decay": "-1e-3"}, "weight_decay is"),
    ],
    "scoring_functions": [
        ({"named": "vaswani"}, "no named 'vaswani'"),
        ({"text": "multi30k_de_en"}, "did you mean 'multi30k_en_de'"),
        ({"scoring": "dot", "directions": "2"}, "use general, or directions=1"),
        ({"shortest": 4}, "shortest ≤ longest"),
    ],
    "source_reversal": [
        ({"aligned": "one_to_won"}, "did you mean 'one_to_one'"),
        ({"shortest": 2}, "3 ≤ shortest"),
    ],
    "state_components": [({"architecture": "VED", "task": "reversal"}, "no model is left")],
    "transformer_heads": [
        ({"anchored": "rotery"}, "did you mean 'rotary'"),
        ({"least_spread": -1.0}, "least_spread is"),
        ({"heads": 3}, "3 heads do not divide"),
    ],
    "what_a_task_teaches": [
        ({"seeds": 1}, "take 2 or more"),
        ({"heads": 3}, "3 heads do not divide"),
        ({"steps": 0}, "steps is 0"),
    ],
    "without_attention": [
        ({"length": "1"}, "at least 2"),
        ({"less": 0}, "above 0"),
        ({"words": 1}, "nothing to keep"),
    ],
    "word_alignment": [
        ({"task": "europarl_de_em"}, "europarl_de_en"),
        ({"iterations": 0}, "iterations is 0"),
    ],
    "your_own_model": [
        ({"like": "large"}, "Known: quick, paper"),
        ({"task": "scan"}, "no task 'scan'"),
        ({"samples": 0}, "samples is 0"),
    ],
}


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, own in REFUSED.items() for case in own])
def test_settings_that_make_no_sense_are_refused(name, case):
    given, message = case
    with pytest.raises(BadInput, match=message):
        override(registry.load(name).PROFILES["quick"], given)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_an_experiment_runs_at_a_tiny_size_and_has_what_its_claims_read(name, tmp_path, models):
    if name in READ_TEXTS and not os.environ.get("ATTNLIB_DATA"):
        pytest.skip("reads published texts: set ATTNLIB_DATA")
    module = registry.load(name)
    tiny = TINY.get(name) or getattr(module, "TINY", {})  # beside a figure that is new
    result = run(name, out=tmp_path, models=models, overrides=tiny)
    given = [given for profile in module.PROFILES.values() for given in vars(profile).items()]
    free = {
        own
        for field, value in given
        if isinstance(value, tuple)
        for v in value
        for own in (str(v), f"{field}_{v}")
    }
    keys = [key for claim in load_claims() if claim.experiment == name for key in claim.keys]
    asked = [key for key in dict.fromkeys(keys) if not key.startswith(BY_OUTCOME)]
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
