"""Growing components own their fit: looking at their sums, or splitting states, changes nothing."""

import pytest
import torch

from attnlib import Components, GrowingComponents
from attnlib.decomposition.growing import CentredComponents
from attnlib.errors import BadInput

TOKENS = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 1]])
STATES = (torch.arange(2) + 10.0 * TOKENS)[:, :, None]  # position plus ten times the word, without noise


@pytest.mark.parametrize("look", ["temporal", "input"])
@pytest.mark.parametrize("kind", [GrowingComponents, CentredComponents])
def test_looking_at_the_sums_does_not_change_the_fit(kind, look):
    components = kind(1, "least_squares").update(STATES, TOKENS)
    getattr(components.tables, look)
    residual = components.split(STATES, TOKENS).residual
    assert residual.abs().max() < 1e-6


def test_the_sums_have_the_means_whatever_was_split_before():
    components = GrowingComponents(1, "least_squares").update(STATES, TOKENS)
    components.split(STATES, TOKENS)
    means = Components(2, 2, 1).update(STATES, TOKENS)
    assert torch.equal(components.tables.temporal[:2], means.temporal)


@pytest.mark.parametrize("method", ["means", "least_squares"])
def test_splitting_longer_states_does_not_change_the_sums(method):
    components = GrowingComponents(1, method).update(STATES, TOKENS)
    sums = components.tables
    components.split(torch.ones(1, 40, 1), torch.ones(1, 40, dtype=torch.long))
    assert components.tables is sums
    assert sums.n_positions == 16


@pytest.mark.parametrize("method", ["means", "least_squares"])
def test_states_longer_than_the_sums_have_no_temporal_part_there(method):
    components = GrowingComponents(1, method).update(STATES, TOKENS)
    parts = components.split(torch.ones(1, 40, 1), torch.ones(1, 40, dtype=torch.long))
    assert parts.unseen_positions == 38
    assert not parts.temporal[0, 2:].any()


def test_an_update_after_a_split_is_part_of_the_next_split():
    components = GrowingComponents(1).update(STATES, TOKENS)
    components.split(STATES, TOKENS)
    components.update(STATES, TOKENS + 2)
    parts = components.split(STATES, TOKENS + 2)
    assert parts.unseen_tokens == 0


@pytest.mark.parametrize("token", [pytest.param(1 << 24, id="too large"), pytest.param(-1, id="negative")])
def test_an_id_outside_every_vocabulary_is_refused_with_advice_that_can_be_followed(token):
    components = GrowingComponents(1)
    tokens = torch.tensor([[token, 7]])
    with pytest.raises(BadInput, match=r"torch.unique\(tokens, return_inverse=True\)"):
        components.update(torch.ones(1, 2, 1), tokens)
    _, renumbered = torch.unique(tokens, return_inverse=True)
    components.update(torch.ones(1, 2, 1), renumbered)
    assert components.occurrences == 2
