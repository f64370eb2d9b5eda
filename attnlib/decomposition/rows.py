"""Rows of attention and of scores under the masks of both sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.former_names import former_object
from attnlib.softmax import softmax_over

Leading = Float[Tensor, "*lead row source"]
Valid = Bool[Tensor, "row source"]


def valid_rows(
    rows: Float[Tensor, "*lead batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    *,
    at_least: int = 1,
) -> tuple[Leading, Valid]:
    """Return the rows of valid targets, in float64, and which of their positions are valid.

    Rows are ordered by batch, then by target; entries at padding are set to zero.

    Args:
        rows: scores, attention or terms; any number of axes may come before the batch.
        target_mask: True at valid target positions.
        source_mask: True at valid source positions.
        at_least: number of valid source positions that a sample needs; rows of other samples are left out.

    Raises:
        BadInput: masks and rows differ in shape.
    """
    require_masks(rows, target_mask, source_mask)
    long_enough = source_mask.sum(1) >= at_least  # (batch,)
    is_row = target_mask & long_enough[:, None]  # (batch, target)
    batch, target, source = rows.shape[-3:]
    visible = source_mask[:, None, :].expand(batch, target, source)
    valid = visible[is_row]  # (row, source)
    return rows[..., is_row, :].double().masked_fill(~valid, 0.0), valid


def require_masks(rows: Float[Tensor, "*lead batch target source"], target: Tensor, source: Tensor) -> None:
    """Raise BadInput where the masks of both sides do not fit the rows."""
    expected = tuple(rows.shape[-3:])
    if tuple(target.shape) != expected[:2] or tuple(source.shape) != (expected[0], expected[2]):
        raise BadInput(
            f"Rows of shape {tuple(rows.shape)} with a target mask of {tuple(target.shape)} and a "
            f"source mask of {tuple(source.shape)}: expected (batch, target) and (batch, source)."
        )


def allowed_pairs(
    rows: Float[Tensor, "*lead batch target source"],
    target_mask: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
) -> Bool[Tensor, "batch target source"]:
    """Return True where both positions are valid; raise BadInput if masks and rows differ in shape."""
    require_masks(rows, target_mask, source_mask)
    return target_mask[:, :, None] & source_mask[:, None, :]


def centred(rows: Leading, valid: Valid) -> Leading:
    """Return rows minus their mean over valid positions, zero elsewhere; their softmax is the same."""
    mean = rows.sum(-1, keepdim=True) / valid.sum(-1, keepdim=True)
    return (rows - mean).masked_fill(~valid, 0.0)


def attention_of_terms(
    terms: Float[Tensor, "terms *rows source"], chosen: Sequence[int], allowed: Bool[Tensor, "*rows source"]
) -> Float[Tensor, "*rows source"]:
    """Return the attention that the sum of some terms makes; rows that may see nothing are NaN.

    Args:
        terms: of the scores.
        chosen: numbers of the terms that are summed.
        allowed: True at the positions that a row chooses among.
    """
    scores = terms[chosen].sum(0)  # (*rows, source)
    return softmax_over(scores, allowed)


def total_variation(
    first: Float[Tensor, "*#lead source"], second: Float[Tensor, "*#lead source"]
) -> Float[Tensor, "..."]:
    """Return half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones."""
    return 0.5 * (first - second).abs().sum(-1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChosenRows(ShowsShapes):
    """The rows of a batch that choose among two positions or more, sample after sample.

    Attributes:
        sample, target: where each row is in the batch.
        valid: the positions that it chooses among.
        batch: number of samples of the batch.
        left_out: number of rows with a single position.
    """

    sample: Int[Tensor, " row"]
    target: Int[Tensor, " row"]
    valid: Valid
    batch: int
    left_out: int

    @classmethod
    def of(cls, allowed: Bool[Tensor, "batch target source"]) -> "ChosenRows":
        """Choose rows by what each target may see; a row of ``allowed`` that is all False is padding."""
        visible = allowed.sum(-1)  # (batch, target)
        sample, target = (visible >= 2).nonzero().unbind(1)
        return cls(
            sample=sample,
            target=target,
            valid=allowed[sample, target],
            batch=len(allowed),
            left_out=int((visible == 1).sum()),
        )

    def __len__(self) -> int:
        return len(self.sample)

    def values(self, tensor: Float[Tensor, "*lead batch target source"]) -> Leading:
        """Return these rows of a tensor, with zeros where they are not valid."""
        return tensor[..., self.sample, self.target, :].masked_fill(~self.valid, 0.0)

    def by_sample(self, values: Float[Tensor, "*lead row"]) -> Float[Tensor, "*lead batch"]:
        """Return the sum of values over the rows of each sample."""
        sums = values.new_zeros(*values.shape[:-1], self.batch)
        return sums.index_add_(-1, self.sample, values)

    def counts(self) -> Int[Tensor, " batch"]:
        """Return how many of these rows each sample has."""
        return torch.bincount(self.sample, minlength=self.batch)


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"softmax_of_rows": "attnlib.softmax.softmax_over"}, name)
