"""Shares: by hand, against numpy's covariance, and the laws they must obey."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import ShareSums
from attnlib.decomposition.substitution import valid_rows
from attnlib.errors import BadInput


def all_valid(*shape):
    return torch.ones(shape, dtype=torch.bool)


def terms_from(rows):
    """(3, 3, 1, target, source) of zeros but for the given {(decoder part, encoder part): matrix}."""
    size = torch.tensor(next(iter(rows.values()))).shape
    terms = torch.zeros(3, 3, 1, *size, dtype=torch.float64)
    for pair, matrix in rows.items():
        terms[pair] = torch.tensor(matrix, dtype=torch.float64)
    return terms


@st.composite
def batches(draw, *, dtype=torch.float64):
    """(terms, target mask, source mask), garbage at padding."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, target, source = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(2, 6))
    terms = torch.randn(3, 3, batch, target, source, generator=generator, dtype=dtype)
    target_mask = torch.arange(target) < torch.randint(1, target + 1, (batch, 1), generator=generator)
    source_mask = torch.arange(source) < torch.randint(1, source + 1, (batch, 1), generator=generator)
    source_mask[0] = True
    valid = target_mask[:, :, None] & source_mask[:, None, :]
    return (
        terms.masked_fill(~valid, draw(st.sampled_from([0.0, math.nan, math.inf]))),
        target_mask,
        source_mask,
    )


def test_hand_worked():
    """Temporal 1 -1 and input 3 -3 after centring, total 4 -4: a quarter and three quarters, either way."""
    terms = terms_from({(0, 0): [[6.0, 4.0]], (1, 1): [[10.0, 4.0]]})
    shares = ShareSums().update(terms, all_valid(1, 1), all_valid(1, 2)).result()
    assert shares.mean_absolute[0, 0] == shares.covariance[0, 0] == shares.temporal == 0.25
    assert shares.mean_absolute[1, 1] == shares.covariance[1, 1] == 0.75
    assert (shares.rows, shares.entries, shares.rows_left_out) == (1, 2, 0)


def test_opposed_terms_have_a_negative_covariance_share():
    """-1 1 against 3 -3: total 2 -2, covariance shares -1/2 and 3/2; absolute shares do not see it."""
    terms = terms_from({(0, 0): [[-1.0, 1.0]], (1, 1): [[3.0, -3.0]]})
    shares = ShareSums().update(terms, all_valid(1, 1), all_valid(1, 2)).result()
    assert shares.covariance[0, 0] == -0.5
    assert shares.covariance[1, 1] == 1.5
    assert shares.mean_absolute[0, 0] == 0.25


@settings(max_examples=50)
@given(batches())
def test_agrees_with_numpy_over_a_loop_of_rows(batch):
    terms, target_mask, source_mask = batch
    columns, rows = [], 0
    for sample in range(terms.shape[2]):
        kept = terms[:, :, sample][:, :, :, source_mask[sample]].numpy().reshape(9, terms.shape[3], -1)
        for target in np.flatnonzero(target_mask[sample]):
            if kept.shape[2] > 1:
                columns.append(kept[:, target] - kept[:, target].mean(1, keepdims=True))
                rows += 1
    pooled = np.concatenate(columns, axis=1)
    total = pooled.sum(0)
    shares = ShareSums().update(*batch).result()
    covariance = [np.cov(term, total, bias=True)[0, 1] / total.var() for term in pooled]
    means = np.abs(pooled).mean(1)
    assert np.allclose(shares.covariance.flatten(), covariance, rtol=1e-9, atol=1e-12)
    assert np.allclose(shares.mean_absolute.flatten(), means / means.sum(), rtol=1e-12)
    assert (shares.rows, shares.entries) == (rows, pooled.shape[1])
    assert shares.rows + shares.rows_left_out == int(target_mask.sum())


@settings(max_examples=50)
@given(batches(), st.integers(0, 12))
def test_sum_to_one_ignore_constants_and_stream(batch, cut):
    terms, target_mask, source_mask = batch
    whole = ShareSums().update(*batch).result()
    assert whole.covariance.sum().item() == pytest.approx(1)
    assert whole.mean_absolute.sum().item() == pytest.approx(1)

    shifted = terms + torch.linspace(-50, 50, 9, dtype=terms.dtype).view(3, 3, 1, 1, 1)
    moved = ShareSums().update(shifted, target_mask, source_mask).result()
    assert torch.allclose(moved.covariance, whole.covariance, atol=1e-8)

    pieces = [
        ShareSums().update(terms[:, :, rows], target_mask[rows], source_mask[rows])
        for rows in (slice(None, cut), slice(cut, None))
    ]
    merged = (pieces[1] + pieces[0]).result()
    assert torch.allclose(merged.covariance, whole.covariance, rtol=1e-10)
    assert torch.allclose(merged.mean_absolute, whole.mean_absolute, rtol=1e-10)
    assert (merged.rows, merged.entries) == (whole.rows, whole.entries)


def test_undefined_where_nothing_varies():
    flat = terms_from({(0, 0): [[2.0, 2.0, 2.0]]})
    shares = ShareSums().update(flat, all_valid(1, 1), all_valid(1, 3)).result()
    assert shares.mean_absolute.isnan().all()
    assert shares.covariance.isnan().all()
    assert ShareSums().result().covariance.isnan().all()


def test_undefined_where_the_terms_cancel_up_to_rounding():
    """0.1 + 0.2 - 0.3 is not zero in floating point: such a total has no variance to share."""
    terms = terms_from({(0, 0): [[0.1, 0.0]], (1, 1): [[0.2, 0.0]], (2, 2): [[-0.3, 0.0]]})
    assert terms.sum() != 0
    shares = ShareSums().update(terms, all_valid(1, 1), all_valid(1, 2)).result()
    assert shares.covariance.isnan().all()
    assert math.isnan(shares.temporal)
    assert shares.mean_absolute[2, 2].item() == pytest.approx(0.5)


def test_rows_with_one_valid_position_are_left_out():
    terms = terms_from({(0, 0): [[1.0, 5.0], [2.0, 7.0]]})
    shares = ShareSums().update(terms, all_valid(1, 2), torch.tensor([[True, False]])).result()
    assert (shares.rows, shares.rows_left_out, shares.entries) == (0, 2, 0)


def test_masks_that_do_not_fit():
    terms = torch.zeros(3, 3, 2, 4, 5)
    with pytest.raises(BadInput, match=r"expected \(batch, target\) and \(batch, source\)"):
        ShareSums().update(terms, all_valid(2, 5), all_valid(2, 4))
    with pytest.raises(BadInput, match="target mask of"):
        valid_rows(terms, all_valid(3, 4), all_valid(2, 5))
