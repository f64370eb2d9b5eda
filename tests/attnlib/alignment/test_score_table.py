"""Which head is best, by hand."""

import math

import numpy as np
import pytest

from attnlib.alignment.gold import Gold
from attnlib.alignment.links import BestSources, HeadChoice, LinkedPair
from attnlib.alignment.score_table import (
    Lexicon,
    best_choice,
    diagonal_links,
    row_of_other_half,
    rows_of_heads,
    sums_by_choice,
)
from attnlib.alignment.scores import LinkSums

GOOD, BAD = HeadChoice(0, 0), HeadChoice(0, 1)
CHOICES = (GOOD, BAD)


def pair(number, *sources):
    """A pair whose target words are linked with these sources: a row for each choice of heads."""
    rows = np.array(sources)
    return LinkedPair(number, ("a", "b"), ("c", "d"), best=BestSources(rows, np.ones(rows.shape)))


PAIRS = [pair(number, [0, 1], [1, 0]) for number in range(4)]
GOLD = {number: Gold([(0, 0), (1, 1)]) for number in range(4)}


def test_the_best_head_is_that_of_the_lowest_error_rate():
    assert best_choice(sums_by_choice(PAIRS, GOLD, CHOICES), CHOICES) == GOOD


def test_the_best_head_is_one_of_those_that_were_asked_for():
    assert best_choice(sums_by_choice(PAIRS, GOLD, CHOICES), [BAD]) == BAD


def test_a_head_without_links_is_never_the_best():
    assert best_choice({GOOD: LinkSums(), BAD: LinkSums().update([(0, 1)], Gold([(0, 0)]))}, CHOICES) == BAD


def test_pairs_without_gold_links_do_not_count():
    sums = sums_by_choice(PAIRS, {1: GOLD[1]}, CHOICES)
    assert sums[GOOD].result().pairs == 1


def test_a_row_says_which_head_was_chosen():
    rows = rows_of_heads("forward", sums_by_choice(PAIRS, GOLD, CHOICES), GOOD)
    assert [(row["head"], row["error_rate"], row["chosen"]) for row in rows] == [(0, 0, True), (1, 1, False)]


@pytest.mark.signatures
def test_no_half_is_judged_by_the_head_that_it_chose():
    """Each head is right on one half of the pairs, so that what the other half chooses is always wrong."""
    from attnlib.probes.agreement import halves

    selecting, _ = halves(4)
    pairs = [
        pair(number, [0, 1], [1, 0]) if number in selecting.tolist() else pair(number, [1, 0], [0, 1])
        for number in range(4)
    ]
    row = row_of_other_half("forward", pairs, GOLD, choices=CHOICES, among=CHOICES)
    assert (row["error_rate"], row["pairs"]) == (1, 4)


@pytest.mark.parametrize(("n_pairs", "among"), [(1, CHOICES), (4, [GOOD])])
def test_there_is_no_other_half_where_nothing_is_chosen(n_pairs, among):
    assert row_of_other_half("forward", PAIRS[:n_pairs], GOLD, choices=CHOICES, among=among) is None


def test_the_diagonal_of_an_empty_side_is_empty():
    assert diagonal_links([], ["a"]) == []


def test_a_lexicon_links_a_word_that_it_does_not_know_with_nothing():
    lexicon = Lexicon([(["a"], ["b"])])
    assert lexicon.links(["a"], ["<pad>", "b"]) == [(0, 1)]


def test_rates_of_nothing_are_undefined():
    assert math.isnan(LinkSums().result().error_rate)
