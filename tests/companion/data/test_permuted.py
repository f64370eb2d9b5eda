import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.data.synthetic import one_to_one, permutation, reversal

SMALL = {"n_train": 60, "n_held_out": 60, "min_length": 15, "max_length": 17}


def sentences(corpus):
    return [corpus.source(i).tobytes() for i in range(len(corpus))]


def order_of(links):
    """The source position of each target position; fails where the links are no bijection."""
    targets, sources = zip(*sorted(links), strict=True)
    assert targets == tuple(range(len(links)))
    assert sorted(sources) == list(range(len(links)))
    return list(sources)


@pytest.mark.parametrize("make", [permutation, reversal])
def test_gold_says_which_source_word_each_target_word_relabels(make):
    task = make(**SMALL)
    assert len(task.gold) == len(task.held_out)
    for i, links in enumerate(task.gold):
        source = task.source_vocabulary.decode(task.held_out.source(i))
        target = task.target_vocabulary.decode(task.held_out.target(i))
        assert target == [source[j].lower() for j in order_of(links)]
        assert len(links) == len(source)


@pytest.mark.parametrize("make", [permutation, reversal])
def test_training_samples_follow_the_same_orders(make):
    task = make(**SMALL)
    orders = {len(links): order_of(links) for links in task.gold}
    for i in range(len(task.train)):
        source, target = task.train.source(i), task.train.target(i)
        assert target.tolist() == source[orders[len(source)]].tolist()


@pytest.mark.parametrize("make", [permutation, reversal])
def test_each_length_has_one_order(make):
    task = make(**SMALL)
    assert {len(links) for links in task.gold} == {15, 16, 17}
    assert len(set(task.gold)) == 3


def test_reversal_of_three_words_by_hand():
    task = reversal(n_words=26, min_length=3, max_length=3, n_train=5, n_held_out=5)
    assert set(task.gold) == {frozenset({(0, 2), (1, 1), (2, 0)})}
    first = task.source_vocabulary.decode(task.train.source(0))
    assert task.target_vocabulary.decode(task.train.target(0)) == [w.lower() for w in reversed(first)]


def test_the_permutation_is_neither_diagonal_and_changes_with_the_seed():
    (one,) = set(permutation(n_train=1, n_held_out=5, seed=1).gold)
    (two,) = set(permutation(n_train=1, n_held_out=5, seed=2).gold)
    assert one != two
    for order in (order_of(one), order_of(two)):
        assert order not in (sorted(order), sorted(order, reverse=True))


def test_the_permutation_of_a_length_does_not_depend_on_which_other_lengths_there_are():
    alone = set(permutation(n_train=1, n_held_out=40, min_length=16, max_length=16).gold)
    assert alone < set(permutation(n_train=1, n_held_out=40, min_length=15, max_length=17).gold)


@pytest.mark.parametrize("make", [permutation, reversal])
def test_sources_are_those_of_one_to_one(make):
    task, plain = make(**SMALL), one_to_one(**SMALL)
    assert sentences(task.train) == sentences(plain.train)
    assert sentences(task.held_out) == sentences(plain.held_out)
    assert not set(sentences(task.train)) & set(sentences(task.held_out))


def test_held_out_samples_do_not_depend_on_the_size_of_the_training_set():
    small, large = (reversal(**{**SMALL, "n_train": n}) for n in (10, 200))
    assert sentences(small.held_out) == sentences(large.held_out)
    assert np.array_equal(small.held_out.target_ids, large.held_out.target_ids)
    assert small.gold == large.gold


@pytest.mark.parametrize("make", [permutation, reversal])
@pytest.mark.parametrize("options", [{"n_words": 0}, {"min_length": 9, "max_length": 8}, {"n_train": 0}])
def test_sizes_that_make_no_sense_are_refused_in_the_name_of_the_task(make, options):
    with pytest.raises(BadInput, match=f"{make.__name__} needs"):
        make(**options)
