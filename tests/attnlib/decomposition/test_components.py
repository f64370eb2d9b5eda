"""Components: hand-worked integers, a two-line loop, a pandas group-by, and the laws the sums must obey."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import Components
from attnlib.errors import BadInput, CorruptFile


def components_loop(states, tokens, mask, n_tokens):
    """The definitions, one place at a time: mu, then chi."""

    def mean(rows):
        return rows.mean(0) if len(rows) else np.zeros(states.shape[2])

    temporal = np.stack([mean(states[mask[:, t], t]) for t in range(mask.shape[1])])
    return temporal, np.stack([mean((states - temporal)[mask & (tokens == w)]) for w in range(n_tokens)])


def components_pandas(states, tokens, mask, n_tokens):
    places = pd.DataFrame(states[mask])
    position, token = np.nonzero(mask)[1], tokens[mask]
    rest = places - places.groupby(position).transform("mean")
    temporal = places.groupby(position).mean().reindex(range(mask.shape[1]), fill_value=0.0)
    return temporal.to_numpy(), rest.groupby(token).mean().reindex(range(n_tokens), fill_value=0.0).to_numpy()


@st.composite
def corpora(draw):
    """(states, tokens, mask, n_tokens): ragged rows, masks with holes, rare tokens, garbage at padding."""
    batch, length, width = draw(st.integers(1, 70)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    n_tokens = draw(st.sampled_from([1, 2, 7, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    offset = draw(st.sampled_from([0.0, 1e3]))
    states = rng.normal(size=(batch, length, width)) + offset
    tokens = rng.integers(0, n_tokens, size=(batch, length))
    if draw(st.booleans()):
        mask = np.arange(length) < rng.integers(1, length + 1, size=(batch, 1))
    else:
        mask = rng.random((batch, length)) < 0.6
        mask[np.arange(batch), rng.integers(0, length, batch)] = True
    tokens[~mask] = draw(st.sampled_from([0, -1, 10**6]))
    states[~mask] = draw(st.sampled_from([0.0, np.nan, np.inf, 1e30]))
    return states, tokens, mask, n_tokens


def tensors(states, tokens, mask, dtype=torch.float64):
    return torch.from_numpy(states).to(dtype), torch.from_numpy(tokens), torch.from_numpy(mask)


def fitted(corpus, dtype=torch.float64, rows=slice(None)):
    states, tokens, mask = tensors(*corpus[:3], dtype)
    components = Components(corpus[3], mask.shape[1], states.shape[2])
    return components.update(states[rows], tokens[rows], mask[rows])


def assert_same(found, expected, scale, tolerance):
    for mine, theirs in zip(found, expected, strict=True):
        difference = np.abs(np.asarray(mine) - np.asarray(theirs)).max(initial=0.0)
        assert difference <= tolerance * scale, f"differ by {difference / scale} of the largest state"


def largest(corpus):
    return np.abs(corpus[0][corpus[2]]).max()


TOLERANCES = [(torch.float64, 1e-12), (torch.float32, 1e-5)]


def test_hand_worked():
    """Two samples of two places, tokens a b / a a: mu = (2, 6); a = (-1 + 1 + 2) / 3, b = -2."""
    states = torch.tensor([[[1.0], [4.0]], [[3.0], [8.0]]])
    tokens = torch.tensor([[0, 1], [0, 0]])
    mask = torch.ones(2, 2, dtype=torch.bool)
    components = Components(3, 2, 1).update(states, tokens, mask)
    assert components.temporal.flatten().tolist() == [2.0, 6.0]
    assert components.input.flatten().tolist() == [2 / 3, -2.0, 0.0]
    assert components.token_counts.tolist() == [3, 1, 0]
    assert components.position_counts.tolist() == [2, 2]
    assert components.seen.tolist() == [True, True, False]
    parts = components.split(states, tokens, mask)
    assert torch.allclose(parts.residual.flatten(), torch.tensor([-5 / 3, 0.0, 1 / 3, 4 / 3]))
    assert parts.residual[0, 1].item() == 0.0  # b was seen once: nothing is left on its own sample


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from(TOLERANCES))
def test_agrees_with_a_loop_and_with_pandas(corpus, precision):
    dtype, tolerance = precision
    components = fitted(corpus, dtype)
    found = components.temporal, components.input
    scale = largest(corpus)
    assert_same(found, components_loop(*corpus), scale, tolerance)
    assert_same(found, components_pandas(*corpus), scale, tolerance)


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from(TOLERANCES), st.data())
def test_any_split_merged_in_any_order_is_the_whole(corpus, precision, data):
    dtype, tolerance = precision
    batch = len(corpus[0])
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, batch), max_size=4))), batch]
    rows = data.draw(st.permutations(range(batch)))
    pieces = [fitted(corpus, dtype, rows[a:b]) for a, b in pairwise(cuts)]
    order = data.draw(st.permutations(pieces))
    while len(order) > 1:
        at = data.draw(st.integers(0, len(order) - 2))
        order[at : at + 2] = [order[at].merge(order[at + 1])]
    whole = fitted(corpus, dtype)
    assert torch.equal(order[0].pair_counts, whole.pair_counts)
    assert_same(
        (order[0].temporal, order[0].input), (whole.temporal, whole.input), largest(corpus), tolerance
    )


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from(TOLERANCES))
def test_parts_rebuild_the_states_and_are_zero_at_padding(corpus, precision):
    dtype, tolerance = precision
    states, tokens, mask = tensors(*corpus[:3], dtype)
    parts = fitted(corpus, dtype).split(states, tokens, mask)
    for part in parts:
        assert part.dtype == dtype
        assert not part[~mask].any()
    assert_same([parts.total()[mask]], [states[mask]], largest(corpus), tolerance)
    assert parts.unseen_tokens == parts.unseen_positions == 0


def batch_of(states=(2, 3, 4), tokens=None, mask=None):
    tokens = torch.zeros(states[:2], dtype=torch.int64) if tokens is None else torch.tensor(tokens)
    mask = torch.ones(states[:2], dtype=torch.bool) if mask is None else torch.tensor(mask)
    return torch.ones(states), tokens, mask


BAD = {
    "outside the vocabulary": batch_of(tokens=[[0, 0, 5], [0, 0, 0]]),
    "Token -1 at sample 1, position 2": batch_of(tokens=[[0, 0, 0], [0, 0, -1]]),
    "Mask of shape": batch_of(mask=[[True, True], [True, True]]),
    "Tokens of shape": batch_of(tokens=[[0, 0], [0, 0]]),
    "Row 1 of the mask is all padding": batch_of(mask=[[True] * 3, [False] * 3]),
    "Position 3 is valid but the table holds 3": batch_of(states=(2, 4, 4)),
    "expected torch.bool": batch_of(mask=[[1, 1, 1], [1, 1, 0]]),
    r"States of shape \(2, 3, 5\)": batch_of(states=(2, 3, 5)),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named_and_leaves_the_sums_alone(message):
    components = Components(5, 3, 4).update(*batch_of())
    before = components.token_sums.clone()
    for call in (components.update, components.split):
        with pytest.raises(BadInput, match=message):
            call(*BAD[message])
    assert torch.equal(components.token_sums, before)


def test_a_state_that_is_not_finite_is_named_and_leaves_the_sums_alone():
    states, tokens, mask = batch_of()
    states[1, 2, 0] = torch.nan
    components = Components(5, 3, 4).update(*batch_of())
    before = components.position_sums.clone()
    with pytest.raises(BadInput, match=r"not finite.*sample 1, position 2"):
        components.update(states, tokens, mask)
    assert torch.equal(components.position_sums, before)


def test_merging_different_sizes():
    with pytest.raises(BadInput, match=r"'width': 4} with those of .*'width': 2}"):
        Components(5, 3, 4).merge(Components(5, 3, 2))


def test_save_and_load(tmp_path):
    components = Components(5, 3, 4).update(*batch_of())
    components.save(tmp_path / "c.safetensors")
    loaded = Components.load(tmp_path / "c.safetensors")
    assert torch.equal(loaded.temporal, components.temporal)
    assert torch.equal(loaded.input, components.input)
    assert torch.equal((loaded + components).pair_counts, 2 * components.pair_counts)
    whole = (tmp_path / "c.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptFile, match=r"cut\.safetensors"):
        Components.load(tmp_path / "cut.safetensors")
