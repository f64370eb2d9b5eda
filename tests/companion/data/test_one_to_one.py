import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.data.synthetic import one_to_one


def sentences(corpus):
    return [corpus.source(i).tobytes() for i in range(len(corpus))]


def test_each_target_word_is_the_relabelled_source_word_at_its_place():
    task = one_to_one(n_train=50, n_held_out=50)
    for corpus in (task.train, task.held_out):
        for i in range(len(corpus)):
            source = task.source_vocabulary.decode(corpus.source(i))
            assert task.target_vocabulary.decode(corpus.target(i)) == [word.lower() for word in source]
            assert 15 <= len(source) <= 20


def test_lengths_and_words_are_uniform():
    task = one_to_one(n_train=6000)
    assert task.source_vocabulary.words[4:] == ("A", "B", "C")
    lengths = np.bincount(task.train.source_lengths)[15:]
    words = np.bincount(task.train.source_ids)[4:]
    # Five standard deviations of a binomial count around its mean.
    assert np.abs(lengths - 1000).max() < 5 * np.sqrt(6000 * 1 / 6 * 5 / 6)
    assert np.abs(words - words.mean()).max() < 5 * np.sqrt(words.sum() * 1 / 3 * 2 / 3)


def test_no_sentence_is_in_both_parts_even_when_there_are_few():
    task = one_to_one(n_words=2, min_length=5, max_length=5, n_train=400, n_held_out=16)
    assert not set(sentences(task.train)) & set(sentences(task.held_out))


def test_held_out_samples_do_not_depend_on_the_size_of_the_training_set():
    small, large = one_to_one(n_train=10), one_to_one(n_train=1000)
    assert sentences(small.held_out) == sentences(large.held_out)


def test_the_seed_decides():
    assert sentences(one_to_one(seed=1).train) == sentences(one_to_one(seed=1).train)
    assert sentences(one_to_one(seed=1).train) != sentences(one_to_one(seed=2).train)


@pytest.mark.parametrize(
    "options",
    [{"n_words": 27}, {"n_words": 0}, {"min_length": 9, "max_length": 8}, {"n_train": 0}, {"seed": -1}],
)
def test_sizes_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput, match="one_to_one needs"):
        one_to_one(**options)


def test_too_many_held_out_samples_are_refused():
    with pytest.raises(BadInput, match="only 8 sentences of length 3"):
        one_to_one(n_words=2, min_length=3, max_length=9, n_held_out=5)


def test_gold_is_the_diagonal_of_each_held_out_sample():
    task = one_to_one(n_train=1, n_held_out=50)
    assert len(task.gold) == 50
    for links, length in zip(task.gold, task.held_out.source_lengths, strict=True):
        assert links == frozenset((i, i) for i in range(length))
