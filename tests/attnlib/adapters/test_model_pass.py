"""A pass: what padding moves, what stands at it, heads and sides."""

from dataclasses import replace

import torch

from attnlib.adapters import ModelPass
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
