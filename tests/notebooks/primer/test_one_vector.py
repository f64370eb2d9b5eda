"""What an error costs, the lengths that a source lets one guess, and dates, worked by hand."""

import datetime
from functools import partial

import pytest

from attnlib.models.corpus import Corpus
from notebooks.primer.one_vector.experiment import after_error, early_over_late, guessed_lengths
from notebooks.primer.one_vector.tasks.dates import write
from tests.attnlib.refusals import assert_refused
from tests.notebooks.worked import assert_answer

EARLY = {"words_after": 4, "wrong_after": 1.0, "wrong_after_right": 0.25}
MIDDLE = {"words_after": 2, "wrong_after": 0.5, "wrong_after_right": 0}
END = {"words_after": 1, "wrong_after": 0.5, "wrong_after_right": 0.25}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Over the right word, weighted by what follows: (4 · 0.75 + 2 · 0.5 + 1 · 0.25)/7.
        pytest.param(([EARLY, MIDDLE, END],), 17 / 28, id="weighted_by_what_follows")
    ],
)
def test_after_error_by_hand(given, expected):
    assert_answer(after_error(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(([EARLY, MIDDLE, END],), 0.5, id="early_costs_more"),
        pytest.param(([END, MIDDLE, EARLY],), -0.5, id="late_costs_more"),
    ],
)
def test_early_over_late_by_hand(given, expected):
    assert_answer(early_over_late(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # From the source's length alone; of three words nothing is known.
        pytest.param(
            (
                Corpus.from_ids([[4], [4], [4], [4, 5], [4, 5]], [[4], [4, 5], [4, 5], [4, 5, 6], [4, 5, 6]]),
                Corpus.from_ids([[5], [5, 4], [4, 4, 4]], [[4], [4], [4]]),
            ),
            [2, 3, 2],
            id="from_the_source_alone",
        )
    ],
)
def test_guessed_lengths_by_hand(given, expected):
    assert_answer(guessed_lengths(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (datetime.date(1998, 3, 3), "DAY MONTHS YEAR"),
            "did you mean 'DAY MONTH YEAR'",
            id="misspelt form",
        )
    ],
)
def test_write_refuses(given, message):
    assert_refused(partial(write, *given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param((datetime.date(1899, 12, 31), "DAY MONTH YEAR"), id="day before the first"),
        pytest.param((datetime.date(2100, 1, 1), "DAY MONTH YEAR"), id="day after the last"),
    ],
)
def test_a_date_of_another_century_is_refused(given):
    assert_refused(partial(write, *given), "from 1900-01-01 to 2099-12-31")
