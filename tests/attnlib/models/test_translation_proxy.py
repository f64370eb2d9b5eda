"""The bag-of-words proxy: equations 5 and 6, sentence by sentence."""

import math

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.translator import TranslationProxy
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import EOS

PAIRS = [([4, 5, 6], [7, 8]), ([9, 4, 9, 5, 6], [10, 4, 5, 9]), ([8], [5])]


def proxy_of(seed=0):
    return TranslationProxy(12, 5, torch.Generator().manual_seed(seed))


def batch_of(pairs=PAIRS):
    return collate(Corpus.from_ids(*zip(*pairs, strict=True)), np.arange(len(pairs)))


@torch.no_grad()
def test_equation_5_and_the_loss():
    proxy, batch = proxy_of(), batch_of()
    losses = []
    for i, (source, target) in enumerate(PAIRS):
        bag = torch.stack([proxy.output.weight @ proxy.embedding.weight[word] for word in (*source, EOS)])
        expected = bag.mean(0)
        torch.testing.assert_close(proxy(batch.source, batch.source_mask)[i], expected)
        losses += [-expected.log_softmax(0)[word] for word in (*target, EOS)]
    torch.testing.assert_close(proxy.loss(batch), torch.stack(losses).mean())


@pytest.mark.parametrize("at_once", [1, 3, 512])
@torch.no_grad()
def test_equation_6(at_once):
    proxy, batch = proxy_of(), batch_of()
    found = proxy.log_probe(batch, at_once=at_once)
    assert (found == -torch.inf).sum() == found.numel() - sum((len(a) + 1) * (len(b) + 1) for a, b in PAIRS)
    for i, (source, target) in enumerate(PAIRS):
        for s, right in enumerate((*target, EOS)):
            for t, word in enumerate((*source, EOS)):
                alone = (proxy.output.weight @ proxy.embedding.weight[word]).softmax(0)[right]
                torch.testing.assert_close(found[i, s, t].exp(), alone)


def test_the_order_of_words_does_not_matter():
    proxy = proxy_of()
    turned = batch_of([(source[::-1], target[::-1]) for source, target in PAIRS])
    torch.testing.assert_close(proxy.loss(batch_of()), proxy.loss(turned))


def test_it_learns_which_word_translates_which():
    """Of three words with one translation each, in sentences of two, β^px finds every one."""
    pairs = [([4 + a, 4 + b], [7 + b, 7 + a]) for a in range(3) for b in range(3) if a != b]
    proxy, batch = TranslationProxy(10, 8, torch.Generator().manual_seed(0)), batch_of(pairs)
    optimiser = torch.optim.Adam(proxy.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        proxy.loss(batch).backward()
        optimiser.step()
    probe = proxy.log_probe(batch)
    assert (probe[:, 0, :2].argmax(1) == 1).all(), "the first target word translates the second source word"
    assert (probe[:, 1, :2].argmax(1) == 0).all()
    # No position can say which of the three target words (the end mark counts) comes at a place.
    assert proxy.loss(batch).item() == pytest.approx(math.log(3), abs=0.02)


def test_parameters_come_from_the_generator_alone_and_are_two_tables():
    before = torch.random.get_rng_state()
    first, again, other = proxy_of(), proxy_of(), proxy_of(1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.output.weight, again.output.weight)
    assert not torch.equal(first.output.weight, other.output.weight)
    assert sum(parameter.numel() for parameter in first.parameters()) == 2 * 12 * 5


def test_sizes_that_cannot_be():
    with pytest.raises(BadInput, match="width 0"):
        TranslationProxy(3, 0, torch.Generator())
    with pytest.raises(BadInput, match="at_once is 0"):
        proxy_of().log_probe(batch_of(), at_once=0)
