"""One attention: projections dealt out among heads, rotations written out, a score and a term."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Attended, LinearMap
from attnlib.decomposition import Components
from tests.attnlib.adapters.adapter_builders import DOUBLE, attended_of, normal, projection, rotary
from tests.attnlib.models.model_builders import generator


def split(states, seed, mask=None):
    """Random tokens, the components of these very states, and their parts."""
    batch, length, width = states.shape
    tokens = torch.randint(5, (batch, length), generator=generator(seed))
    mask = torch.ones(batch, length, dtype=torch.bool) if mask is None else mask
    return Components(5, length, width).update(states, tokens, mask).split(states, tokens, mask)


def test_rows_of_a_projection_are_dealt_out_among_the_heads_in_order():
    # Head 0 has rows 0 and 1, head 1 rows 2 and 3: (x, y), then (10 x, 10 y), with biases 1, 2, 3, 4.
    made = nn.Linear(2, 4)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [10, 0], [0, 10]]))
        made.bias.copy_(torch.tensor([1.0, 2, 3, 4]))
    own = LinearMap.of(made, 2)
    assert own.heads == 2
    assert own(torch.tensor([[[5.0, 7.0]]])).tolist() == [[[[6, 9]], [[53, 74]]]]
    assert not own.weight.requires_grad


def test_the_bias_of_a_projection_goes_with_the_temporal_part():
    made, states = projection(6, 8, 3), normal(3, 5, 6)
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] * 4 + [False]])
    parts = split(states, 0, mask)
    for head, rows in enumerate((slice(0, 4), slice(4, 8))):
        found = LinearMap.of(made, 2).of_parts(parts, head)
        weight, bias = made.weight[rows], made.bias[rows]
        torch.testing.assert_close(found.temporal[mask], (parts.temporal @ weight.T + bias)[mask])
        torch.testing.assert_close(found.input, parts.input @ weight.T)
        torch.testing.assert_close(found.residual, parts.residual @ weight.T)
        assert not any(part[~mask].any() for part in found)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_rotation_turns_each_pair_by_its_angle(interleaved):
    length, width = 4, 6
    states, turned = normal(2, length, width), torch.zeros(2, length, width, dtype=DOUBLE)
    for position in range(length):
        for pair in range(width // 2):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
            angle = position * 100.0 ** (-2 * pair / width)
            x, y = states[:, position, first], states[:, position, second]
            turned[:, position, first] = x * math.cos(angle) - y * math.sin(angle)
            turned[:, position, second] = x * math.sin(angle) + y * math.cos(angle)
    torch.testing.assert_close(rotary(length, width, interleaved=interleaved)(states), turned)


def test_scores_by_hand():
    # Queries 1 and 2, keys 3 and 5, doubled and with 1 added to the keys: 2 · (4, 6) and 2 · 2 · (4, 6).
    one = Attended(
        kind="cross",
        layer=0,
        query_inputs=torch.tensor([[[1.0], [2.0]]]),
        key_inputs=torch.tensor([[[3.0], [5.0]]]),
        query_site="decoder",
        key_site="encoder",
        query_map=LinearMap(torch.ones(1, 1, 1)),
        key_map=LinearMap(torch.ones(1, 1, 1), torch.ones(1, 1)),
        scale=2.0,
    )
    assert one.scores.tolist() == [[[[8, 12], [16, 24]]]]
    biased = replace(one, position_bias=torch.tensor([[[[0.0, 100.0], [200.0, 0.0]]]]))
    assert biased.scores.tolist() == [[[[8, 112], [216, 24]]]]
    assert (one.name, one.heads) == ("cross.0", 1)


def test_a_term_is_made_of_rotated_parts():
    turn = rotary(4, 4)
    one = attended_of(source=4, query_rotation=turn, key_rotation=turn)
    query, key = split(one.query_inputs, 7), split(one.key_inputs, 8)
    asks, answers = (own.weight[1] for own in (one.query_map, one.key_map))
    expected = turn(query.input @ asks.T) @ turn(key.residual @ answers.T).mT * one.scale
    torch.testing.assert_close(one.terms(1, query, key)[1, 2], expected)
