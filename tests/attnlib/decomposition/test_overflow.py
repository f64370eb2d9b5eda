"""States near the end of a precision are summed in the next, or refused: no sum is infinite."""

import pytest
import torch

from attnlib import Components
from attnlib.decomposition.sums import NUMBERS_AT_ONCE
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


ORDINARY = [
    pytest.param("means", torch.float32, id="means"),
    pytest.param("means", torch.bfloat16, id="means of half precision"),
    pytest.param("least_squares", torch.float32, id="least squares, with the sum of squares"),
    pytest.param("least_squares", torch.float64, id="least squares of double precision"),
]


@pytest.mark.parametrize(("method", "dtype"), ORDINARY)
def test_ordinary_states_are_not_read_a_third_time(method, dtype, monkeypatch):
    """Their sums show that they are finite; a look at every state costs as much as summing them."""

    def refuse(states, valid):
        raise AssertionError("every state was looked at")

    monkeypatch.setattr("attnlib.decomposition.sums._refuse_overflow", refuse)
    assert Components(1, method).update(torch.ones(2, 2, 1, dtype=dtype), TOKENS).occurrences == 4


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(("method", "dtype"), ORDINARY)
def test_a_state_that_is_not_finite_is_named(method, dtype, bad):
    components = Components(1, method).update(torch.ones(2, 2, 1, dtype=dtype), TOKENS)
    states = torch.ones(2, 2, 1, dtype=dtype)
    states[1, 0] = bad
    with pytest.raises(BadInput, match="first at sample 1, position 0"):
        components.update(states, TOKENS)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(("method", "dtype"), ORDINARY)
def test_a_state_that_is_not_finite_changes_nothing(method, dtype, bad):
    components = Components(1, method).update(torch.ones(2, 2, 1, dtype=dtype), TOKENS)
    before = {name: table.clone() for name, table in components.state_dict().items()}
    states = torch.ones(2, 2, 1, dtype=dtype)
    states[1, 0] = bad
    with pytest.raises(BadInput):
        components.update(states, TOKENS)
    for name, table in components.state_dict().items():
        assert torch.equal(table, before[name]), name


def test_opposite_infinities_at_one_position_are_refused():
    states = torch.tensor([[[torch.inf]], [[-torch.inf]]])
    with pytest.raises(BadInput, match="first at sample 0, position 0"):
        Components(1).update(states, torch.tensor([[0], [1]]))


def test_a_token_whose_bags_overflow_is_summed_in_double_beside_ordinary_tokens():
    """Their sum by position is zero, and the blocks of other tokens stay in single precision."""
    n_samples, width = 8, NUMBERS_AT_ONCE // 2  # two bags a block
    states = torch.ones(n_samples, 1, width)
    tokens = torch.arange(n_samples)[:, None].clone()
    states[[1, 5]] = BIG
    states[[2, 6]] = -BIG
    tokens[5], tokens[6] = 1, 2
    components = Components(width).update(states, tokens)
    big = float(states[1, 0, 0])
    assert components.token_sums[:, 0].tolist() == [1, 2 * big, -2 * big, 1, 1, 0, 0, 1]
    assert components.token_sums.eq(components.token_sums[:, :1]).all()
