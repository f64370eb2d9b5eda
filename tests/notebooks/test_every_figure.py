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
from dataclasses import fields
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from attnlib.errors import NotMeasured
from companion.claims.model import load_claims
from companion.results import registry
from companion.results.config import BaseConfig, override
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
def test_no_drawing_has_a_fault(drawn):
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
        runs = [vars(measurement.spec.resolved) for measurement in planned]
        return {run[field] for run in runs for field in ("data", "dataset", "task") if field in run}

    assert reads() == set(by_rule)
    assert not all(data_set.startswith("known") for data_set in reads(**stop))


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_what_nobody_has_measured_has_no_number(name):
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
def test_a_tiny_run_has_what_its_claims_read(name, tmp_path, models):
    if name in PUBLISHED["texts"] and not os.environ.get("ATTNLIB_DATA"):
        pytest.skip("reads published texts: set ATTNLIB_DATA")
    result = run(tiny_request(name), out=tmp_path, models=models)
    keys = [key for claim in load_claims(ROOT / "claims") if claim.experiment == name for key in claim.keys]
    asked = [key for key in dict.fromkeys(keys) if not key.startswith(tuple(PUBLISHED["by_outcome"]))]
    stand_ins = stand_ins_of(name)
    assert [key for key in asked if not leads_somewhere(result.values, key.split("."), stand_ins)] == []


def stand_ins_of(name: str) -> dict[str, set[str]]:
    """Return, for each value of a setting that a profile has, the values of that setting in a tiny run.

    A value is at a key as it is, or behind the name of its setting. Where a setting is empty in the tiny run,
    others of its type stand in.
    """
    of_tiny_run = tiny_values(tiny(name))
    stand_ins: dict[str, set[str]] = {}
    for profile in registry.load(name).PROFILES.values():
        for setting, values in vars(profile).items():
            for value in values if isinstance(values, tuple) else ():
                stand_ins.setdefault(str(value), set()).update(map(str, of_tiny_run[setting]))
                with_name = {f"{setting}_{other}" for other in of_tiny_run[setting]}
                stand_ins.setdefault(f"{setting}_{value}", set()).update(with_name)
    return stand_ins


def tiny_values(config: BaseConfig) -> dict[str, tuple]:
    """Return values of each setting that may have several; of an empty one those of others of its type."""
    settings = vars(config)
    types = {field.name: field.type for field in fields(config)}
    several = [name for name, value in settings.items() if isinstance(value, tuple)]
    values = {}
    for name in several:
        alike = [settings[other] for other in several if types[other] == types[name]]
        values[name] = settings[name] or tuple(chain(*alike))
    return values


def leads_somewhere(values: object, names: list[str], stand_ins: dict[str, set[str]]) -> bool:
    """Return True if a key leads to a value, or would if a tiny run had all values of its settings."""
    if not names:
        return True
    if not isinstance(values, dict):
        return False
    name, *rest = names
    places = [name] if name in values else sorted(stand_ins.get(name, set()) & values.keys())
    return any(leads_somewhere(values[place], rest, stand_ins) for place in places)


@pytest.mark.parametrize(
    ("key", "leads"),
    [
        pytest.param("scan.share", True, id="there"),
        pytest.param("reversal.share", True, id="a_task_that_a_tiny_run_leaves_out"),
        pytest.param("reversal.shares", False, id="a_name_that_is_not_there"),
        pytest.param("AED.share", False, id="a_value_of_another_setting"),
        pytest.param("scan.share.low", False, id="beyond_a_number"),
    ],
)
def test_only_a_value_of_the_same_setting_stands_in(key, leads):
    stand_ins = {"scan": {"scan"}, "reversal": {"scan"}, "AED": {"AED"}}
    assert leads_somewhere({"scan": {"share": 0.5}}, key.split("."), stand_ins) is leads


@pytest.mark.slow
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
