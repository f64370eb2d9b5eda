"""A trace that is interrupted leaves the model and torch as they were."""

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack

from attnlib import Hooked, Modules, TokenBatch

BATCH = TokenBatch.of_rows([[5, 6, 7]], [[8, 2]])


class Core(nn.Module):
    """An attention made by a function of torch; ``error`` is raised before it."""

    def __init__(self):
        super().__init__()
        self.error = None

    def forward(self, query, key):
        if self.error is not None:
            raise self.error
        scores = query[:, None] @ key[:, None].mT / 2
        return scores.softmax(-1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
        self.query, self.key, self.core = nn.Linear(4, 4), nn.Linear(4, 4), Core()

    def forward(self, batch):
        return self.core(self.query(self.words(batch.read)), self.key(self.words(batch.source)))


class Outer(nn.Module):
    """A module within which another one is watched as well."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Reader(), Reader()

    def forward(self, batch):
        self.first(batch)
        return self.second(batch)


@pytest.fixture
def model():
    hooked = [
        Hooked("first.query", "first.key", heads=1, attention="first", layer=0),
        Hooked("second.query", "second.key", heads=1, attention="second.core", layer=1),
    ]
    return Modules(Outer(), hooked, lambda network, batch: network(batch), start=1)


ERRORS = [pytest.param(KeyboardInterrupt(), id="Ctrl-C"), pytest.param(ValueError(), id="error")]


@pytest.mark.parametrize("part", ["first", "second"])
@pytest.mark.parametrize("error", ERRORS)
def test_no_function_mode_stays_on(model, error, part):
    getattr(model.model, part).core.error = error
    with pytest.raises(type(error)):
        model.trace(BATCH)
    assert _get_current_function_mode_stack() == []


@pytest.mark.parametrize("error", ERRORS)
def test_no_hook_stays(model, error):
    model.model.first.core.error = error
    with pytest.raises(type(error)):
        model.trace(BATCH)
    hooks = [[*module._forward_hooks, *module._forward_pre_hooks] for module in model.model.modules()]
    assert not any(hooks)


def test_the_next_trace_is_as_before(model):
    expected = model.trace(BATCH).attentions[0].weights
    model.model.first.core.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        model.trace(BATCH)
    model.model.first.core.error = None
    assert torch.equal(model.trace(BATCH).attentions[0].weights, expected)
