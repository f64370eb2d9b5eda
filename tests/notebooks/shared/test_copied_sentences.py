"""Sentences to copy: how they are drawn, and their batches by hand."""

from itertools import permutations

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.training.corpus import collate
from attnlib.training.vocabulary import EOS
from companion.data import registry
from notebooks.shared.copied_sentences import copy_batch, draw_sources, words_of
from tests.companion.data.data_builders import pairs, sources


def drawn(kind, length=6, samples=400, seed=0):
    return draw_sources(kind, length, samples, torch.Generator().manual_seed(seed))


def test_the_words_of_each_kind():
    assert drawn("permutation").sort(dim=1).values.eq(torch.arange(6)).all()
    sample = drawn("sample", samples=3000)
    assert all(len(set(sentence)) == 6 for sentence in sample.tolist())
    shares = torch.bincount(sample.flatten(), minlength=9) / 3000
    assert (shares - 2 / 3).abs().max() < 0.04  # four standard errors
    halves = drawn("mixture") // 6
    assert halves.eq(halves[:, :1]).all()
    assert 0.4 < halves[:, 0].float().mean() < 0.6
    assert (drawn("mixture") % 6).sort(dim=1).values.eq(torch.arange(6)).all()
    assert torch.equal(drawn("sample"), drawn("sample"))
    assert not torch.equal(drawn("sample"), drawn("sample", seed=1))


def test_all_orders_are_equally_likely():
    orders = [tuple(sentence) for sentence in drawn("permutation", length=3, samples=6000).tolist()]
    for order in permutations(range(3)):
        assert abs(orders.count(order) / 6000 - 1 / 6) < 0.02


def test_a_batch_reads_a_start_mark_and_then_what_it_said():
    batch = copy_batch(torch.tensor([[3, 1, 0], [2, 3, 1]]), words=4)
    assert batch.target.tolist() == [[3, 1, 0], [2, 3, 1]]
    assert batch.target_read.tolist() == [[4, 3, 1], [4, 2, 3]]
    assert batch.place.tolist() == [0, 1, 2]
    batch = copy_batch(torch.tensor([[3, 1, 0]]), words=4, order=torch.tensor([2, 0, 1]))
    assert batch.target.tolist() == [[0, 3, 1]]
    assert torch.equal(batch.source[:, batch.place], batch.target)


def test_kinds_and_lengths_that_cannot_be():
    with pytest.raises(UnknownName, match="did you mean 'permutation'"):
        words_of("permutations", 4)
    with pytest.raises(BadInput, match="length 1"):
        drawn("permutation", length=1)


@pytest.mark.parametrize(("name", "words"), [("copying_sample", 9), ("copying_permutation", 6)])
def test_targets_are_sources_without_repeated_words(name, words):
    task = registry.load(name, length=6, n_train=150, n_held_out=100)
    assert {word for source in sources(task, "train") for word in source} == {f"w{i}" for i in range(words)}
    for part in ("train", "held_out"):
        assert all(source == target and len(set(source)) == 6 for source, target in pairs(task, part))
    assert task.gold == (frozenset((i, i) for i in range(6)),) * 100
    batch = collate(task.held_out, [0])
    assert batch.source[0, -1] == EOS
    assert torch.equal(batch.source, batch.target_output)
