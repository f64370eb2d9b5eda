"""The catalogue of the committed tables is as its command writes it, and names every table."""

import pandas as pd
import pytest

from companion.paths import PAPER
from companion.results import catalogue
from companion.results.result import Result


@pytest.fixture(scope="module")
def entries():
    return list(catalogue.entries())


@pytest.mark.slow
def test_the_committed_catalogue_is_todays(entries):
    way_out = "python -m companion.results.catalogue writes it"
    assert catalogue.PAGE.read_text(encoding="utf-8") == catalogue.markdown(entries), way_out


def test_every_table_is_listed_once(entries):
    files = [entry.file for entry in entries]
    assert sorted(files) == sorted(path.name for path in PAPER.glob("*.csv"))


def test_a_table_loads_with_the_columns_that_are_described(entries):
    for entry in entries:
        columns = pd.read_csv(PAPER / entry.file).columns
        assert columns.tolist() == [field["name"] for field in entry.fields], entry.file


@pytest.mark.slow
def test_numbers_are_within_the_range_of_their_column(entries):
    for entry in entries:
        frame = pd.read_csv(PAPER / entry.file)
        for field in entry.fields:
            ends = field.get("constraints", {})
            numbers = frame[field["name"]].dropna() if ends else pd.Series(dtype=float)
            within = numbers.between(ends.get("minimum", -1e300) - 1e-6, ends.get("maximum", 1e300) + 1e-6)
            assert within.all(), f"{entry.file}: {field['name']}"


def test_what_is_declared_of_columns_is_read_back(tmp_path):
    schema = {"row": "a network", "schema": {"fields": [{"name": "seed", "type": "integer"}]}}
    result = Result("x", "quick", {}, {}, {"networks": [{"seed": 0}]}, {}, schemas={"networks": schema})
    assert Result.load(result.save(tmp_path)).schemas == {"networks": schema}
