import pytest

from attnlib.errors import BadInput
from companion.data.scan import interpret, scan, scan_extended


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
