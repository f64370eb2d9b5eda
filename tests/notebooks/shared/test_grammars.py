"""Synthetic tasks: by hand, against what was published or another rule, and how samples are drawn."""

import re
from contextlib import suppress
from datetime import date, datetime
from functools import partial

import numpy as np
import pytest
import yaml
from transformers.models.whisper.english_normalizer import EnglishNumberNormalizer

from companion.data.registry import load
from companion.data.sources import dataset, locate
from companion.data.text import read_lines
from notebooks.primer.one_vector.tasks.dates import FORMS, dates, write
from notebooks.shared.tasks import lexicon
from notebooks.shared.tasks import synthetic as orders
from notebooks.shared.tasks.synthetic import (
    commands,
    interpret,
    number_words,
    simple_commands,
    spell,
    translate,
)
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import available, pairs, sources
from tests.tables import beside

PARTS = ("train", "held_out")

WORKED = beside(__file__, "grammars", yaml.BaseLoader)


def linked(places):
    """Words of the target with their places in the source, where they have one."""
    return frozenset(
        (int(place), i) for i, linked_places in enumerate(places) for place in linked_places if place != "-"
    )


@pytest.mark.parametrize(("command", "actions"), WORKED["commands"].items())
def test_commands_worked_by_hand(command, actions):
    assert list(interpret(command.split())) == [WORKED["actions"][action] for action in actions]


def test_scan_has_as_many_commands_as_published():
    assert len(simple_commands()) == 102
    assert len(set(commands())) == len(list(commands())) == 20_910


def test_commands_mean_what_is_published():
    lines = read_lines(available(locate, dataset("scan"), "tasks.txt"))
    published = {tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines}
    assert published == {(" ".join(command), " ".join(interpret(command))) for command in commands()}


# Reordering


@pytest.mark.parametrize(("source", "reach", "target", "order"), WORKED["orders"])
def test_orders_worked_by_hand(source, reach, target, order):
    assert orders.translate(source.split(), reach) == (tuple(target.split()), linked(order))


IN_ORDER = frozenset((i, i) for i in range(11))  # of five phrases


def test_without_reordering_every_sample_is_the_diagonal():
    task = orders.reordering(p=0, n_train=200, n_held_out=200)
    assert all(s == t for links in task.gold for s, t in links)
    assert np.array_equal(task.train.source_ids, task.train.target_ids)


def test_without_reordering_there_are_staying_words_only():
    task = orders.reordering(p=0, n_train=200, n_held_out=200)
    seen = {word for source in sources(task, "train") for word in source}
    assert seen == {*orders.STAYING_OPENINGS, *orders.STAYING_MODIFIERS, *orders.HEADS}


@pytest.mark.parametrize("p", [0.25, 1.0])
@pytest.mark.parametrize(
    ("reach", "stays"),
    # A reordered sentence of 5 phrases stays in order when none of its signals, half of a class each, is on.
    [("both", 2.0**-6), ("local", 2.0**-5), ("global", 2.0**-1)],
)
def test_the_dial_is_the_share_of_reordered_samples(p, reach, stays):
    task = orders.reordering(p=p, reach=reach, min_phrases=5, max_phrases=5, n_train=1, n_held_out=1500)
    moved = np.mean([links != IN_ORDER for links in task.gold])
    expected = p * (1 - stays)
    assert abs(moved - expected) < 5 * np.sqrt(expected * (1 - expected) / 1500)
    assert len(set(task.gold)) <= {"both": 2**6, "local": 2**5, "global": 2}[reach]


# One lexicon, two tasks


@pytest.mark.parametrize(("source", "translation", "order", "summary", "kept"), WORKED["sentences"])
def test_sentences_worked_by_hand(source, translation, order, summary, kept):
    assert lexicon.translate(source.split()) == (tuple(translation.split()), linked(order))
    assert lexicon.summarise(source.split()) == (tuple(summary.split()), linked(kept))


def test_an_adjective_without_a_noun_after_it_stays():
    assert lexicon.translate(["big", "sees"])[0] == ("granda", "vidas")
    assert lexicon.translate(["big", "new", "dog", "big"])[0] == ("granda", "hundo", "nova", "granda")


# Dates


def read_date(words):
    """All dates that a source can mean, by datetime."""
    joined = re.sub(r" (st|nd|rd|th)\b|(?<=\d) (?=\d)", "", " ".join(words))
    days = set()
    for pattern in WORKED["patterns"]:
        with suppress(ValueError):
            days.add(datetime.strptime(joined, pattern).date())
    return days


@pytest.mark.parametrize(("iso", "form", "words", "places"), WORKED["dates"])
def test_dates_worked_by_hand(iso, form, words, places):
    source, target, links = write(date.fromisoformat(iso), form)
    assert (" ".join(source), "".join(target), links) == (words, iso, linked(places))


def test_the_endings_of_a_month():
    endings = [write(date(2001, 1, day), "MONTH DAY TH , YEAR")[0][-6] for day in range(1, 32)]
    assert " ".join(endings) == " ".join(["st nd rd", *["th"] * 17, "st nd rd", *["th"] * 7, "st"])


@pytest.mark.parametrize("form", FORMS)
def test_every_written_date_means_its_day_alone(form):
    for ordinal in range(date(2023, 12, 20).toordinal(), date(2025, 1, 10).toordinal()):
        day = date.fromordinal(ordinal)
        source, target, _ = write(day, form)
        assert read_date(source) == {day}
        assert "".join(target) == f"{day:%Y-%m-%d}"


def test_drawn_dates_mean_their_targets():
    task = dates(n_train=2000, n_held_out=200)
    drawn = pairs(task, "train")
    for source, target in drawn[:200] + pairs(task, "held_out"):
        assert read_date(source) == {date.fromisoformat("".join(target))}


def test_every_digit_of_a_date_is_linked():
    task = dates(n_train=2000, n_held_out=200)
    for links in task.gold:
        assert sorted(i for _, i in links) == [0, 1, 2, 3, 5, 6, 8, 9]


def test_drawn_dates_have_every_year():
    task = dates(n_train=2000, n_held_out=200)
    drawn = pairs(task, "train")
    assert {int("".join(target[:4])) for _, target in drawn} == set(range(1900, 2100))


def test_drawn_dates_have_every_length():
    task = dates(n_train=2000, n_held_out=200)
    assert set(task.train.source_lengths) == set(range(6, 12))


def test_one_date_in_ten_has_slashes():
    task = dates(n_train=2000, n_held_out=200)
    drawn = pairs(task, "train")
    slashed = sum("/" in source for source, _ in drawn)
    assert abs(slashed - 200) < 5 * np.sqrt(2000 * 1 / 10 * 9 / 10)


def test_the_words_of_dates():
    task = dates(n_train=2000, n_held_out=200)
    # Digits, three marks, "the", "of", four endings, and 12 and 7 names long and short ("may" is both).
    assert len(task.source_vocabulary) == 4 + 10 + 3 + 2 + 4 + 2 * (12 + 7) - 1


# Number words

listener = EnglishNumberNormalizer()


def read_number(words):
    """The value of number words, by Whisper's listener, who leaves "one" alone as a word."""
    return int(listener(" ".join(words)).replace("one", "1"))


@pytest.mark.parametrize(("number", "words", "places"), WORKED["numbers"])
def test_numbers_worked_by_hand(number, words, places):
    spelled, links = spell(int(number))
    assert (" ".join(spelled), links) == (words, linked(places.split()))
    assert read_number(spelled) == int(number)


def test_every_number_is_read_back_by_another_rule():
    spelled = [spell(number)[0] for number in range(10_000)]
    assert [read_number(words) for words in spelled] == list(range(10_000))


def test_every_number_is_written_differently():
    spelled = [spell(number)[0] for number in range(10_000)]
    assert len(set(spelled)) == 10_000


def test_drawn_numbers_are_their_words():
    task = number_words(max_digits=9, n_train=300, n_held_out=300)
    for digits, words in pairs(task, "train") + pairs(task, "held_out"):
        assert str(read_number(words)) == "".join(digits)


def test_each_number_word_is_linked_to_its_digits():
    task = number_words(max_digits=9, n_train=300, n_held_out=300)
    for (digits, words), links in zip(pairs(task, "held_out"), task.gold, strict=True):
        assert {i for _, i in links} == set(range(len(words)))
        for i, word in enumerate(words):
            after = [len(digits) - 1 - place for place, j in sorted(links) if j == i]
            if word in ("thousand", "million"):
                assert after == [{"thousand": 3, "million": 6}[word]]
            elif word == "hundred":
                assert after[0] % 3 == 2
            else:
                # The digits linked, each at its place in the group, add up to the word.
                number = sum(int(digits[-1 - place]) * 10 ** (place % 3) for place in after)
                assert read_number([word]) == (number // 100 if after[0] % 3 == 2 else number)


# Samples drawn by rules


def copied(words):
    return words, frozenset((place, place) for place in range(len(words)))


RULES = {
    "scan": lambda words: (interpret(words), None),
    "lexicon_translation": lexicon.translate,
    "lexicon_summary": lexicon.summarise,
    "copying_sample": copied,
    "copying_permutation": copied,
}


@pytest.mark.parametrize("name", RULES)
def test_drawn_samples_are_what_the_rule_says(name):
    task, rule = load(name, n_train=150), RULES[name]
    assert all(target == rule(source)[0] for part in PARTS for source, target in pairs(task, part))
    assert task.gold is None or list(task.gold) == [rule(source)[1] for source in sources(task, "held_out")]


@pytest.mark.slow
def test_scan_has_all_commands_in_two_parts():
    whole = [pair for part in PARTS for pair in pairs(load("scan"), part)]
    assert len(whole) == len(set(whole)) == 16_728 + 4_182


@pytest.mark.slow
def test_both_lexicon_tasks_have_the_same_sources():
    long, short = (load(f"lexicon_{name}", n_train=200) for name in ("translation", "summary"))
    assert all(sources(long, part) == sources(short, part) for part in PARTS)


@pytest.mark.slow
def test_both_lexicon_tasks_have_the_same_vocabularies():
    long, short = (load(f"lexicon_{name}", n_train=200) for name in ("translation", "summary"))
    assert long.source_vocabulary == short.source_vocabulary
    assert long.target_vocabulary == short.target_vocabulary


@pytest.mark.parametrize(
    "given", [pytest.param((-1,), id="1"), pytest.param((1000000000,), id="number above the largest")]
)
def test_a_number_out_of_range_is_refused(given):
    assert_refused(partial(spell, *given), "from 0 to 999,999,999")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((["now", "red", "foxx"],), "no word 'foxx'; did you mean 'fox'", id="misspelt word"),
        pytest.param((["now"], "locl"), "no reach 'locl'; did you mean 'local'", id="misspelt reach"),
    ],
)
def test_translate_refuses(given, message):
    assert_refused(partial(translate, *given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(([],), id="empty"),
        pytest.param((["red", "fox"],), id="red_fox"),
        pytest.param((["now", "red"],), id="now_red"),
        pytest.param((["now", "fox", "red"],), id="modifier after its head"),
        pytest.param((["now", "red", "fox", "once"],), id="opening at the end"),
        pytest.param((["now", "now", "red", "fox"],), id="two openings"),
    ],
)
def test_a_translation_of_what_is_no_sentence_is_refused(given):
    assert_refused(partial(translate, *given), "is no sentence")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((["fly"],), "'fly' is no SCAN command", id="unknown verb"),
        pytest.param((["turn"],), "'turn' is no SCAN command", id="turn without direction"),
        pytest.param(
            (["walk", "opposite"],), "'walk opposite' is no SCAN command", id="opposite without direction"
        ),
        pytest.param(
            (["walk", "twice", "twice"],), "'walk twice twice' is no SCAN command", id="repeated twice over"
        ),
        pytest.param(
            (["walk", "left", "and", "left", "walk"],),
            "'left walk' is no SCAN command",
            id="direction before the verb",
        ),
    ],
)
def test_interpret_refuses(given, message):
    assert_refused(partial(interpret, *given), message)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param((["walk", "and"],), id="walk_and"),
        pytest.param((["and", "walk"],), id="and_walk"),
        pytest.param(([],), id="empty"),
    ],
)
def test_a_scan_command_with_an_empty_part_is_refused(given):
    assert_refused(partial(interpret, *given), "'' is no SCAN command")
