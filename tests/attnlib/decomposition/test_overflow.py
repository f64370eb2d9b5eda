"""States near the end of a precision are summed in the next, or refused: no sum is infinite."""

import pytest
import torch

from attnlib import Components
from attnlib.errors import BadInput

BIG = 3e38
TOKENS = torch.tensor([[0, 0], [1, 1]])
OPPOSITE = torch.tensor(
    [[[BIG], [BIG]], [[-BIG], [-BIG]]]
)  # the sum by position is zero, that by token is not

KINDS = [
    pytest.param(lambda: Components(1, n_tokens=2, n_positions=2), id="fixed"),
    pytest.param(lambda: Components(1), id="growing"),
]


@pytest.mark.parametrize("make", KINDS)
def test_states_whose_sums_by_token_would_overflow_in_single_precision_are_summed_in_double(make):
    sums = make().update(OPPOSITE, TOKENS).token_sums
    assert sums.flatten().tolist() == [2 * float(OPPOSITE[0, 0]), 2 * float(OPPOSITE[1, 0])]


@pytest.mark.parametrize("make", KINDS)
def test_states_whose_sums_overflow_in_double_precision_are_refused(make):
    with pytest.raises(BadInput, match="not finite"):
        make().update(1e308 * OPPOSITE.double().sign(), TOKENS)


@pytest.mark.parametrize("make", KINDS)
def test_a_refused_batch_leaves_the_sums_alone(make):
    components, expected = make(), make()
    for sums in (components, expected):
        sums.update(torch.ones(2, 2, 1), TOKENS)
    with pytest.raises(BadInput):
        components.update(1e308 * OPPOSITE.double().sign(), TOKENS)
    states = torch.randn(2, 2, 1)
    assert torch.equal(components.split(states, TOKENS).input, expected.split(states, TOKENS).input)


@pytest.mark.parametrize("make", KINDS)
def test_large_states_whose_sums_are_finite_are_summed(make):
    components = make().update(OPPOSITE / 4, TOKENS)
    parts = components.split(OPPOSITE / 4, TOKENS)
    assert parts.input.flatten().tolist() == pytest.approx((OPPOSITE / 4).flatten().tolist())


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, BIG])
@pytest.mark.parametrize("make", KINDS)
def test_what_stands_at_padding_does_not_matter(make, garbage):
    states = torch.tensor([[[1.0], [2.0]], [[3.0], [garbage]]])
    mask = torch.tensor([[True, True], [True, False]])
    components = make().update(states, TOKENS, mask)
    parts = components.split(states, TOKENS, mask)
    assert parts.temporal[0].flatten().tolist() == [2.0, 2.0]
