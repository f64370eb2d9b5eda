"""Sequences drawn by rule: relabelled, permuted, copied, and with a keyword."""

from itertools import permutations

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.training.corpus import collate
from attnlib.training.vocabulary import EOS, MARKS
from companion.data import registry
from companion.data.synthetic import (
    KEYWORD,
    copy_batch,
    draw_sources,
    keyword_batch,
    one_to_one,
    permutation,
    reversal,
    words_of,
)


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


SMALL = {"n_train": 60, "n_held_out": 60, "min_length": 15, "max_length": 17}


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


def test_held_out_reversals_do_not_depend_on_the_size_of_the_training_set():
    small, large = (reversal(**{**SMALL, "n_train": n}) for n in (10, 200))
    assert sentences(small.held_out) == sentences(large.held_out)
    assert np.array_equal(small.held_out.target_ids, large.held_out.target_ids)
    assert small.gold == large.gold


@pytest.mark.parametrize("make", [permutation, reversal])
@pytest.mark.parametrize("options", [{"n_words": 0}, {"min_length": 9, "max_length": 8}, {"n_train": 0}])
def test_sizes_that_make_no_sense_are_refused_in_the_name_of_the_task(make, options):
    with pytest.raises(BadInput, match=f"{make.__name__} needs"):
        make(**options)


def drawn(kind, length=6, samples=400, seed=0):
    return draw_sources(kind, length, samples, torch.Generator().manual_seed(seed))


def test_a_permutation_holds_every_word_once():
    assert drawn("permutation").sort(dim=1).values.eq(torch.arange(6)).all()


def test_a_sample_repeats_no_word_and_holds_each_in_two_thirds_of_the_sentences():
    sources = drawn("sample", samples=3000)
    assert all(len(set(sentence)) == 6 for sentence in sources.tolist())
    shares = torch.bincount(sources.flatten(), minlength=9) / 3000
    assert len(shares) == 9
    assert (shares - 2 / 3).abs().max() < 0.04  # four standard errors


def test_a_mixture_holds_one_half_of_the_words_and_both_halves_come():
    halves = drawn("mixture") // 6
    assert halves.eq(halves[:, :1]).all()
    assert 0.4 < halves[:, 0].float().mean() < 0.6
    assert (drawn("mixture") % 6).sort(dim=1).values.eq(torch.arange(6)).all()


def test_all_orders_are_equally_likely():
    orders = [tuple(sentence) for sentence in drawn("permutation", length=3, samples=6000).tolist()]
    for order in permutations(range(3)):
        assert abs(orders.count(order) / 6000 - 1 / 6) < 0.02


def test_equal_generators_give_equal_sentences_and_others_others():
    assert torch.equal(drawn("sample"), drawn("sample"))
    assert not torch.equal(drawn("sample"), drawn("sample", seed=1))


def test_a_batch_reads_a_start_mark_and_then_what_it_said():
    batch = copy_batch(torch.tensor([[3, 1, 0], [2, 3, 1]]), words=4)
    assert batch.target.tolist() == [[3, 1, 0], [2, 3, 1]]
    assert batch.target_read.tolist() == [[4, 3, 1], [4, 2, 3]]
    assert batch.place.tolist() == [0, 1, 2]


def test_an_order_says_where_each_target_word_stands():
    batch = copy_batch(torch.tensor([[3, 1, 0]]), words=4, order=torch.tensor([2, 0, 1]))
    assert batch.target.tolist() == [[0, 3, 1]]
    assert torch.equal(batch.source[:, batch.place], batch.target)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'permutation'"):
        words_of("permutations", 4)
    with pytest.raises(BadInput, match="length 1"):
        drawn("permutation", length=1)


WORDS = {"copying_sample": 9, "copying_permutation": 6}
SHORT = {"length": 6, "n_train": 150, "n_held_out": 100}


@pytest.fixture(params=WORDS)
def task(request):
    return registry.load(request.param, **SHORT)


def test_targets_are_sources_without_repeated_words(task):
    assert len(task.source_vocabulary) == len(task.target_vocabulary) == WORDS[task.name] + len(MARKS)
    for corpus, size in ((task.train, 150), (task.held_out, 100)):
        assert len(corpus) == size
        for i in range(size):
            words = corpus.source(i).tolist()
            assert words == corpus.target(i).tolist()
            assert len(set(words)) == 6


def test_no_sentence_is_in_both_parts(task):
    parts = ({part.source(i).tobytes() for i in range(len(part))} for part in (task.train, task.held_out))
    assert not set.intersection(*parts)


def test_gold_links_are_the_identity_and_end_marks_are_added(task):
    assert task.gold == (frozenset((i, i) for i in range(6)),) * 100
    batch = collate(task.held_out, [0])
    assert batch.source[0, -1] == EOS
    assert torch.equal(batch.source, batch.target_output)


def test_every_word_of_a_sample_comes_and_every_sentence_lacks_some():
    task = registry.load("copying_sample", **SHORT)
    seen = {int(word) for i in range(150) for word in task.train.source(i)}
    assert seen == set(range(4, 4 + 9))


def test_equal_seeds_give_equal_sentences_and_others_others():
    first, again, other = (registry.load("copying_sample", **SHORT, seed=seed).train for seed in (0, 0, 1))
    assert first.source_ids.tolist() == again.source_ids.tolist()
    assert first.source_ids.tolist() != other.source_ids.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 2}, "length ≥ 3"),
        ({"length": 4, "n_held_out": 7}, "4 words make 24 sentences of 4"),
        ({"n_train": 0}, "n_train=0"),
    ],
)
def test_a_task_that_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(BadInput, match=message):
        registry.load("copying_permutation", **options)


def test_half_have_the_keyword_once_and_the_others_never():
    batch = keyword_batch(200, 12, 7, torch.Generator().manual_seed(3))
    counts = (batch.tokens == KEYWORD).sum(1)
    assert torch.equal(counts, batch.labels)
    assert batch.labels.sum() == 100
    assert (batch.tokens[torch.arange(100), batch.place[:100]] == KEYWORD).all()
    assert batch.mask.all()
    assert batch.tokens.max() == 6


def test_places_and_words_are_uniform():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    places = torch.bincount(batch.place[:10_000], minlength=5) / 10_000
    assert places.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    words = torch.bincount(batch.tokens[10_000:].flatten(), minlength=4) / 50_000
    assert words.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.01)


@pytest.mark.parametrize(("samples", "length", "words"), [(3, 5, 5), (0, 5, 5), (4, 0, 5), (4, 5, 1)])
def test_what_cannot_be_drawn_is_said(samples, length, words):
    with pytest.raises(BadInput, match=r"even number|at least two"):
        keyword_batch(samples, length, words, torch.Generator())
