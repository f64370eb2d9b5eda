"""One lexicon, two tasks: worked by hand, and how sentences are drawn."""

import re

import numpy as np
import pytest

from attnlib.errors import BadInput, UnknownName
from notebooks.shared import lexicon
from notebooks.shared.lexicon import lexicon_summary, lexicon_translation, summarise
from tests.companion.data.data_builders import pairs, sources


@pytest.mark.parametrize(
    ("source", "translation", "order", "summary", "kept"),
    [
        ("the dog sees my war", "la hundo vidas mia milito", [0, 1, 2, 3, 4], "milito", [4]),
        ("the big flood wakes my dog", "la inundo granda vekas mia hundo", [0, 2, 1, 3, 4, 5], "inundo", [2]),
        (
            "our new concert often follows their little war",
            "nia koncerto nova ofte sekvas ilia milito eta",
            [0, 2, 1, 3, 4, 5, 7, 6],
            "milito koncerto",
            [7, 2],
        ),
        (
            "the vote brings the warm plague after the green trial",
            "la baloto alportas la pesto varma post la proceso verda",
            [0, 1, 2, 3, 5, 4, 6, 7, 9, 8],
            "pesto proceso baloto",
            [5, 9, 1],
        ),
    ],
)
def test_sentences_worked_by_hand(source, translation, order, summary, kept):
    assert lexicon.translate(source.split()) == (tuple(translation.split()), frozenset(enumerate(order)))
    assert summarise(source.split()) == (tuple(summary.split()), frozenset(enumerate(kept)))


def test_an_adjective_without_a_noun_after_it_stays():
    assert lexicon.translate(["big", "sees"])[0] == ("granda", "vidas")
    assert lexicon.translate(["big", "new", "dog", "big"])[0] == ("granda", "hundo", "nova", "granda")


def test_both_tasks_have_the_same_sources_and_each_its_own_targets():
    options = {"min_length": 7, "max_length": 12, "n_train": 200, "n_held_out": 100, "seed": 3}
    long, short = lexicon_translation(**options), lexicon_summary(**options)
    assert long.source_vocabulary == short.source_vocabulary
    assert long.target_vocabulary == short.target_vocabulary
    for part in ("train", "held_out"):
        assert sources(long, part) == sources(short, part)
        assert pairs(long, part) == [(words, lexicon.translate(words)[0]) for words in sources(long, part)]
        assert pairs(short, part) == [(words, summarise(words)[0]) for words in sources(long, part)]
    assert list(short.gold) == [summarise(words)[1] for words in sources(short, "held_out")]


def test_summaries_are_in_the_order_of_importance_and_not_of_position():
    task = lexicon_summary(n_train=1, n_held_out=500)
    ranking = list(lexicon.TOPICS.values())
    moved = 0
    for (_, words), links in zip(pairs(task, "held_out"), task.gold, strict=True):
        ranks = [ranking.index(word) for word in words]
        assert ranks == sorted(set(ranks))
        places = [place for _, place in sorted(links)]
        moved += places != sorted(places)
    # Of two topics half stand in another order, of three five in six.
    several = np.bincount(task.held_out.target_lengths)
    expected = several[2] / 2 + several[3] * 5 / 6
    assert abs(moved - expected) < 5 * np.sqrt(several[2] / 4 + several[3] * 5 / 36)


SHAPE = re.compile(r"DA?NR?VDA?N(PDA?N)*")
LETTERS = {"TOPICS": "N", "NOUNS": "N", "ADJECTIVES": "A", "VERBS": "V", "ADVERBS": "R", "PREPOSITIONS": "P",
           "DETERMINERS": "D"}  # fmt: skip


CLASS_OF = {word: letter for name, letter in LETTERS.items() for word in getattr(lexicon, name)}


@pytest.mark.parametrize("lengths", [(6, 14), (5, 5), (30, 30)])
def test_sentences_have_the_build_and_the_lengths_that_are_promised(lengths):
    task = lexicon_summary(min_length=lengths[0], max_length=lengths[1], n_train=300, n_held_out=5)
    for words in sources(task, "train"):
        assert SHAPE.fullmatch("".join(CLASS_OF[word] for word in words))
        topics = [word for word in words if word in lexicon.TOPICS]
        assert 1 <= len(topics) == len(set(topics)) <= 3
    assert set(task.train.source_lengths) == set(range(lengths[0], lengths[1] + 1))


def test_words_that_are_not_known_are_refused_with_the_nearest():
    for rule in (lexicon.translate, summarise):
        with pytest.raises(UnknownName, match="no word 'floods'; did you mean 'flood'"):
            rule(["the", "floods"])
    with pytest.raises(BadInput, match="has nothing to sum up; topics are war, plague"):
        summarise(["the", "dog", "sees", "my", "cat"])
