"""The kernels have the digits of torch's path, bit for bit; and they run where they should, and only there.

Interpreted, the same functions run without numba, so that they are tested where it is not installed.
"""

import sys
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import Components
from attnlib.decomposition import kernels
from attnlib.decomposition.sums import BAG
from attnlib.errors import BadInput
from tests.attnlib.decomposition.component_builders import assert_same, corpora, tensors

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LAYOUTS = ("contiguous", "length first", "every other unit", "width reversed in memory")
COMPILED = kernels._compiled
TABLES = ("position_sums", "token_sums", "pair_counts")
NEEDS_NUMBA = pytest.mark.skipif(not find_spec("numba"), reason="an extra")
WAYS = [
    "interpreted",
    pytest.param("numba", marks=[pytest.mark.slow, NEEDS_NUMBA]),  # to compile takes ten seconds
]


@pytest.fixture(params=WAYS, scope="module", autouse=True)
def kernel(request):
    """Batches of every size go through the kernels, compiled or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FEWEST_NUMBERS", 0)
        patch.setattr(kernels, "MOST_THREADS", sys.maxsize)
        if request.param == "interpreted":
            patch.setattr(kernels, "is_available", lambda: True)
            patch.setattr(kernels, "_compiled", lambda function: function)
        yield request.param


@contextmanager
def without_kernels():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FEWEST_NUMBERS", sys.maxsize)
        yield


def laid_out(states, layout):
    """The same states with other strides."""
    if layout == "length first":
        return states.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "every other unit":
        return torch.stack([states, states], dim=-1)[..., 0]
    if layout == "width reversed in memory":
        return states.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    return states


def summed(corpus, dtype, layout, **sizes):
    """Components of the corpus, and of what is left of it after its first sample."""
    states, tokens, mask = tensors(corpus, dtype)
    states = laid_out(states, layout)
    components = Components(states.shape[2], **sizes).update(states, tokens, mask)
    return components.update(states[1:], tokens[1:], mask[1:])


def sizes_of(corpus, is_growing):
    if is_growing:
        return {}
    return {"n_tokens": corpus[3], "n_positions": corpus[2].shape[1]}


@given(corpora(), st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.booleans())
def test_an_update_has_the_digits_of_two_readings(corpus, dtype, layout, is_growing):
    sizes = sizes_of(corpus, is_growing)
    components = summed(corpus, dtype, layout, **sizes)
    with without_kernels():
        expected = summed(corpus, dtype, layout, **sizes)
    for table in TABLES:
        assert torch.equal(getattr(components, table), getattr(expected, table)), table


def sums_loop(states, tokens, mask, n_tokens):
    """The ten lines that update has to agree with: float64 sums by position and by token, and counts."""
    position_sums = np.zeros(states.shape[1:])
    token_sums = np.zeros((n_tokens, states.shape[2]))
    counts = np.zeros((n_tokens, states.shape[1]), int)
    for sample, position in np.argwhere(mask):
        token = tokens[sample, position]
        position_sums[position] += states[sample, position]
        token_sums[token] += states[sample, position]
        counts[token, position] += 1
    return position_sums, token_sums, counts


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
@given(corpus=corpora())
def test_an_update_agrees_with_a_loop(dtype, tolerance, corpus):
    """Up to a share of the largest state, times the number of states in a sum."""
    states, tokens, mask = tensors(corpus, dtype)
    sizes = sizes_of(corpus, is_growing=False)
    components = Components(states.shape[2], **sizes).update(states, tokens, mask)
    expected = sums_loop(states.double().numpy(), *corpus[1:])
    assert_same(
        (getattr(components, table) for table in TABLES), expected, corpus, tolerance * corpus[2].sum()
    )


@given(corpora(), st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.booleans())
def test_a_split_has_the_digits_of_blocks(corpus, dtype, layout, is_growing):
    components = summed(corpus, dtype, layout, **sizes_of(corpus, is_growing))
    states, tokens, mask = tensors(corpus, dtype)
    parts = components.split(laid_out(states, layout), tokens, mask)
    with without_kernels():
        expected = components.split(states, tokens, mask)
    for part, expected_part in zip(parts, expected, strict=True):
        assert torch.equal(part, expected_part)


BATCH = torch.ones(2, 3, 4), torch.tensor([[0, 1, 2], [3, 0, 1]])


def test_the_kernel_sums_what_it_serves():
    states, tokens = BATCH
    assert kernels.read_once(states, tokens.numpy(), np.ones((2, 3), bool), n_rows=4) is not None


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_refusing_a_state_that_is_not_finite_changes_nothing(bad, dtype):
    states, tokens = BATCH[0].to(dtype), BATCH[1]
    components = Components(4).update(states, tokens)
    before = {name: table.clone() for name, table in components.state_dict().items()}
    states = states.clone()
    states[1, 2, 3] = bad
    with np.errstate(invalid="ignore"), pytest.raises(BadInput, match="sample 1, position 2"):
        components.update(states, tokens + 7)
    after = components.state_dict()
    assert after.keys() == before.keys()
    for name, table in before.items():
        assert torch.equal(after[name], table), name


def test_states_whose_bags_would_overflow_are_summed_in_double():
    states = torch.full((3, 1, 1), 3e38)
    with np.errstate(over="ignore"):
        components = Components(1).update(states, torch.zeros(3, 1, dtype=torch.int64))
    assert components.token_sums.item() == 3 * float(states[0])


@pytest.mark.parametrize("largest", [1e3, 1e30, 1e37])
def test_states_that_cancel_are_summed_to_the_rounding_of_the_largest(largest):
    """Whatever the size of the states: a sum in single precision is as exact as the module says."""
    states = torch.tensor([largest, largest * 1e-9, -largest], dtype=torch.float32).view(3, 1, 1)
    components = Components(1).update(states, torch.zeros(3, 1, dtype=torch.int64))
    exact = float(states.double().sum())
    assert abs(components.token_sums.item() - exact) <= BAG * 6e-8 * largest


def refuse_to_start():
    raise AssertionError("numba is imported")


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"FEWEST_NUMBERS": BATCH[0].numel() + 1}, id="small batch"),
        pytest.param({"MOST_THREADS": 0}, id="many threads"),
    ],
)
def test_numba_is_not_imported_for(limits, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setattr(kernels, name, limit)
    monkeypatch.setattr(kernels, "is_available", refuse_to_start)
    assert Components(4).update(*BATCH).occurrences == 6


def test_without_numba_torch_sums(monkeypatch):
    monkeypatch.setattr(kernels, "is_available", lambda: False)
    assert Components(4).update(*BATCH).occurrences == 6


def test_kernels_are_compiled_anew_where_no_folder_can_keep_them(monkeypatch):
    def njit(function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return partial(function)

    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(njit=njit))
    assert COMPILED(sums_loop).func == sums_loop


@pytest.fixture
def minus():
    """States of -1, whose sign torch has not carried out yet."""
    states = torch.complex(torch.zeros(2, 3, 4), BATCH[0]).conj().imag
    assert states.is_neg()
    return states


@pytest.mark.signatures
def test_states_with_a_lazy_minus_sign_are_summed(minus):
    assert Components(4).update(minus, BATCH[1]).position_sums.eq(-2).all()


def test_states_with_a_lazy_minus_sign_are_split(minus):
    components = Components(4).update(minus, BATCH[1])
    assert components.split(minus, BATCH[1]).total().eq(-1).all()


def test_states_with_a_gradient_are_summed():
    states = BATCH[0].clone().requires_grad_()
    assert not Components(4).update(states, BATCH[1]).split(states, BATCH[1]).residual.requires_grad


@pytest.mark.signatures
def test_a_large_batch_in_float32_has_the_digits_of_two_readings():
    """Many full bags a word and a position, in which the order of a sum shows."""
    rng = torch.Generator().manual_seed(0)
    states = 3 + torch.randn(200, 4, 8, generator=rng)
    tokens = torch.randint(3, (200, 4), generator=rng)
    components = Components(8).update(states, tokens)
    with without_kernels():
        expected = Components(8).update(states, tokens)
    for table in TABLES:
        assert torch.equal(getattr(components, table), getattr(expected, table)), table
