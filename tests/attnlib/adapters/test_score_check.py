"""The check has force in every precision: what is wrong is refused, what rounding does never is."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import HuggingFace, LinearMap, Modules, Rotary, TokenBatch
from attnlib.adapters.model_pass import UNIT, WORST, squared_sizes, unit_errors
from attnlib.errors import BadInput
from tests.attnlib.adapters.adapter_builders import (
    FAMILIES,
    HEADS,
    HOOKED,
    KINDS,
    Reader,
    attended_of,
    drawn,
    model_of,
    rows_of,
    run,
)
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused

HALF = (torch.bfloat16, torch.float16)
PRECISIONS = (*HALF, torch.float32)
BATCH = TokenBatch.of_rows(rows_of((25, 13, 7, 21), 1), rows_of((20, 16, 2, 24), 2))


def of_reader(dtype, size):
    """A cross-attention written by hand; queries are multiplied by the size."""
    model = drawn(Reader())
    model.words = drawn(model.words, seed=1)
    with torch.no_grad():
        for value in model.to_q.parameters():
            value *= size
    return Modules(model.to(dtype), [HOOKED], run, start=2).trace(BATCH)


def of_family(name, dtype, size):
    """A model with queries and position biases of this size, its scores up to hundreds."""
    model = model_of(name)
    with torch.no_grad():
        for own, value in model.named_parameters():
            if own.endswith((".q.weight", "q_proj.weight", "q_proj.bias", "relative_attention_bias.weight")):
                value *= size
    return HuggingFace(model.to(dtype), kinds=KINDS).trace(BATCH)


WRONG = {
    "forgotten scale": lambda one: {"scale": 1.0 if one.scale != 1 else one.key_map.weight.shape[1] ** -0.5},
    "twice the scale": lambda one: {"scale": 2 * one.scale},
    "half the scale": lambda one: {"scale": one.scale / 2},
    "another head's keys": lambda one: {"key_map": LinearMap(one.key_map.weight.flip(0), one.key_map.bias)},
    "queries for keys": lambda one: {"key_map": one.query_map},
    "no position bias": lambda one: {"position_bias": None},
}


def of_head(one, head):
    maps = {
        f"{side}_map": LinearMap(own.weight[[head]], None if own.bias is None else own.bias[[head]])
        for side, own in (("query", one.query_map), ("key", one.key_map))
    }
    bias = None if one.position_bias is None else one.position_bias[:, [head]]
    return replace(one, **maps, attention=one.attention[:, [head]], position_bias=bias)


def assert_only_what_is_right_passes(found):
    """Heads by themselves, so that one does not hide another."""
    found.check()
    for one in found.attended:
        for what, wrong in WRONG.items():
            if what == "no position bias" and one.position_bias is None:
                continue
            for head in range(0, one.heads, 2):
                alone = replace(found, attended=(of_head(replace(one, **wrong(one)), head),))
                assert_refused(alone.check, "attention from the caught projections is up to")


@pytest.mark.parametrize("name", ["by hand", "T5", "Bart", "Marian"])
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("size", [1, 15])
def test_in_every_precision(name, dtype, size):
    found = of_reader(dtype, size) if name == "by hand" else of_family(name, dtype, size)
    assert size == 1 or max(float(one.scores.abs().max()) for one in found.attended) > 50
    assert_only_what_is_right_passes(found)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("size", [1, 100])
def test_rounding_stays_within_what_is_derived_of_it(name, dtype, size):
    """Unit errors of a mean square of a third at most, and none near the bound."""
    found = of_family(name, dtype, size)
    for one in found.attended:
        sizes, allowed = squared_sizes(one), found.allowed(one)
        least = torch.finfo(dtype).tiny
        for head in range(one.heads):
            own = one.attention[:, head].float()
            error = unit_errors(own, one.scores[:, head], sizes(head), allowed, UNIT[dtype], least)
            assert float(error.max()) < WORST / 2
            assert float(error.square().mean()) < 1 / 3 or len(error) < 30


@pytest.mark.parametrize(
    ("own", "scores", "allowed", "expected"),
    [
        # log 0.5/0.25 = 0.6931 and log 0.5/0.125 = 1.3863, of scores 0.7 and 1.5 below: 0.0069, 0.1137 off.
        ([0.25, 0.5, 0.125], [2.3, 3.0, 1.5], [True] * 3, [0.685, 11.371]),
        ([0.25, 0.5, 0.125], [2.3, 3.0, 1.5], [True, True, False], [0.685]),  # masked: not compared
        # Of a row of one weight nothing is known, nor of what is far below the least weight in both.
        ([1.0], [5.0], [True], [0]),
        ([0.0, 1.0], [-50.0, 5.0], [True] * 2, [0]),
        # log 1e-6 = -13.8155: a score of 10 below the largest would be a weight.
        ([0.0, 1.0], [-5.0, 5.0], [True] * 2, [381.551]),
        # And a weight that is there is not of a score that would be none: 4.6052 against 13.8155.
        ([0.01, 1.0], [-95.0, 5.0], [True] * 2, [921.034]),
    ],
)
def test_errors_are_counted_in_roundings_beside_the_largest_weight(own, scores, allowed, expected):
    own, scores = (torch.tensor([[row]], dtype=torch.float64) for row in (own, scores))
    squares = torch.full_like(own, 0.5)
    found = unit_errors(own, scores, squares, torch.tensor([[allowed]]), unit=0.01, least=1e-6)
    assert found.tolist() == pytest.approx(expected, abs=1e-3)


def test_squares_of_what_is_rounded():
    # Query (2, -1), key (3, 4), scale 1/2: terms 3 and -2, score 1, with its bias 6.
    one = replace(
        attended_of(1, 1, 1, 2, 1),
        query_inputs=torch.tensor([[[2.0, -1.0]]]),
        key_inputs=torch.tensor([[[3.0, 4.0]]]),
        query_map=LinearMap(torch.eye(2)[None]),
        key_map=LinearMap(torch.eye(2)[None]),
        position_bias=torch.tensor([[[[5.0]]]]),
    )
    assert squared_sizes(one)(0).tolist() == [[[2 * (3**2 + 2**2) + 1 + 6**2 + 1]]]
    # Terms that cancel in a query are rounded all the same: 2 - 2 = 0, of squares 4 + 4.
    one = replace(one, query_map=LinearMap(torch.tensor([[[1.0, 2.0], [0.0, 0.0]]])), position_bias=None)
    assert squared_sizes(one)(0).tolist() == [[[2 * 0.25 * (4 + 4) * 9 + 1]]]
    # A rotation deals them out among the coordinates.
    one = replace(one, query_rotation=Rotary(torch.zeros(1, 2), torch.ones(1, 2)))
    assert squared_sizes(one)(0).tolist() == [[[2 * 0.25 * (4 + 4) / 2 * (9 + 16) + 1]]]


# What one of the two bounds alone would let through.


def test_one_wrong_weight_among_thousands_is_noticed():
    found = of_reader(torch.float32, 1)
    (one,) = found.attended
    attention, row = one.attention.clone(), (1, 0, 3)
    least, largest = one.scores[row][:13].argmin(), one.scores[row][:13].argmax()
    squares = squared_sizes(one)(0)[1, 3]
    attention[row][least] *= (12 * UNIT[torch.float32] * (squares[least] + squares[largest]).sqrt()).exp()
    with pytest.raises(
        BadInput, match=r"head 0: attention .* is up to 12 times rounding .*, 0\.\d+ in the mean"
    ):
        replace(found, attended=(replace(one, attention=attention),)).check()


def test_what_is_wrong_a_little_everywhere_is_noticed():
    """No single weight is further away than rounding may be; so many of them are not by chance."""
    found = of_reader(torch.bfloat16, 1)
    (one,) = found.attended
    noise = torch.randn(one.scores.shape, generator=generator(0))
    sizes = torch.stack([squared_sizes(one)(head) for head in range(HEADS)], 1)
    off = replace(one, position_bias=1.9 * UNIT[torch.bfloat16] * sizes.sqrt() * noise.clamp(-2, 2))
    with pytest.raises(BadInput, match=r"is up to [0-7](\.\d+)? times rounding .*, [1-9][.\d]* in the mean"):
        replace(found, attended=(off,)).check()


def test_even_attention_is_even_by_any_scale():
    found = of_reader(torch.bfloat16, 1e-4)
    replace(found, attended=(replace(found.attended[0], scale=1.0),)).check()
