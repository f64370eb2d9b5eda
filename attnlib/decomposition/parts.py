"""The three parts of a batch of hidden states."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

PART_NAMES = ("temporal", "input", "residual")


@dataclass(frozen=True)
class Parts:
    """States as temporal + input + residual, zero at padding, in the dtype and on the device of the states.

    `unseen_tokens` and `unseen_positions` count the valid places whose token (position) the components never
    saw while they were fitted: their input (temporal) component is zero. Summed over batches and divided by
    `valid` they give the share that must be reported beside a decomposition.
    """

    temporal: Float[Tensor, "batch length width"]
    input: Float[Tensor, "batch length width"]
    residual: Float[Tensor, "batch length width"]
    mask: Bool[Tensor, "batch length"]
    unseen_tokens: int = 0
    unseen_positions: int = 0

    @property
    def valid(self) -> int:
        return int(self.mask.sum())

    @property
    def unseen_share(self) -> float:
        """Share of the valid places whose token was never seen while fitting."""
        return self.unseen_tokens / self.valid

    def __iter__(self) -> Iterator[Float[Tensor, "batch length width"]]:
        """In the order of `PART_NAMES`."""
        return iter((self.temporal, self.input, self.residual))

    def stack(self) -> Float[Tensor, "3 batch length width"]:
        return torch.stack(tuple(self))

    def total(self) -> Float[Tensor, "batch length width"]:
        """The states again, zero at padding."""
        return self.temporal + self.input + self.residual
