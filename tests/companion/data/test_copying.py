"""Sentences to copy: which words they hold, that orders are all alike, and what the decoder reads."""

from itertools import permutations

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from companion.data.synthetic import copy_batch, draw_sources, words_of


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
