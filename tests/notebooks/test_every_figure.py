"""Every figure shows its committed result; every experiment runs at a tiny size and has what claims read.

``python tests/notebooks/test_every_figure.py`` writes the numbers of all tables anew: look at what changed.
``python tests/notebooks/test_every_figure.py FOLDER`` leaves every drawing there as SVG, so that those of two
commits can be compared by ``diff -r``.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from attnlib.errors import NotMeasured
from companion.claims.model import load_claims
from companion.results import registry
from companion.results.config import override
from companion.results.run import computed, run
from notebooks.attend.temporal_share.drawing import readme_figure
from tests.notebooks.figure_builders import Given, tiny, tiny_request
from tests.notebooks.figure_pages import FIGURES, RESULTS, ROOT, numbers_of_tables, sheet_of
from tests.tables import beside

TABLES = Path(__file__).with_name("tables.json")


@pytest.fixture(scope="module", params=FIGURES)
def drawn(request, tmp_path_factory):
    """The name of a figure, the page with its drawings, and what its cells show."""
    page, shown = sheet_of(request.param, tmp_path_factory.mktemp("files"))
    yield request.param, page, shown
    plt.close("all")


@pytest.mark.slow
def test_each_drawing_has_marks_and_words_and_nothing_cut_off(drawn):
    _, page, _ = drawn
    faults = {drawing.name: drawing.faults() for drawing in page.drawings}
    assert faults == {drawing.name: [] for drawing in page.drawings}


@pytest.mark.slow
def test_tables_have_the_numbers_of_the_committed_result(drawn):
    figure, _, shown = drawn
    assert numbers_of_tables(shown) == json.loads(TABLES.read_text())[figure]


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


def main(folder: str = "") -> None:
    """Write the numbers of all tables anew, or leave all drawings as SVG in a folder."""
    tables = {}
    for figure in FIGURES:
        page, shown = sheet_of(figure, ROOT)
        tables[figure] = numbers_of_tables(shown)
        for drawing in page.drawings if folder else ():
            path = Path(folder) / figure / f"{drawing.name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(drawing.svg, encoding="utf-8")
        plt.close("all")
    if not folder:
        TABLES.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
