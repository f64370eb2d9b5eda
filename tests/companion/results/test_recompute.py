"""Which recomputed results have the numbers of those that are committed."""

from dataclasses import replace

import pytest

from companion.results.recompute import has_numbers_of
from companion.results.result import Result

RECORDS = [{"seed": 0, "slope": 1.5}, {"seed": 1}]
BEFORE = Result("toy", "paper", {"seeds": 2}, {"slope": 1.5}, {"networks": RECORDS}, {})


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param({"networks": RECORDS, "estimates": []}, id="a-further-table"),
        pytest.param({"networks": [RECORDS[0], {"seed": 1, "slope": None}]}, id="an-empty-column"),
    ],
)
def test_a_result_with_all_numbers_of_the_earlier_one_has_them(tables):
    assert has_numbers_of(replace(BEFORE, tables=tables), BEFORE)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"values": {"slope": 1.6}}, id="another-value"),
        pytest.param({"config": {"seeds": 3}}, id="another-setting"),
        pytest.param({"tables": {}}, id="a-table-less"),
        pytest.param({"tables": {"networks": RECORDS[::-1]}}, id="another-order"),
        pytest.param({"tables": {"networks": [RECORDS[0], {"seed": 1, "slope": 0.0}]}}, id="a-number-more"),
        pytest.param({"tables": {"networks": [{"seed": 0}, {"seed": 1}]}}, id="a-column-less"),
    ],
)
def test_a_result_that_differs_has_not(changes):
    assert not has_numbers_of(replace(BEFORE, **changes), BEFORE)
