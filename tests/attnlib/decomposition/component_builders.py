"""Corpora of states to take apart, and components of every kind fitted on them."""

import numpy as np
import torch
from hypothesis import strategies as st

from attnlib.decomposition import Components
from attnlib.decomposition.growing import GrowingComponents

KINDS = ("means", "least_squares", "growing")
MARK = 0


@st.composite
def corpora(draw, width=None, longest=6, words=(1, 2, 7, 200)):
    """(states, tokens, mask, n_tokens): rare words, ragged rows or holes in them, garbage at padding.

    In some a mark stands at the start and nowhere else, in some words keep to one half of the positions.
    """
    batch, length = draw(st.integers(1, 70)), draw(st.integers(1, longest))
    n_tokens, width = draw(st.sampled_from(words)), width or draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tokens = rng.integers(0, n_tokens, size=(batch, length))
    if draw(st.booleans()):
        tokens = np.minimum(rng.geometric(0.3, size=(batch, length)), n_tokens - 1)
    if draw(st.booleans()):
        tokens, n_tokens = 1 + tokens % 2 + 2 * (np.arange(length) >= length // 2), max(n_tokens, 5)
    if draw(st.booleans()):
        tokens[:, 0] = MARK
    if draw(st.booleans()):
        mask = np.arange(length) < rng.integers(1, length + 1, size=(batch, 1))
    else:
        mask = rng.random((batch, length)) < 0.6
        mask[np.arange(batch), rng.integers(0, length, batch)] = True
    states = rng.normal(size=(batch, length, width)) + draw(st.sampled_from([0.0, 100.0]))
    states += rng.normal(size=(n_tokens, width))[tokens] + rng.normal(size=(length, width))
    tokens[~mask] = draw(st.sampled_from([0, -1, 10**6]))
    states[~mask] = draw(st.sampled_from([0.0, np.nan, np.inf, 1e30]))
    return states, tokens, mask, n_tokens


def tensors(corpus, dtype=torch.float64, rows=slice(None)):
    """States, tokens and mask of some samples."""
    states, tokens, mask = (torch.from_numpy(part[rows]) for part in corpus[:3])
    return states.to(dtype), tokens, mask


def fitted(corpus, kind="means", dtype=torch.float64, rows=slice(None)):
    states, _, mask, n_tokens = corpus
    width = states.shape[2]
    components = (
        GrowingComponents(width)
        if kind == "growing"
        else Components(n_tokens, mask.shape[1], width, method=kind)
    )
    return components.update(*tensors(corpus, dtype, rows))


def assert_same(found, expected, corpus, tolerance):
    """Up to a share of the largest state."""
    scale = np.abs(corpus[0][corpus[2]]).max()
    for mine, theirs in zip(found, expected, strict=True):
        difference = np.abs(np.asarray(mine) - np.asarray(theirs)).max(initial=0.0)
        assert difference <= tolerance * scale, f"differ by {difference / scale} of the largest state"
