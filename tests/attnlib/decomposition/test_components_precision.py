"""Precisions, layouts and devices of `Components`: the sums must not depend on how the states arrive."""

import pytest
import torch

from attnlib.decomposition import Components

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


def corpus(batch, length=5, width=3, n_tokens=11, *, ragged=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(batch, length, width, generator=generator, dtype=torch.float64)
    tokens = torch.randint(n_tokens, (batch, length), generator=generator)
    lengths = torch.randint(1, length + 1, (batch, 1), generator=generator) if ragged else length
    return states, tokens, torch.arange(length).expand(batch, length) < lengths


def exact_sums(states, tokens, mask, n_tokens):
    kept = states.double()[mask]
    positions = mask.nonzero()[:, 1]
    by_position = torch.zeros(mask.shape[1], states.shape[2], dtype=torch.float64)
    by_token = torch.zeros(n_tokens, states.shape[2], dtype=torch.float64)
    return by_position.index_add_(0, positions, kept), by_token.index_add_(0, tokens[mask], kept)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("batch", [1, 31, 32, 33, 64, 200])
def test_sums_are_exact_around_the_size_of_a_bag(batch, ragged):
    states, tokens, mask = corpus(batch, n_tokens=2, ragged=ragged)
    states = torch.round(8 * states)  # integers: every sum is exact in float32
    components = Components(2, 5, 3).update(states.float(), tokens, mask)
    by_position, by_token = exact_sums(states, tokens, mask, 2)
    assert torch.equal(components.position_sums, by_position)
    assert torch.equal(components.token_sums, by_token)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_come_in_the_dtype_and_on_the_device_of_the_states(dtype, device):
    states, tokens, mask = (tensor.to(device) for tensor in corpus(40, ragged=True))
    states = states.to(dtype)
    components = Components(11, 5, 3).update(states, tokens, mask)
    parts = components.split(states, tokens, mask)
    for part in parts:
        assert part.dtype == dtype
        assert part.device == states.device
    step = torch.finfo(dtype).eps * states.abs().max()
    assert (parts.total() - states)[mask].abs().max() <= 4 * step
    by_position, _ = exact_sums(states.cpu(), tokens.cpu(), mask.cpu(), 11)
    assert torch.allclose(components.position_sums, by_position, rtol=1e-5, atol=1e-5)


def test_half_precision_sums_do_not_saturate():
    """4,096 ones: in float16 a running sum would stop at 2,048."""
    ones = torch.ones(4096, 1, 2, dtype=torch.float16)
    tokens, mask = torch.zeros(4096, 1, dtype=torch.int64), torch.ones(4096, 1, dtype=torch.bool)
    components = Components(1, 1, 2).update(ones, tokens, mask)
    assert components.position_sums.tolist() == [[4096.0, 4096.0]]
    assert components.token_sums.tolist() == [[4096.0, 4096.0]]


@pytest.mark.parametrize("ragged", [False, True])
def test_a_large_mean_is_kept_to_float32_rounding(ragged):
    """One token 200,000 times, a mean 1,000 times the spread: a running sum in float32 loses 1e-4 there."""
    generator = torch.Generator().manual_seed(0)
    states = 1000.1 + torch.randn(100_000, 2, 4, generator=generator)
    tokens = torch.zeros(100_000, 2, dtype=torch.int64)
    mask = torch.ones(100_000, 2, dtype=torch.bool)
    mask[: 1000 * ragged, 1] = False
    by_position, by_token = exact_sums(states, tokens, mask, 1)
    components = Components(1, 2, 4).update(states, tokens, mask)
    assert (components.position_sums / by_position - 1).abs().max() < 2e-7
    assert (components.token_sums / by_token - 1).abs().max() < 2e-7


@pytest.mark.parametrize("ragged", [False, True])
def test_memory_layout_does_not_matter(ragged):
    states, tokens, mask = corpus(64, ragged=ragged)
    plain = Components(11, 5, 3).update(states, tokens, mask)
    turned = states.transpose(0, 1).contiguous().transpose(0, 1)
    strided = torch.stack((states, states + 1), dim=-1)[..., 0]
    for other in (turned, strided, states.clone().requires_grad_()):
        again = Components(11, 5, 3).update(other, tokens, mask)
        assert torch.equal(again.token_sums, plain.token_sums)
        assert torch.equal(again.position_sums, plain.position_sums)
        assert not again.split(other, tokens, mask).total().requires_grad


@pytest.mark.parametrize("integer", [torch.uint8, torch.int32, torch.int64])
def test_any_integer_tokens(integer):
    states, tokens, mask = corpus(40)
    plain = Components(11, 5, 3).update(states, tokens, mask)
    other = Components(11, 5, 3).update(states, tokens.to(integer), mask)
    assert torch.equal(other.token_sums, plain.token_sums)
    assert torch.equal(
        other.split(states, tokens.to(integer), mask).stack(), plain.split(states, tokens, mask).stack()
    )


def test_vocabulary_beyond_sixteen_bits():
    states, tokens, mask = corpus(50, n_tokens=100_000)
    components = Components(100_000, 5, 3).update(states, tokens, mask)
    _, by_token = exact_sums(states, tokens, mask, 100_000)
    assert torch.allclose(components.token_sums, by_token, atol=1e-12)


def test_unseen_tokens_and_positions_are_counted_and_have_no_component():
    states, tokens, mask = corpus(40, n_tokens=4)
    components = Components(6, 7, 3).update(states, tokens, mask)
    states = torch.ones(2, 6, 3, dtype=torch.float64)
    tokens = torch.tensor([[0, 5, 5, 1, 1, 2], [3, 2, 1, 0, 5, 5]])
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    parts = components.split(states, tokens, mask)
    assert parts.unseen_tokens == 2
    assert parts.valid == 10
    assert parts.unseen_share == 0.2
    assert parts.unseen_positions == 1
    assert not parts.input[0, 1:3].any()
    assert not parts.temporal[0, 5].any()
    assert torch.allclose(parts.total()[mask], states[mask])


def test_columns_of_padding_beyond_the_table_are_no_error():
    states, tokens, mask = corpus(3, length=5)
    mask = mask & (torch.arange(5) < 4)
    components = Components(11, 4, 3).update(states, tokens, mask)
    parts = components.split(states, tokens, mask)
    assert not parts.total()[:, 4].any()
    assert components.position_counts.tolist() == [3, 3, 3, 3]


def test_nothing_to_add_and_nothing_to_split_with():
    empty = torch.empty(0, 5, 3), torch.empty(0, 5, dtype=torch.int64), torch.empty(0, 5, dtype=torch.bool)
    components = Components(11, 5, 3).update(*empty)
    assert not components.seen.any()
    with pytest.raises(ValueError, match="no samples yet"):
        components.split(*corpus(2))
    with pytest.raises(ValueError, match="n_tokens=0"):
        Components(0, 5, 3)


def test_results_follow_a_later_update():
    """The solved tables are kept between calls: an update must throw them away."""
    first, second = corpus(10, seed=1), corpus(10, seed=2)
    components = Components(11, 5, 3).update(*first)
    before = components.temporal.clone()
    components.split(*first)
    components.update(*second)
    both = [torch.cat(pair) for pair in zip(first, second, strict=True)]
    whole = Components(11, 5, 3).update(*both)
    assert not torch.allclose(components.temporal, before)
    assert (components.split(*both).stack() - whole.split(*both).stack()).abs().max() < 1e-12
