"""Tasks of five families: each rule against plain Python, its links by hand, and sizes that make no sense."""

import pytest

from companion.data import registry
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import pairs

SMALL = {"n_train": 20, "n_held_out": 20}
FAMILIES = ("sorting", "counting", "selective_copying", "lookup", "addition")


def held_out(name, **options):
    """Samples of a task and their links."""
    task = registry.load(name, **SMALL | options)
    return [
        (source, target, gold)
        for (source, target), gold in zip(pairs(task, "held_out"), task.gold, strict=True)
    ]


def test_sorted_letters_are_in_the_order_of_the_alphabet():
    for source, target, _ in held_out("sorting"):
        assert [letter.upper() for letter in target] == sorted(source)


def test_each_count_is_of_its_letter():
    for source, target, _ in held_out("counting", n_words=3):
        assert [int(count) for count in target] == [source.count(letter) for letter in "ABC"]


HALVES = {"first": slice(1, 4), "last": slice(4, 7), "odd": slice(1, 7, 2), "even": slice(2, 7, 2)}


def test_a_selector_chooses_its_half():
    for source, target, _ in held_out("selective_copying", length=6):
        assert [letter.upper() for letter in target] == list(source[HALVES[source[0]]])


def test_all_selectors_are_drawn():
    assert {source[0] for source, _, _ in held_out("selective_copying")} == set(HALVES)


def test_values_are_in_the_order_of_their_keys():
    for source, target, _ in held_out("lookup"):
        value_of = {word[0]: word[1] for word in source}
        assert list(target) == [value_of[key] for key in sorted(value_of)]


def test_every_key_comes_once():
    for source, _, _ in held_out("lookup", keys=4):
        assert sorted(word[0] for word in source) == list("ABCD")


def test_a_sum_is_written_from_the_ones_upwards():
    for source, target, _ in held_out("addition", digits=3):
        first, second = "".join(source).split("+")
        assert int("".join(reversed(target))) == int(first) + int(second)


@pytest.mark.parametrize("name", ["sorting", "selective_copying"])
def test_a_linked_letter_is_the_one_that_is_written(name):
    for source, target, links in held_out(name):
        assert all(source[place].lower() == target[step] for place, step in links)


@pytest.mark.parametrize("name", ["sorting", "selective_copying", "lookup"])
def test_each_target_word_comes_from_one_place(name):
    for _, target, links in held_out(name):
        assert sorted(step for _, step in links) == list(range(len(target)))


def test_a_linked_word_has_the_value_that_is_written():
    for source, target, links in held_out("lookup"):
        assert all(source[place][1] == target[step] for place, step in links)


def test_a_count_comes_from_all_of_its_letters():
    for source, _, links in held_out("counting", n_words=3):
        assert links == {(place, "ABC".index(letter)) for place, letter in enumerate(source)}


def test_a_digit_of_a_sum_comes_from_the_two_digits_of_its_place():
    (_, _, links), *_ = held_out("addition", digits=2)  # places: 0 1 + 3 4; steps: ones, tens, carry
    assert links == {(1, 0), (4, 0), (0, 1), (3, 1)}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        pytest.param(
            "sorting", {"n_words": 27}, "task sorting: n_words must be at most 26; got 27", id="more letters"
        ),
        pytest.param(
            "selective_copying",
            {"length": 5},
            "task selective_copying: length must be even; got 5",
            id="no half",
        ),
        pytest.param(
            "lookup",
            {"keys": 1, "n_held_out": 6},
            "there are only 10 sentences of this kind, too few to hold out 6; "
            "take at most 5, or longer sentences",
            id="too few sentences",
        ),
    ],
)
def test_sizes_that_make_no_sense_are_refused(name, options, message):
    assert_refused(lambda: registry.load(name, **options), message)
