"""The proxy by hand, and that order tells it nothing."""

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.models.classifiers import ClassifierProxy


def proxy(words=6, width=3, seed=0):
    return ClassifierProxy(words, width, torch.Generator().manual_seed(seed))


def test_the_logit_is_the_mean_of_the_words_own_log_odds():
    model = proxy(words=4, width=2)
    with torch.no_grad():
        model.embedding.copy_(torch.tensor([[9.0, 9], [1, 0], [0, 1], [2, 2]]))
        model.readout.copy_(torch.tensor([3.0, -1]))
    tokens = torch.tensor([[1, 2, 3], [1, 3, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert model.log_odds(tokens).tolist() == [[3, -1, 4], [3, 4, 18]]
    assert model(tokens, mask).tolist() == [2, 3.5]


def test_order_tells_it_nothing():
    tokens, mask = torch.tensor([[1, 4, 5, 3], [3, 5, 1, 4]]), torch.ones(2, 4).bool()
    first, second = proxy()(tokens, mask).tolist()
    assert first == pytest.approx(second)


def test_drawn_from_the_generator_at_the_scale_of_section_4_1():
    model = proxy(words=2_000, width=50)
    assert float(model.embedding.detach().var()) * 50 == pytest.approx(1, abs=0.02)
    torch.manual_seed(7)
    assert torch.equal(proxy(words=2_000, width=50).readout, model.readout)


def test_sizes_below_one_are_refused():
    with pytest.raises(BadInput, match="words is 0"):
        proxy(words=0)
