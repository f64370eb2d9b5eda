"""A pass: what is compared with the model's attention, padding of either side, heads and sides, refusals."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import LinearMap, ModelPass
from attnlib.errors import BadInput
from tests.attnlib.adapters.adapter_builders import (
    SOURCE_MASK,
    TARGET_MASK,
    attended_of,
    checked,
    normal,
    pass_of,
    rotary,
    softmax_of,
)

# The check.


@pytest.mark.parametrize(
    "change", ["scale", "bias", "projection", "mask", "causal", "rotation", "head", "sum"]
)
def test_what_the_model_does_not_compute_with_is_noticed(change):
    one = checked()
    changed = {
        "scale": {"scale": 0.501},
        "bias": {"position_bias": None},
        "projection": {"key_map": one.query_map},
        "mask": {"attention": softmax_of(one, torch.ones(3, 5, dtype=torch.bool))},
        "causal": {"causal": True},
        "rotation": {"query_rotation": rotary(4, 4)},
        "head": {"attention": one.attention.flip(1)},
        "sum": {"attention": one.attention * 0.99},
    }[change]
    message = {
        "mask": "of a row's attention is on what is masked here; give the masks that the model was given",
        "causal": "of a row's attention is on what is masked here",
        "sum": "a row of attention is 0.01 away from a sum of one",
    }.get(change, "attention from the caught projections is up to")
    with pytest.raises(BadInput, match=rf"cross\.1, head [01]: .*{message}"):
        pass_of(replace(one, **changed)).check()


def test_what_stands_at_padding_does_not_matter():
    one = checked()
    attention = one.attention.masked_fill(~TARGET_MASK[:, None, :, None], torch.nan)
    inputs = one.key_inputs.masked_fill(~SOURCE_MASK[:, :, None], torch.nan)
    pass_of(replace(one, attention=attention, key_inputs=inputs)).check()


# Padding.


def turned(tensor, **axes):
    """With the padding of every row in front, along the axes of some sides."""
    for side, axis in axes.items():
        mask = SOURCE_MASK if side == "source" else TARGET_MASK
        order = torch.argsort(mask.int(), dim=1, stable=True)
        rows = zip(tensor.expand(3, *tensor.shape[1:]), order, strict=True)
        tensor = torch.stack([row.index_select(axis - 1, places) for row, places in rows])
    return tensor


def test_padding_moves_to_the_right_with_all_that_belongs_to_a_position():
    valid = TARGET_MASK[:, :, None] & SOURCE_MASK[:, None]
    more = {"ignored_source": torch.arange(15).view(3, 5) % 4 == 0, "lexical_probe": torch.rand(3, 4, 5)}
    right = pass_of(checked(), **more)
    (one,) = right.attended
    matrices = {
        name: turned(getattr(one, name), target=2, source=3) for name in ("attention", "position_bias")
    }
    inputs = turned(one.query_inputs, target=1), turned(one.key_inputs, source=1)
    left = replace(one, query_inputs=inputs[0], key_inputs=inputs[1], **matrices)
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
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


def test_rotated_states_are_not_moved():
    one = attended_of(query_rotation=rotary(4, 4))
    with pytest.raises(BadInput, match=r"cross\.1 rotates by position: pad its batches at the right"):
        pass_of(one, target_mask=TARGET_MASK.flip(1))


# Heads and sides.


def test_a_rotated_head_is_a_trace_whose_states_make_its_scores():
    one = attended_of(query_rotation=rotary(4, 4), key_rotation=rotary(5, 4))
    trace = pass_of(one).head(one, 1)
    torch.testing.assert_close(trace.decoder_states @ trace.encoder_states.mT, one.scores[:, 1])
    assert trace.context is None
    assert trace.logits is None
    assert trace.to("cpu").scores is trace.scores


def test_sites_are_the_states_that_projections_read():
    first = attended_of()
    second = attended_of(query_inputs=normal(3, 4, 6, seed=30), query_site="upper")
    sites = pass_of(first, second).sites()
    assert list(sites) == ["decoder", "encoder", "upper"]
    assert [side for side, _ in sites.values()] == ["target", "source", "target"]
    assert sites["upper"][1] is second.query_inputs


# What is refused.


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["query_inputs", "key_inputs", "position_bias", "attention"])
def test_what_is_no_number_at_a_valid_position_is_refused(name, value):
    one = checked()
    wrong = getattr(one, name).clone()
    wrong[(0, 1, 1, 2) if wrong.dim() == 4 else (0, 1, 2)] = value
    at = "1 and 2" if wrong.dim() == 4 else "1"
    with pytest.raises(
        BadInput, match=rf"cross\.1: {name} hold NaN or infinity .*\(sample 0, position {at}\)"
    ):
        pass_of(replace(one, **{name: wrong}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_inputs": normal(3, 5, 6)}, r"cross\.1: states of shape \(3, 5, 6\); expected \(3, 4, 6\)"),
        ({"key_inputs": normal(3, 5, 7)}, r"cross\.1: states of shape \(3, 5, 7\); expected \(3, 5, 6\)"),
        ({"attention": torch.ones(3, 2, 5, 4)}, r"attention of shape .*; expected \(3, 2, 4, 5\)"),
        ({"position_bias": torch.ones(3, 1, 4, 5)}, r"position_bias of shape \(3, 1, 4, 5\)"),
        ({"attention": torch.ones(3, 4, 5)}, r"attention of shape \(3, 4, 5\)"),
        ({"kind": "encoder_self"}, r"encoder_self\.1: states of shape \(3, 4, 6\); expected \(3, 5, 6\)"),
        ({"scale": float("nan")}, r"cross\.1: scale is nan; give a finite number"),
        ({"key_map": LinearMap(normal(2, 4, 6) / 0)}, r"cross\.1: key weight holds NaN or infinity"),
        ({"key_map": LinearMap(normal(2, 4, 6), normal(2, 4) / 0)}, "key bias holds NaN or infinity"),
    ],
)
def test_attentions_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        pass_of(attended_of(**changes))


@pytest.mark.parametrize(
    ("name", "tokens", "message"),
    [
        ("source_tokens", torch.ones(3, 4), r"source_tokens of shape \(3, 4\) with a mask of shape"),
        ("target_mask", torch.zeros(3, 4).bool(), "target_tokens row 0 is all padding: leave"),
        ("target_outputs", torch.full((3, 4), -100), "target_outputs hold -100 at valid position 0"),
    ],
)
def test_tokens_that_do_not_fit_are_refused(name, tokens, message):
    """As those of a TokenBatch are, by the names that they have here."""
    with pytest.raises(BadInput, match=message):
        pass_of(**{name: tokens})
