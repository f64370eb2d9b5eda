"""One attention: projections, rotations, a score and a term by hand; a pass: padding, heads and sides."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Attended, LinearMap, ModelPass
from attnlib.decomposition import Components
from tests.attnlib.adapters.adapter_builders import (
    SOURCE_MASK,
    TARGET_MASK,
    TOKENS,
    attended_of,
    checked,
    normal,
    pass_of,
    rotary,
)
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
    made, states, mask = nn.Linear(6, 8).double(), normal(3, 5, 6), SOURCE_MASK
    parts = split(states, 0, mask)
    for head, rows in enumerate((slice(0, 4), slice(4, 8))):
        found = LinearMap.of(made, 2).of_parts(parts, head)
        weight, bias = made.weight[rows].detach(), made.bias[rows].detach()
        torch.testing.assert_close(found.temporal[mask], (parts.temporal @ weight.T + bias)[mask])
        torch.testing.assert_close(found.input, parts.input @ weight.T)
        torch.testing.assert_close(found.residual, parts.residual @ weight.T)
        assert not any(part[~mask].any() for part in found)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_rotation_turns_each_pair_by_its_angle(interleaved):
    length, width = 4, 6
    states, turned = normal(2, length, width), torch.zeros(2, length, width).double()
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
    inputs = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0], [5.0]]])
    maps = LinearMap(torch.ones(1, 1, 1)), LinearMap(torch.ones(1, 1, 1), torch.ones(1, 1))
    one = Attended("cross", 0, *inputs, "decoder", "encoder", *maps, scale=2.0)
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


# A pass.


def test_what_stands_at_padding_does_not_matter():
    one = checked()
    attention = one.attention.masked_fill(~TARGET_MASK[:, None, :, None], torch.nan)
    inputs = one.key_inputs.masked_fill(~SOURCE_MASK[:, :, None], torch.nan)
    pass_of(replace(one, attention=attention, key_inputs=inputs)).check()


def turned(tensor, **axes):
    """With the padding of every row in front, along the axes of some sides."""
    for side, axis in axes.items():
        order = torch.argsort(TOKENS[f"{side}_mask"].int(), dim=1, stable=True)
        rows = zip(tensor.expand(3, *tensor.shape[1:]), order, strict=True)
        tensor = torch.stack([row.index_select(axis - 1, places) for row, places in rows])
    return tensor


def test_padding_moves_to_the_right_with_all_that_belongs_to_a_position():
    valid = TARGET_MASK[:, :, None] & SOURCE_MASK[:, None]
    more = {"ignored_source": torch.arange(15).view(3, 5) % 4 == 0, "lexical_probe": torch.rand(3, 4, 5)}
    right = pass_of(checked(), **more)
    (one,) = right.attended
    axes = {"query_inputs": {"target": 1}, "key_inputs": {"source": 1}}
    axes |= {name: {"target": 2, "source": 3} for name in ("attention", "position_bias")}
    left = replace(one, **{name: turned(getattr(one, name), **own) for name, own in axes.items()})
    names = (*TOKENS, "target_outputs")
    sides = {name: turned(getattr(right, name), **{name[:6]: 1}) for name in names}
    sides["ignored_source"] = turned(right.ignored_source, source=1)
    sides["lexical_probe"] = turned(right.lexical_probe, target=1, source=2)
    assert not sides["source_mask"][1, 0]
    found = ModelPass(**sides, attended=(left,))
    found.check()
    for name in names:
        assert torch.equal(getattr(found, name), getattr(right, name)), name
    assert torch.equal(found.counted("source"), right.counted("source"))
    assert torch.equal(found.lexical_probe[valid], right.lexical_probe[valid])
    for name in ("query_inputs", "key_inputs", "attention"):
        assert torch.equal(getattr(found.attended[0], name), getattr(one, name)), name
    torch.testing.assert_close(found.attended[0].scores, one.scores)


def test_a_rotated_head_is_a_trace_whose_states_make_its_scores():
    one = attended_of(query_rotation=rotary(4, 4), key_rotation=rotary(5, 4))
    trace = pass_of(one).head(one, 1)
    torch.testing.assert_close(trace.decoder_states @ trace.encoder_states.mT, one.scores[:, 1])
    assert trace.context is trace.logits is None
    assert trace.to("cpu").scores is trace.scores


def test_sites_are_the_states_that_projections_read():
    first = attended_of()
    second = attended_of(query_inputs=normal(3, 4, 6, seed=30), query_site="upper")
    sites = pass_of(first, second).sites()
    assert list(sites) == ["decoder", "encoder", "upper"]
    assert [side for side, _ in sites.values()] == ["target", "source", "target"]
    assert sites["upper"][1] is second.query_inputs
