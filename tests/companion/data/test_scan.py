"""SCAN: its grammar, and the tasks made from it."""

import pytest

from attnlib.errors import BadInput, DataUnavailable
from companion.data.scan import (
    ACTIONS,
    COMMAND_WORDS,
    commands,
    interpret,
    scan,
    scan_extended,
    simple_commands,
)
from companion.data.sources import dataset, locate
from companion.data.text import read_lines

SCAN = dataset("scan")

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
def test_meanings_worked_by_hand(command, actions):
    assert list(interpret(command.split())) == actions


def test_the_grammar_makes_as_many_commands_as_were_published():
    every = list(commands())
    assert len(simple_commands()) == 102
    assert len(every) == len(set(every)) == 20_910
    assert {word for command in every for word in command} == set(COMMAND_WORDS)
    assert {action for command in every for action in interpret(command)} == set(ACTIONS)
    assert max(len(interpret(command)) for command in every) == 48


def test_the_pairs_are_the_published_ones():
    try:
        lines = read_lines(locate(SCAN, "tasks.txt"))
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")
    published = {tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines}
    assert len(published) == 20_910
    assert published == {(" ".join(command), " ".join(interpret(command))) for command in commands()}


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("fly", "fly"),
        ("turn", "turn"),
        ("walk opposite", "walk opposite"),
        ("walk and", ""),
        ("and walk", ""),
        ("", ""),
        ("walk twice twice", "walk twice twice"),
        ("walk left and left walk", "left walk"),
    ],
)
def test_words_that_do_not_follow_the_grammar_are_refused(command, named):
    with pytest.raises(BadInput, match=f"'{named}' is no SCAN command"):
        interpret(command.split())


def pairs(task, corpus):
    return [
        (
            tuple(task.source_vocabulary.decode(corpus.source(i))),
            tuple(task.target_vocabulary.decode(corpus.target(i))),
        )
        for i in range(len(corpus))
    ]


def test_scan_splits_all_commands_into_two_parts():
    task = scan()
    train, held_out = pairs(task, task.train), pairs(task, task.held_out)
    assert (len(train), len(held_out)) == (16_728, 4_182)
    assert len({*train, *held_out}) == 20_910
    assert all(actions == interpret(words) for words, actions in held_out)
    assert (len(task.source_vocabulary), len(task.target_vocabulary)) == (4 + 13, 4 + 6)


def test_fewer_training_commands_leave_the_held_out_ones_as_they_are():
    small, whole = scan(n_train=100), scan()
    assert pairs(small, small.held_out) == pairs(whole, whole.held_out)
    assert pairs(small, small.train) == pairs(whole, whole.train)[:100]
    other = scan(n_train=100, seed=1)
    assert pairs(small, small.held_out) != pairs(other, other.held_out)


@pytest.mark.parametrize("options", [{"held_out_share": 0}, {"held_out_share": 1.0}, {"seed": -1}])
def test_splits_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput, match="0 < held_out_share < 1"):
        scan(**options)


def test_more_training_commands_than_there_are_are_refused():
    with pytest.raises(BadInput, match="1…16728"):
        scan(n_train=16_729)


def test_extended_phrases_keep_their_bounds_and_mean_what_they_say():
    task = scan_extended(n_train=2000, n_held_out=1000)
    train, held_out = pairs(task, task.train), pairs(task, task.held_out)
    assert (len(train), len(held_out)) == (2000, 1000)
    for words, actions in train + held_out:
        assert 10 <= len(words) <= 15
        assert 1 <= len(actions) <= 30
        assert actions == interpret(words)
        assert len({"and", "after"} & set(words)) >= 1
    assert not {words for words, _ in train} & {words for words, _ in held_out}


def test_extended_lengths_are_uniform():
    lengths = scan_extended(n_train=6000, n_held_out=1).train.source_lengths
    for length in range(10, 16):
        # Five standard deviations of a binomial count.
        assert abs((lengths == length).sum() - 1000) < 5 * 29


def test_extended_parts_share_no_phrase_even_when_there_are_few():
    task = scan_extended(min_words=3, max_words=3, max_actions=3, n_train=100, n_held_out=10)
    train, held_out = pairs(task, task.train), pairs(task, task.held_out)
    assert not {words for words, _ in train} & {words for words, _ in held_out}


def test_extended_seeds_decide_and_parts_are_apart():
    one, same, other = (scan_extended(n_train=50, n_held_out=50, seed=seed) for seed in (1, 1, 2))
    assert pairs(one, one.train) == pairs(same, same.train)
    assert pairs(one, one.train) != pairs(other, other.train)
    large = scan_extended(n_train=500, n_held_out=50, seed=1)
    assert pairs(one, one.held_out) == pairs(large, large.held_out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_words": 2}, "3 ≤ min_words"),
        ({"min_words": 12, "max_words": 11}, "min_words ≤ max_words"),
        ({"n_train": 0}, "n_train and n_held_out ≥ 1"),
        ({"max_actions": 14}, "at least max_words"),
    ],
)
def test_extended_sizes_that_make_no_sense_are_refused(options, message):
    with pytest.raises(BadInput, match=message):
        scan_extended(**options)
