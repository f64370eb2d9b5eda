"""The published tables on the page of agreement: where ours is, what is said beside it, how symbols read."""

import re

import pytest

from companion.book.markup import plain
from companion.claims.estimates import Estimate
from companion.claims.model import load_papers
from companion.claims.scorecard import answers, status
from companion.claims.verdicts import Verdict
from notebooks.learn.agreement.published_table import published_table
from tests.companion.claims.claims_builders import READINGS, RULE, of, written

EXACT = {"kind": "tolerance", "absolute": 0}
BOUND = {"kind": "inequality", "relation": ">=", "threshold": 0}


@pytest.mark.parametrize(
    ("judge", "verdict", "ours", "shown"),
    [
        (RULE["judge"], Verdict.UNDECIDED, Estimate(82.25, 77.0, 87.5, 3), "82.2 [77, 88] ?"),
        (BOUND, Verdict.REPRODUCED, Estimate(0.0), "✓"),  # how far a size lies inside bounds is no size
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(84.0), "84 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(84.5), "84.5 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(5130.0), "5,130 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(1234567.0), "1,234,567 ✗"),
    ],
)
def test_ours_is_below_the_printed_number_in_the_colour_of_its_verdict(tmp_path, judge, verdict, ours, shown):
    paper = written(tmp_path, RULE | {"judge": judge})
    table = published_table(paper.tables, "2", [of(paper.claims[0], verdict, ours)])
    assert f'| SST | 84<br><span class="verdict {verdict.css_class}">{shown}</span> |' in table
    assert "| IMDB | 90 |" in table


def test_another_reading_has_a_row_of_its_own_and_ours_its_asterisk(tmp_path):
    paper = written(tmp_path, RULE | READINGS)
    first, other = paper.claims
    rows = [
        of(first, Verdict.UNDECIDED, Estimate(82.25, 77.0, 87.5, 3)),
        of(other, Verdict.NOT_REPRODUCED, Estimate(61.0), starred=True),
    ]
    table = published_table(paper.tables, "2", rows)
    assert '| SST | 84<br><span class="verdict undecided">82.2 [77, 88] ?</span> |' in table
    assert '| *labels as the text says* | <span class="verdict not-reproduced">61.0\\* ✗</span> |' in table
    assert "Starred (\\*)" in table
    assert status(paper.tables.table("2")[1], answers(rows)) is Verdict.UNDECIDED  # the first reading counts
    assert "Starred" not in published_table(paper.tables, "2", rows[:1])
    alone = published_table(paper.tables, "2", [of(first, Verdict.NOT_RUN)])
    assert "| SST | 84 | <span" in alone
    assert "Ours is below" not in alone


@pytest.mark.parametrize("name", ["2", "3", "4", "5", "6", "7", "8", "9", "10"])
def test_a_table_holds_every_number_that_is_printed(pytestconfig, name):
    (tables,) = (own.tables for own in load_papers(pytestconfig.rootpath / "claims") if own.tables.entries)
    cells = re.split(r" ?\| ?", published_table(tables, name, []))
    shown = [cell.split("<br>")[0].removesuffix("\\*") for cell in cells]
    for value in {entry.value for entry in tables.table(name)}:
        assert shown.count(plain(value)) == sum(entry.value == value for entry in tables.table(name)), value
