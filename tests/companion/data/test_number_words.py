"""Numbers in words: worked by hand, read back by another rule, and how the parts are drawn."""

import re

import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.data.number_words import number_words, spell

# Words and, for each, the digits it comes from (places from the left); worked with pen and paper.
WORKED = [
    (0, "zero", [[0]]),
    (7, "seven", [[0]]),
    (10, "ten", [[0, 1]]),
    (13, "thirteen", [[0, 1]]),
    (40, "forty", [[0]]),
    (42, "forty two", [[0], [1]]),
    (100, "one hundred", [[0], [0]]),
    (101, "one hundred one", [[0], [0], [2]]),
    (115, "one hundred fifteen", [[0], [0], [1, 2]]),
    (1000, "one thousand", [[0], [0]]),
    (1017, "one thousand seventeen", [[0], [0], [2, 3]]),
    (4217, "four thousand two hundred seventeen", [[0], [0], [1], [1], [2, 3]]),
    (42042, "forty two thousand forty two", [[0], [1], [1], [3], [4]]),
    (300000, "three hundred thousand", [[0], [0], [2]]),
    (1000000, "one million", [[0], [0]]),
    (12000012, "twelve million twelve", [[0, 1], [1], [6, 7]]),
    (500001000, "five hundred million one thousand", [[0], [0], [2], [5], [5]]),
    (
        999999999,
        "nine hundred ninety nine million nine hundred ninety nine thousand nine hundred ninety nine",
        [[0], [0], [1], [2], [2], [3], [3], [4], [5], [5], [6], [6], [7], [8]],
    ),
]
WORTH = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip


def read(words):
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


def pairs(task, corpus):
    for i in range(len(corpus)):
        yield (
            "".join(task.source_vocabulary.decode(corpus.source(i))),
            task.target_vocabulary.decode(corpus.target(i)),
        )


@pytest.mark.parametrize(("number", "words", "places"), WORKED)
def test_numbers_worked_by_hand(number, words, places):
    said, links = spell(number)
    assert " ".join(said) == words
    assert links == {(i, place) for i, own in enumerate(places) for place in own}
    assert read(said) == number


def test_every_number_below_ten_thousand_is_read_back_by_another_rule_and_said_in_its_own_way():
    said = [spell(number)[0] for number in range(10_000)]
    assert [read(words) for words in said] == list(range(10_000))
    assert len(set(said)) == 10_000


def test_drawn_numbers_are_their_words():
    task = number_words(max_digits=9, n_train=300, n_held_out=300)
    for corpus in (task.train, task.held_out):
        for digits, words in pairs(task, corpus):
            assert str(read(words)) == digits


def test_gold_links_each_word_to_digits_that_it_says():
    task = number_words(max_digits=9, n_train=1, n_held_out=300)
    assert len(task.gold) == 300
    for (digits, words), links in zip(pairs(task, task.held_out), task.gold, strict=True):
        assert {i for i, _ in links} == set(range(len(words)))
        for i, word in enumerate(words):
            places = sorted(place for j, place in links if j == i)
            after = len(digits) - 1 - places[-1]
            if word in ("thousand", "million"):
                assert (after, len(places)) == ({"thousand": 3, "million": 6}[word], 1)
            elif word == "hundred":
                assert after % 3 == 2
            elif digits != "0":
                # The digits linked, each at its place in the group, add up to the word.
                own = sum(int(digits[place]) * 10 ** ((len(digits) - 1 - place) % 3) for place in places)
                assert WORTH[word] == (own // 100 if after % 3 == 2 else own)
    assert {place for links in task.gold for _, place in links} == set(range(9))


def test_digit_counts_share_the_samples_as_far_as_there_are_numbers():
    task = number_words(n_train=3000, n_held_out=600)
    # A fifth of the 10 and of the 90 is held out; what they leave is shared by the other five.
    assert np.bincount(task.held_out.source_lengths).tolist() == [0, 2, 18, 116, 116, 116, 116, 116]
    assert np.bincount(task.train.source_lengths).tolist() == [0, 8, 72, 584, 584, 584, 584, 584]


def test_short_numbers_do_not_stand_first():
    lengths = number_words(n_train=2000, n_held_out=1).train.source_lengths
    assert abs(lengths[:1000].mean() - lengths[1000:].mean()) < 0.5


def test_first_digits_and_last_digits_are_uniform():
    task = number_words(min_digits=7, n_train=5000, n_held_out=1)
    first = np.bincount([int(digits[0]) for digits, _ in pairs(task, task.train)])
    last = np.bincount([int(digits[-1]) for digits, _ in pairs(task, task.train)])
    assert first[0] == 0
    assert np.abs(first[1:] - 5000 / 9).max() < 5 * np.sqrt(5000 / 9)
    assert np.abs(last - 500).max() < 5 * np.sqrt(500)


def test_no_number_comes_twice_even_when_all_are_used():
    task = number_words(max_digits=3, n_train=800, n_held_out=200)
    numbers = [int(digits) for part in (task.train, task.held_out) for digits, _ in pairs(task, part)]
    assert sorted(numbers) == list(range(1000))


def test_the_vocabularies_are_closed_and_do_not_depend_on_the_digits():
    short, long = number_words(max_digits=3, n_train=50, n_held_out=5), number_words(n_train=50, n_held_out=5)
    assert short.source_vocabulary == long.source_vocabulary
    assert short.target_vocabulary == long.target_vocabulary
    assert [long.source_vocabulary.open, long.target_vocabulary.open] == [False, False]
    assert set(long.source_vocabulary.words[4:]) == set("0123456789")
    assert set(long.target_vocabulary.words[4:]) == {*WORTH, "hundred", "thousand", "million"}


def test_held_out_numbers_do_not_depend_on_the_size_of_the_training_set():
    small, large = number_words(n_train=10, n_held_out=50), number_words(n_train=1000, n_held_out=50)
    assert np.array_equal(small.held_out.source_ids, large.held_out.source_ids)
    assert small.gold == large.gold


def test_the_seed_decides():
    one, same, other = (number_words(n_train=50, n_held_out=50, seed=seed) for seed in (1, 1, 2))
    assert list(pairs(one, one.train)) == list(pairs(same, same.train)) != list(pairs(other, other.train))
    assert list(pairs(one, one.held_out)) != list(pairs(other, other.held_out))


@pytest.mark.parametrize(
    "options",
    [
        {"min_digits": 0},
        {"max_digits": 10},
        {"min_digits": 5, "max_digits": 4},
        {"n_train": 0},
        {"n_held_out": 0},
        {"seed": -1},
    ],
)
def test_sizes_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput, match="number_words needs 1 ≤ min_digits"):
        number_words(**options)


def test_more_samples_than_numbers_are_refused():
    with pytest.raises(
        BadInput, match=re.escape("1 to 2 digits, at most 20 can be held out; got n_held_out=21")
    ):
        number_words(max_digits=2, n_train=1, n_held_out=21)
    with pytest.raises(BadInput, match=re.escape("1 to 2 digits, 80 are not held out; got n_train=81")):
        number_words(max_digits=2, n_train=81, n_held_out=20)


@pytest.mark.parametrize("number", [-1, 10**9])
def test_a_number_that_cannot_be_said_is_refused(number):
    with pytest.raises(BadInput, match="from 0 to 999,999,999"):
        spell(number)
