"""Commands, orders and lexicons: worked by hand, against what was published, and how samples are drawn."""

import re

import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.data.sources import dataset, locate
from companion.data.text import read_lines
from notebooks.shared import lexicon
from notebooks.shared import reordering as orders
from notebooks.shared.lexicon import lexicon_summary, lexicon_translation, summarise
from notebooks.shared.reordering import reordering
from notebooks.shared.scan import commands, interpret, scan, simple_commands
from tests.companion.data.data_builders import available, pairs, sources

# SCAN

LEFT, RIGHT, WALK, LOOK, RUN, JUMP = "I_TURN_LEFT", "I_TURN_RIGHT", "I_WALK", "I_LOOK", "I_RUN", "I_JUMP"


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("walk", [WALK]),
        ("turn left", [LEFT]),
        ("jump right", [RIGHT, JUMP]),
        ("run thrice", [RUN] * 3),
        ("turn opposite right", [RIGHT, RIGHT]),
        ("look opposite left twice", [LEFT, LEFT, LOOK] * 2),
        ("turn around left", [LEFT] * 4),
        ("walk around right thrice", [RIGHT, WALK] * 12),
        ("jump twice and walk", [JUMP, JUMP, WALK]),
        ("jump twice after walk", [WALK, JUMP, JUMP]),
        ("walk and look and run", [WALK, LOOK, RUN]),
        ("walk and look after run", [RUN, WALK, LOOK]),
        ("walk after look and run", [LOOK, WALK, RUN]),
        ("walk after look after run", [RUN, LOOK, WALK]),
        ("walk after look and run after jump left", [LEFT, JUMP, LOOK, WALK, RUN]),
    ],
)
def test_commands_worked_by_hand(command, actions):
    assert list(interpret(command.split())) == actions


def test_the_commands_and_what_they_mean_are_the_published_ones():
    assert len(simple_commands()) == 102
    assert len(set(commands())) == len(list(commands())) == 20_910
    lines = read_lines(available(locate, dataset("scan"), "tasks.txt"))
    published = {tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines}
    assert published == {(" ".join(command), " ".join(interpret(command))) for command in commands()}


def test_scan_splits_all_commands_into_two_parts():
    task, small, other = scan(), scan(n_train=100), scan(n_train=100, seed=1)
    train, held_out = pairs(task, "train"), pairs(task, "held_out")
    assert (len(train), len(held_out)) == (16_728, 4_182)
    assert len({*train, *held_out}) == 20_910
    assert all(actions == interpret(words) for words, actions in held_out)
    assert (len(task.source_vocabulary), len(task.target_vocabulary)) == (4 + 13, 4 + 6)
    assert pairs(small, "held_out") == held_out != pairs(other, "held_out")
    assert pairs(small, "train") == train[:100]


# Reordering


@pytest.mark.parametrize(
    ("source", "reach", "target", "order"),
    [
        ("now red fox old owl", "both", "gau rakko fimbo ohto ulufo", [0, 1, 2, 3, 4]),
        ("now wild fox old owl", "both", "gau fimbo wikko ohto ulufo", [0, 2, 1, 3, 4]),
        ("there red fox old owl", "both", "thela ohto ulufo rakko fimbo", [0, 3, 4, 1, 2]),
        ("once wild fox old owl", "both", "onga ohto ulufo fimbo wikko", [0, 3, 4, 2, 1]),
        ("once odd fox old owl", "both", "onga ohto ulufo fimbo ommo", [0, 3, 4, 2, 1]),
        ("once wild fox shy bear", "both", "onga barbu shimo fimbo wikko", [0, 4, 3, 2, 1]),
        ("once wild fox old owl", "local", "onga fimbo wikko ohto ulufo", [0, 2, 1, 3, 4]),
        ("once wild fox old owl", "global", "onga ohto ulufo wikko fimbo", [0, 3, 4, 1, 2]),
        ("here grey deer", "both", "hyra dilmo grato", [0, 2, 1]),
        ("now", "both", "gau", [0]),
    ],
)  # fmt: skip
def test_orders_worked_by_hand(source, reach, target, order):
    words, links = orders.translate(source.split(), reach)
    assert " ".join(words) == target
    assert links == frozenset(enumerate(order))


IN_ORDER = frozenset((i, i) for i in range(11))  # of five phrases


def test_without_reordering_every_sample_is_the_diagonal_and_has_staying_words_only():
    task = reordering(p=0, n_train=200, n_held_out=200)
    assert all(t == s for links in task.gold for t, s in links)
    assert np.array_equal(task.train.source_ids, task.train.target_ids)
    seen = {word for source in sources(task, "train") for word in source}
    assert seen == {*orders.STAYING_OPENINGS, *orders.STAYING_MODIFIERS, *orders.HEADS}


@pytest.mark.parametrize("p", [0.25, 1.0])
@pytest.mark.parametrize(
    ("reach", "stays"),
    # A reordered sentence of 5 phrases stays in order when none of its signals, half of a class each, is on.
    [("both", 2.0**-6), ("local", 2.0**-5), ("global", 2.0**-1)],
)
def test_the_dial_is_the_share_of_reordered_samples(p, reach, stays):
    task = reordering(p=p, reach=reach, min_phrases=5, max_phrases=5, n_train=1, n_held_out=1500)
    moved = np.mean([links != IN_ORDER for links in task.gold])
    expected = p * (1 - stays)
    assert abs(moved - expected) < 5 * np.sqrt(expected * (1 - expected) / 1500)
    assert len(set(task.gold)) <= {"both": 2**6, "local": 2**5, "global": 2}[reach]


# One lexicon, two tasks


@pytest.mark.parametrize(
    ("source", "translation", "order", "summary", "kept"),
    [
        ("the dog sees my war", "la hundo vidas mia milito", [0, 1, 2, 3, 4], "milito", [4]),
        ("the big flood wakes my dog", "la inundo granda vekas mia hundo", [0, 2, 1, 3, 4, 5], "inundo", [2]),
        ("our new concert often follows their little war", "nia koncerto nova ofte sekvas ilia milito eta",
         [0, 2, 1, 3, 4, 5, 7, 6], "milito koncerto", [7, 2]),
        ("the vote brings the warm plague after the green trial",
         "la baloto alportas la pesto varma post la proceso verda", [0, 1, 2, 3, 5, 4, 6, 7, 9, 8],
         "pesto proceso baloto", [5, 9, 1]),
    ],
)  # fmt: skip
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


NO_COMMANDS = {
    "fly": "fly", "turn": "turn", "walk opposite": "walk opposite", "walk and": "", "and walk": "", "": "",
    "walk twice twice": "walk twice twice", "walk left and left walk": "left walk",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words", "message"),
    [
        *((interpret, words, f"'{named}' is no SCAN command") for words, named in NO_COMMANDS.items()),
        *((orders.translate, words, "is no sentence") for words in
          ("", "red fox", "now red", "now fox red", "now red fox once", "now now red fox")),
        (orders.translate, "now red foxx", "no word 'foxx'; did you mean 'fox'"),
        (lambda words: orders.translate(words, "locl"), "now", "no reach 'locl'; did you mean 'local'"),
        *((rule, "the floods", "no word 'floods'; did you mean 'flood'") for rule in
          (lexicon.translate, summarise)),
        (summarise, "the dog sees my cat", "has nothing to sum up; topics are war, plague"),
    ],
)  # fmt: skip
def test_words_that_do_not_follow_the_grammar_are_refused(rule, words, message):
    with pytest.raises(BadInput, match=message):
        rule(words.split())
