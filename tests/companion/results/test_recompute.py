"""Whether a recomputed result has the numbers of an earlier one."""

from dataclasses import replace

import pytest

from companion.results.recompute import has_numbers_of
from companion.results.result import Result

ROWS = [{"step": 0, "on_word": 0.5}, {"step": 0}]
BEFORE = Result("coin", "paper", {"seeds": 1}, {"gain": 0.25}, {"courses": ROWS}, data={})


def test_further_tables_change_no_number():
    assert has_numbers_of(replace(BEFORE, tables=BEFORE.tables | {"networks": ROWS}), BEFORE)


def test_an_empty_column_is_as_one_that_a_row_lacks():
    filled = [ROWS[0], {"step": 0, "on_word": None}]
    assert has_numbers_of(replace(BEFORE, tables={"courses": filled}), BEFORE)


@pytest.mark.parametrize(
    "changes",
    [
        {"values": {"gain": 0.5}},
        {"values": {"gain": 0.25, "loss": 1.0}},
        {"config": {"seeds": 2}},
        {"tables": {}},
        {"tables": {"courses": ROWS[::-1]}},
        {"tables": {"courses": [ROWS[0], {"step": 0, "on_word": 0.0}]}},
    ],
    ids=["a value", "a new key", "a setting", "a table gone", "rows in another order", "a number in a row"],
)
def test_other_numbers_are_seen(changes):
    assert not has_numbers_of(replace(BEFORE, **changes), BEFORE)
