"""What is learned before attention is: the bags of words of translation and classification."""

import math

import pytest
import torch

from attnlib.training.vocabulary import EOS
from notebooks.shared.classifier_proxy import ClassifierProxy
from notebooks.shared.copier import BagOfWords, Copier, CopierConfig
from notebooks.shared.translation_proxy import TranslationProxy
from tests.attnlib.models.model_builders import PAIRS, batch_of, generator

BATCH = batch_of()


def copier(words, width, draw):
    return Copier(CopierConfig(words, width), draw)


@pytest.mark.parametrize("network", [BagOfWords, TranslationProxy, ClassifierProxy, copier])
def test_parameters_come_from_the_generator_alone(network):
    before = torch.random.get_rng_state()
    first, again, other = (network(12, 5, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert not torch.equal(value, other.get_parameter(part))


@torch.no_grad()
def test_equation_5_and_the_loss():
    proxy, losses = TranslationProxy(12, 5, generator()), []
    assert sum(parameter.numel() for parameter in proxy.parameters()) == 2 * 12 * 5
    for i, (source, target) in enumerate(PAIRS):
        bag = torch.stack([proxy.output.weight @ proxy.embedding.weight[word] for word in (*source, EOS)])
        expected = bag.mean(0)
        torch.testing.assert_close(proxy(BATCH.source, BATCH.source_mask)[i], expected)
        losses += [-expected.log_softmax(0)[word] for word in (*target, EOS)]
    torch.testing.assert_close(proxy.loss(BATCH), torch.stack(losses).mean())


@pytest.mark.parametrize("at_once", [1, 3, 512])
@torch.no_grad()
def test_equation_6(at_once):
    proxy = TranslationProxy(12, 5, generator())
    found = proxy.log_probe(BATCH, at_once=at_once)
    assert (found == -torch.inf).sum() == found.numel() - sum((len(a) + 1) * (len(b) + 1) for a, b in PAIRS)
    for i, (source, target) in enumerate(PAIRS):
        for s, right in enumerate((*target, EOS)):
            for t, word in enumerate((*source, EOS)):
                alone = (proxy.output.weight @ proxy.embedding.weight[word]).softmax(0)[right]
                torch.testing.assert_close(found[i, s, t].exp(), alone)


def test_it_learns_which_word_translates_which():
    """Of three words with one translation each, in sentences of two, β^px finds every one."""
    pairs = [([4 + a, 4 + b], [7 + b, 7 + a]) for a in range(3) for b in range(3) if a != b]
    proxy, batch = TranslationProxy(10, 8, generator()), batch_of(pairs=pairs)
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


def test_the_logit_is_the_mean_of_the_words_own_log_odds():
    model = ClassifierProxy(4, 2, generator())
    with torch.no_grad():
        model.embedding.copy_(torch.tensor([[9.0, 9], [1, 0], [0, 1], [2, 2]]))
        model.readout.copy_(torch.tensor([3.0, -1]))
    tokens = torch.tensor([[1, 2, 3], [1, 3, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert model.log_odds(tokens).tolist() == [[3, -1, 4], [3, 4, 18]]
    assert model(tokens, mask).tolist() == [2, 3.5]


def test_a_proxy_is_drawn_at_the_scale_of_section_4_1():
    variance = ClassifierProxy(2_000, 50, generator()).embedding.detach().var()
    assert float(variance) * 50 == pytest.approx(1, abs=0.02)
