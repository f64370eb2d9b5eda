"""What tests of the decomposition share: corpora of states, components of them, terms, attention."""

import numpy as np
import torch
from hypothesis import strategies as st

from attnlib import Components

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def corpora(draw, width=None, longest=6, words=(1, 2, 7, 200), batch=None):
    """(states, tokens, mask, n_tokens): rare words, ragged rows or holes in them, garbage at padding.

    In some a mark stands at the start and nowhere else, in some words keep to one half of the positions.
    """
    batch, length = batch or draw(st.integers(1, 70)), draw(st.integers(1, longest))
    n_tokens, width = draw(st.sampled_from(words)), width or draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(SEEDS))
    tokens = rng.integers(0, n_tokens, size=(batch, length))
    if draw(st.booleans()):
        tokens = np.minimum(rng.geometric(0.3, size=(batch, length)), n_tokens - 1)
    if draw(st.booleans()):
        tokens, n_tokens = 1 + tokens % 2 + 2 * (np.arange(length) >= length // 2), max(n_tokens, 5)
    if draw(st.booleans()):
        tokens[:, 0] = 0
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
    states, tokens, mask = (torch.from_numpy(part[rows]) for part in corpus[:3])
    return states.to(dtype), tokens, mask


def fitted(corpus, kind="means", dtype=torch.float64, rows=slice(None)):
    states, _, mask, n_tokens = corpus
    width = states.shape[2]
    if kind == "growing":
        components = Components(width)
    else:
        components = Components(width, kind, n_tokens=n_tokens, n_positions=mask.shape[1])
    return components.update(*tensors(corpus, dtype, rows))


def assert_same(components, expected, corpus, tolerance):
    """Up to a share of the largest state."""
    scale = np.abs(corpus[0][corpus[2]]).max()
    for mine, theirs in zip(components, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance * scale)


@st.composite
def term_batches(draw, count=9, twins=False):
    """(terms, target mask, source mask), garbage at padding; with twins a word may stand twice."""
    generator = torch.Generator().manual_seed(draw(SEEDS))
    batch, target, source = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(2, 6))
    terms = torch.randn(count, batch, target, source, generator=generator, dtype=torch.float64)
    if twins and source > 2 and draw(st.booleans()):
        terms[..., 1] = terms[..., 0]
    target_mask = torch.arange(target) < torch.randint(1, target + 1, (batch, 1), generator=generator)
    source_mask = torch.arange(source) < torch.randint(1, source + 1, (batch, 1), generator=generator)
    source_mask[0] = True
    padding = ~(target_mask[:, :, None] & source_mask[:, None, :])
    garbage = draw(st.sampled_from([0.0, torch.nan, torch.inf]))
    return terms.masked_fill(padding, garbage), target_mask, source_mask


@st.composite
def attention_matrices(draw, most=12):
    """A list of matrices (target, source) of a few shapes, some many, some few, mixed."""
    generator = torch.Generator().manual_seed(draw(SEEDS))
    shapes = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4))
    shapes = [shape for shape in shapes for _ in range(draw(st.integers(1, most)))]
    matrices = [torch.randn(shape, generator=generator).softmax(-1) for shape in shapes]
    return [matrices[k] for k in torch.randperm(len(matrices), generator=generator)]


def padded(matrices):
    """One batch of all, NaN at padding, with its masks."""
    lengths = torch.tensor([matrix.shape for matrix in matrices])
    target, source = lengths.amax(0).tolist()
    batch = torch.full((len(matrices), target, source), torch.nan)
    for padded_matrix, matrix in zip(batch, matrices, strict=True):
        padded_matrix[: matrix.shape[0], : matrix.shape[1]] = matrix
    return batch, torch.arange(target) < lengths[:, :1], torch.arange(source) < lengths[:, 1:]
