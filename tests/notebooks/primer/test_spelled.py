"""Dates and number words: worked by hand, read back by another rule, and how they are drawn."""

from datetime import date, datetime

import numpy as np
import pytest

from attnlib.errors import BadInput
from notebooks.primer.one_vector.dates import FORMS, dates, write
from notebooks.shared.number_words import number_words, spell
from tests.companion.data.data_builders import pairs

# -- dates ---------------------------------------------------------------------------------------------------

# What each form is to datetime, once endings are dropped and digits joined.
PATTERNS = (
    "%d %B %Y", "%B %d , %Y", "%A the %d of %B %Y", "%A , %B %d , %Y", "the %d of %B , %Y", "%Y , %B %d",
    "%a %d %b %Y", "%b %d , %Y", "%m / %d / %Y", "%d . %m . %Y",
)  # fmt: skip


def read_date(words):
    """All dates that a source can mean, by datetime."""
    joined = ""
    for word in words:
        if word not in ("st", "nd", "rd", "th"):
            joined += word if word.isdigit() and joined[-1:].isdigit() else " " + word
    found = set()
    for pattern in PATTERNS:
        try:
            found.add(datetime.strptime(joined.strip(), pattern).date())
        except ValueError:
            continue
    return found


@pytest.mark.parametrize(
    # For each of the ten places of the target its source word, - where it has none.
    ("iso", "form", "words", "places"),
    [
        ("1998-03-03", "DAY MONTH YEAR", "3 march 1 9 9 8", "2345-11-00"),
        ("1998-03-29", "DAY MONTH YEAR", "2 9 march 1 9 9 8", "3456-22-01"),
        ("1998-03-03", "MONTH DAY TH , YEAR", "march 3 rd , 1 9 9 8", "4567-00-11"),
        ("1998-03-03", "WEEKDAY the DAY TH of MONTH YEAR", "tuesday the 3 rd of march 1 9 9 8", "6789-55-22"),
        ("1998-03-03", "the DAY TH of MONTH , YEAR", "the 3 rd of march , 1 9 9 8", "6789-44-11"),
        ("2000-02-29", "YEAR , MONTH DAY", "2 0 0 0 , february 2 9", "0123-55-67"),
        ("2001-09-11", "WEEKDAY , MONTH DAY , YEAR", "tuesday , september 1 1 , 2 0 0 1", "6789-22-34"),
        ("1969-07-20", "SHORT_WEEKDAY DAY SHORT_MONTH YEAR", "sun 2 0 jul 1 9 6 9", "4567-33-12"),
        ("1945-05-08", "SHORT_MONTH DAY , YEAR", "may 8 , 1 9 4 5", "3456-00-11"),
        ("1998-03-29", "MM / DD / YEAR", "0 3 / 2 9 / 1 9 9 8", "6789-01-34"),
        ("1998-03-29", "DAY . M . YEAR", "2 9 . 3 . 1 9 9 8", "5678-33-01"),
        ("1998-12-03", "DAY . M . YEAR", "3 . 1 2 . 1 9 9 8", "5678-23-00"),
    ],
)
def test_dates_worked_by_hand(iso, form, words, places):
    source, target, links = write(date.fromisoformat(iso), form)
    assert " ".join(source) == words
    assert "".join(target) == iso
    assert links == {(i, int(place)) for i, place in enumerate(places) if place != "-"}


def test_the_endings_of_a_month():
    endings = [write(date(2001, 1, day), "MONTH DAY TH , YEAR")[0][-6] for day in range(1, 32)]
    assert " ".join(endings) == " ".join(["st nd rd", *["th"] * 17, "st nd rd", *["th"] * 7, "st"])


@pytest.mark.parametrize("form", FORMS)
def test_every_month_and_weekday_is_read_back_by_datetime_and_means_nothing_else(form):
    for ordinal in range(date(2023, 12, 20).toordinal(), date(2025, 1, 10).toordinal()):
        day = date.fromordinal(ordinal)
        source, target, _ = write(day, form)
        assert read_date(source) == {day}
        assert "".join(target) == f"{day:%Y-%m-%d}"


def test_drawn_dates_mean_their_targets_and_forms_and_lengths_are_all_met():
    task = dates(n_train=2000, n_held_out=200)
    drawn = pairs(task, "train")
    for source, target in drawn[:200] + pairs(task, "held_out"):
        assert read_date(source) == {date.fromisoformat("".join(target))}
    for links in task.gold:
        assert sorted(i for i, _ in links) == [0, 1, 2, 3, 5, 6, 8, 9]
    assert {int("".join(target[:4])) for _, target in drawn} == set(range(1900, 2100))
    assert set(task.train.source_lengths) == set(range(6, 12))
    slashed = sum("/" in source for source, _ in drawn)
    assert abs(slashed - 200) < 5 * np.sqrt(2000 * 1 / 10 * 9 / 10)
    # Digits, three marks, "the", "of", four endings, and 12 and 7 names long and short ("may" is both).
    assert len(task.source_vocabulary) == 4 + 10 + 3 + 2 + 4 + 2 * (12 + 7) - 1


# -- number words --------------------------------------------------------------------------------------------

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORTH = {word: n for n, word in enumerate(UNITS)} | {word: 10 * n for n, word in enumerate(TENS, 2)}


def read_number(words):
    """The value of number words, by the rule of a listener: add, and multiply when a scale is heard."""
    total = group = 0
    for word in words:
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million"):
            total, group = total + group * {"thousand": 1000, "million": 10**6}[word], 0
        else:
            group += WORTH[word]
    return total + group


@pytest.mark.parametrize(
    # Words and, for each, the digits it comes from (places from the left); worked with pen and paper.
    ("number", "words", "places"),
    [
        (0, "zero", [[0]]),
        (7, "seven", [[0]]),
        (13, "thirteen", [[0, 1]]),
        (40, "forty", [[0]]),
        (42, "forty two", [[0], [1]]),
        (101, "one hundred one", [[0], [0], [2]]),
        (115, "one hundred fifteen", [[0], [0], [1, 2]]),
        (1000, "one thousand", [[0], [0]]),
        (4217, "four thousand two hundred seventeen", [[0], [0], [1], [1], [2, 3]]),
        (42042, "forty two thousand forty two", [[0], [1], [1], [3], [4]]),
        (300000, "three hundred thousand", [[0], [0], [2]]),
        (12000012, "twelve million twelve", [[0, 1], [1], [6, 7]]),
        (500001000, "five hundred million one thousand", [[0], [0], [2], [5], [5]]),
        (999000090, "nine hundred ninety nine million ninety", [[0], [0], [1], [2], [2], [7]]),
    ],
)
def test_numbers_worked_by_hand(number, words, places):
    said, links = spell(number)
    assert " ".join(said) == words
    assert links == {(i, place) for i, own in enumerate(places) for place in own}
    assert read_number(said) == number


def test_every_number_below_ten_thousand_is_read_back_by_another_rule_and_said_in_its_own_way():
    said = [spell(number)[0] for number in range(10_000)]
    assert [read_number(words) for words in said] == list(range(10_000))
    assert len(set(said)) == 10_000


def test_drawn_numbers_are_their_words_and_gold_links_each_to_digits_that_it_says():
    task = number_words(max_digits=9, n_train=300, n_held_out=300)
    for digits, words in pairs(task, "train"):
        assert str(read_number(words)) == "".join(digits)
    for (digits, words), links in zip(pairs(task, "held_out"), task.gold, strict=True):
        assert str(read_number(words)) == "".join(digits)
        assert {i for i, _ in links} == set(range(len(words)))
        for i, word in enumerate(words):
            after = [len(digits) - 1 - place for j, place in sorted(links) if j == i]
            if word in ("thousand", "million"):
                assert after == [{"thousand": 3, "million": 6}[word]]
            elif word == "hundred":
                assert after[0] % 3 == 2
            else:
                # The digits linked, each at its place in the group, add up to the word.
                own = sum(int(digits[-1 - place]) * 10 ** (place % 3) for place in after)
                assert WORTH[word] == (own // 100 if after[0] % 3 == 2 else own)


def test_digit_counts_share_the_samples_as_far_as_there_are_numbers():
    task = number_words(n_train=3000, n_held_out=600)
    # A fifth of the 10 and of the 90 is held out; what they leave is shared by the other five.
    assert np.bincount(task.held_out.source_lengths).tolist() == [0, 2, 18, 116, 116, 116, 116, 116]
    assert np.bincount(task.train.source_lengths).tolist() == [0, 8, 72, 584, 584, 584, 584, 584]
    lengths = task.train.source_lengths  # short numbers do not stand first
    assert abs(lengths[:1500].mean() - lengths[1500:].mean()) < 0.5
    assert task.target_vocabulary.words[4:] == (*WORTH, "hundred", "thousand", "million")


def test_all_numbers_can_be_used():
    every = number_words(max_digits=3, n_train=800, n_held_out=200)
    numbers = [int("".join(digits)) for part in ("train", "held_out") for digits, _ in pairs(every, part)]
    assert sorted(numbers) == list(range(1000))


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        (write, (date(1998, 3, 3), "DAY MONTHS YEAR"), "did you mean 'DAY MONTH YEAR'"),
        (write, (date(1899, 12, 31), FORMS[0]), "from 1900-01-01 to 2099-12-31"),
        (write, (date(2100, 1, 1), FORMS[0]), "from 1900-01-01 to 2099-12-31"),
        (spell, (-1,), "from 0 to 999,999,999"),
        (spell, (10**9,), "from 0 to 999,999,999"),
    ],
)
def test_what_cannot_be_said_is_refused(rule, given, message):
    with pytest.raises(BadInput, match=message):
        rule(*given)
