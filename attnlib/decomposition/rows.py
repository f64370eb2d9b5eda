"""Rows of attention and of scores under the masks of both sides."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.errors import BadInput


def valid_rows(
    rows: Float[Tensor, "*lead batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    *,
    at_least: int = 1,
) -> tuple[Float[Tensor, "*lead row source"], Bool[Tensor, "row source"]]:
    """The rows of valid targets in samples of `at_least` valid source positions, in float64, and their masks.

    Rows come in the order of batch, then target; entries at padding are zero, whatever stood there.
    Raises BadInput where masks and rows differ in shape.
    """
    expected = tuple(rows.shape[-3:])
    if tuple(target_mask.shape) != expected[:2] or tuple(source_mask.shape) != (expected[0], expected[2]):
        raise BadInput(
            f"Rows of shape {tuple(rows.shape)} with a target mask of {tuple(target_mask.shape)} and a "
            f"source mask of {tuple(source_mask.shape)}: expected (batch, target) and (batch, source)."
        )
    keep = target_mask & (source_mask.sum(1) >= at_least)[:, None]
    valid = source_mask[:, None, :].expand(keep.shape + source_mask.shape[1:])[keep]
    return rows[..., keep, :].double().masked_fill(~valid, 0.0), valid


def centred(
    rows: Float[Tensor, "*lead row source"], valid: Bool[Tensor, "row source"]
) -> Float[Tensor, "*lead row source"]:
    """Rows minus their mean over valid positions; zero elsewhere. Softmax does not see the difference."""
    mean = rows.sum(-1, keepdim=True) / valid.sum(-1, keepdim=True)
    return (rows - mean).masked_fill(~valid, 0.0)


def total_variation(
    first: Float[Tensor, "*#lead source"], second: Float[Tensor, "*#lead source"]
) -> Float[Tensor, "..."]:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones."""
    return 0.5 * (first - second).abs().sum(-1)


def masked_softmax(
    rows: Float[Tensor, "*lead row source"], valid: Bool[Tensor, "row source"]
) -> Float[Tensor, "*lead row source"]:
    return torch.softmax(rows.masked_fill(~valid, -torch.inf), dim=-1)


def largest(
    rows: Float[Tensor, "*lead row source"],
    valid: Bool[Tensor, "row source"],
    slack: Float[Tensor, "*#lead row 1"],
) -> Bool[Tensor, "*lead row source"]:
    """Where the largest valid entries of each row are, ties within ``slack`` included."""
    rows = rows.masked_fill(~valid, -torch.inf)
    return rows >= rows.amax(-1, keepdim=True) - slack
