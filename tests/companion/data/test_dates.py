"""Dates: worked by hand, read back by datetime, and how the parts are drawn."""

from datetime import date, datetime

import numpy as np
import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data.dates import FORMS, dates, write

# Form, source and, for each of the ten places of the target, its source word (- where it has none).
WORKED = [
    ("1998-03-03", "DAY MONTH YEAR", "3 march 1 9 9 8", "2345-11-00"),
    ("1998-03-29", "DAY MONTH YEAR", "2 9 march 1 9 9 8", "3456-22-01"),
    ("1998-03-03", "MONTH DAY TH , YEAR", "march 3 rd , 1 9 9 8", "4567-00-11"),
    ("1998-03-03", "the DAY TH of MONTH , YEAR", "the 3 rd of march , 1 9 9 8", "6789-44-11"),
    ("2000-02-29", "YEAR , MONTH DAY", "2 0 0 0 , february 2 9", "0123-55-67"),
    ("2001-09-11", "WEEKDAY , MONTH DAY , YEAR", "tuesday , september 1 1 , 2 0 0 1", "6789-22-34"),
    ("1969-07-20", "SHORT_WEEKDAY DAY SHORT_MONTH YEAR", "sun 2 0 jul 1 9 6 9", "4567-33-12"),
    ("1945-05-08", "SHORT_MONTH DAY , YEAR", "may 8 , 1 9 4 5", "3456-00-11"),
    ("1998-03-29", "MM / DD / YEAR", "0 3 / 2 9 / 1 9 9 8", "6789-01-34"),
    ("1998-03-29", "DAY . M . YEAR", "2 9 . 3 . 1 9 9 8", "5678-33-01"),
    ("1998-12-03", "DAY . M . YEAR", "3 . 1 2 . 1 9 9 8", "5678-23-00"),
]
# What each form is to datetime, once endings are dropped and digits joined.
PATTERNS = dict(
    zip(
        FORMS,
        [
            "%d %B %Y",
            "%B %d , %Y",
            "%A the %d of %B %Y",
            "%A , %B %d , %Y",
            "the %d of %B , %Y",
            "%Y , %B %d",
            "%a %d %b %Y",
            "%b %d , %Y",
            "%m / %d / %Y",
            "%d . %m . %Y",
        ],
        strict=True,
    )
)
ENDINGS = {"st", "nd", "rd", "th"}


def read(words):
    """All dates that a source can mean, by datetime."""
    joined = ""
    for word in words:
        if word not in ENDINGS:
            joined += word if word.isdigit() and joined[-1:].isdigit() else " " + word
    found = set()
    for pattern in PATTERNS.values():
        try:
            found.add(datetime.strptime(joined.strip(), pattern).date())
        except ValueError:
            continue
    return found


def pairs(task, corpus):
    for i in range(len(corpus)):
        yield (
            task.source_vocabulary.decode(corpus.source(i)),
            "".join(task.target_vocabulary.decode(corpus.target(i))),
        )


@pytest.mark.parametrize(("iso", "form", "words", "places"), WORKED)
def test_dates_worked_by_hand(iso, form, words, places):
    source, target, links = write(date.fromisoformat(iso), form)
    assert " ".join(source) == words
    assert "".join(target) == iso
    assert links == {(i, int(place)) for i, place in enumerate(places) if place != "-"}


def test_a_form_with_all_its_words():
    source, _, links = write(date(1998, 3, 3), "WEEKDAY the DAY TH of MONTH YEAR")
    assert " ".join(source) == "tuesday the 3 rd of march 1 9 9 8"
    assert links == {(0, 6), (1, 7), (2, 8), (3, 9), (5, 5), (6, 5), (8, 2), (9, 2)}


def test_the_endings_of_a_month():
    endings = [write(date(2001, 1, day), "MONTH DAY TH , YEAR")[0][-6] for day in range(1, 32)]
    assert " ".join(endings[:13]) == "st nd rd th th th th th th th th th th"
    assert " ".join(endings[13:]) == "th th th th th th th st nd rd th th th th th th th st"


@pytest.mark.parametrize("form", FORMS)
def test_every_month_and_weekday_is_read_back_by_datetime_and_means_nothing_else(form):
    for ordinal in range(date(2023, 12, 20).toordinal(), date(2025, 1, 10).toordinal()):
        day = date.fromordinal(ordinal)
        source, target, _ = write(day, form)
        assert read(source) == {day}
        assert "".join(target) == f"{day:%Y-%m-%d}"


def test_weekdays_are_those_of_the_calendar():
    """Counted from 1 January 1900, a Monday."""
    names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    first = date(1900, 1, 1)
    for passed in range(0, 73_049, 997):
        day = date.fromordinal(first.toordinal() + passed)
        assert write(day, "WEEKDAY , MONTH DAY , YEAR")[0][0] == names[passed % 7]
        assert write(day, "SHORT_WEEKDAY DAY SHORT_MONTH YEAR")[0][0] == names[passed % 7][:3]


def test_drawn_sources_mean_their_targets_and_gold_links_every_digit_once():
    task = dates(n_train=200, n_held_out=200)
    for corpus in (task.train, task.held_out):
        for source, target in pairs(task, corpus):
            assert read(source) == {date.fromisoformat(target)}
    assert len(task.gold) == 200
    for (source, target), links in zip(pairs(task, task.held_out), task.gold, strict=True):
        assert sorted(i for i, _ in links) == [0, 1, 2, 3, 5, 6, 8, 9]
        for i, place in links:
            alone = not (source[place - 1 : place] + source[place + 1 : place + 2])[0].isdigit()
            assert source[place] == target[i] or source[place].isalpha() or alone


def test_years_forms_and_lengths_are_all_met():
    task = dates(n_train=4000, n_held_out=1)
    assert {int(target[:4]) for _, target in pairs(task, task.train)} == set(range(1900, 2100))
    lengths = np.bincount(task.train.source_lengths)
    assert lengths[:6].sum() == 0
    assert (lengths[6:] > 0).all()
    assert len(lengths) == 12
    assert (task.train.target_lengths == 10).all()
    slashed = sum("/" in source for source, _ in pairs(task, task.train))
    assert abs(slashed - 400) < 5 * np.sqrt(4000 * 1 / 10 * 9 / 10)


def test_held_out_dates_are_all_different_and_never_trained_on_in_any_form():
    # Of 2000 dates drawn without care some 300 would be held-out ones.
    task = dates(n_train=2000, n_held_out=12_000)
    held_out = {task.held_out.target(i).tobytes() for i in range(len(task.held_out))}
    assert len(held_out) == 12_000
    assert not held_out & {task.train.target(i).tobytes() for i in range(len(task.train))}


def test_the_vocabularies_are_closed():
    task = dates(n_train=1, n_held_out=1)
    assert [task.source_vocabulary.open, task.target_vocabulary.open] == [False, False]
    assert set(task.target_vocabulary.words[4:]) == set("0123456789-")
    # Digits, three marks, "the", "of", four endings, and 12 and 7 names long and short ("may" is both).
    assert len(task.source_vocabulary) == 4 + 10 + 3 + 2 + 4 + 2 * (12 + 7) - 1


def test_held_out_samples_do_not_depend_on_the_size_of_the_training_set():
    small, large = dates(n_train=10, n_held_out=50), dates(n_train=300, n_held_out=50)
    assert np.array_equal(small.held_out.source_ids, large.held_out.source_ids)
    assert small.gold == large.gold


def test_the_seed_decides():
    one, same, other = (dates(n_train=20, n_held_out=20, seed=seed) for seed in (1, 1, 2))
    assert list(pairs(one, one.train)) == list(pairs(same, same.train)) != list(pairs(other, other.train))
    assert list(pairs(one, one.held_out)) != list(pairs(other, other.held_out))


@pytest.mark.parametrize("options", [{"n_train": 0}, {"n_held_out": 0}, {"n_held_out": 36_525}, {"seed": -1}])
def test_sizes_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput, match=r"dates needs n_train ≥ 1, 1 ≤ n_held_out ≤ 36524"):
        dates(**options)


def test_an_unknown_form_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'DAY MONTH YEAR'"):
        write(date(1998, 3, 3), "DAY MONTHS YEAR")


@pytest.mark.parametrize("day", [date(1899, 12, 31), date(2100, 1, 1)])
def test_a_date_outside_the_years_is_refused(day):
    with pytest.raises(BadInput, match="from 1900-01-01 to 2099-12-31"):
        write(day, FORMS[0])
