"""The shares and the substitution test for single samples, to compare the samples of one network.

The definitions are those of :mod:`attnlib.decomposition.shares` and
:mod:`attnlib.decomposition.substitution`, pooled over the rows of one sample instead of all. Samples with a
single valid source position have neither.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.decomposition.rows import total_variation, valid_rows
from attnlib.decomposition.substitution import Pair, SubstitutionSums


def covariance_shares_by_sample(
    terms: Float[Tensor, "3 3 batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
) -> Float[Tensor, "batch 3 3"]:
    """Covariance shares of the nine terms within each sample, float64; NaN where its scores do not vary."""
    keep = target_mask[:, :, None] & source_mask[:, None, :]  # (batch, target, source)
    counts = source_mask.sum(1).clamp(min=1)[:, None, None]
    values = terms.double().masked_fill(~keep, 0)
    values = (values - values.sum(-1, keepdim=True) / counts).masked_fill(~keep, 0)
    total = values.sum((0, 1))
    variance = total.square().sum((1, 2))
    own = values.square().sum((0, 1, 3, 4))
    shares = torch.einsum("debts,bts->bde", values, total) / variance[:, None, None]
    return shares.masked_fill((variance <= 1e-12 * own)[:, None, None], torch.nan).cpu()


def similarity_by_sample(
    terms: Float[Tensor, "3 3 batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    pairs: Iterable[Pair],
) -> Float[Tensor, " batch"]:
    """1 − total variation between attention from some terms and from all, mean over a sample's rows."""
    rows, valid = valid_rows(terms, target_mask, source_mask, at_least=2)
    weights = SubstitutionSums({"some": pairs}).weights[0].to(rows)
    some, full = (
        torch.softmax(scores.masked_fill(~valid, -torch.inf), dim=-1)
        for scores in (torch.einsum("de,ders->rs", weights, rows), rows.sum((0, 1)))
    )
    several = target_mask & (source_mask.sum(1) >= 2)[:, None]
    sample = several.nonzero()[:, 0]
    sums = torch.zeros(len(target_mask), dtype=torch.float64, device=rows.device)
    sums.index_add_(0, sample, 1 - total_variation(some, full))
    return (sums / several.sum(1)).cpu()  # 0 / 0 is NaN: no row
