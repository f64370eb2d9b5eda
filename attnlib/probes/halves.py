"""Samples in two halves: one selects a checkpoint, the other reports what holds there."""

import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.errors import BadInput

HALVES_SEED = 0  # of the halves that every run on the same samples shares


def halves(
    samples: int, seed: int = HALVES_SEED
) -> tuple[Int[Tensor, " selecting"], Int[Tensor, " reporting"]]:
    """Which samples select and which report: a random half each, ascending; the odd one out reports.

    Raises:
        BadInput: fewer than two samples.
    """
    if samples < 2:
        raise BadInput(f"{samples} samples cannot be halved; give at least 2")
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
    return order[: samples // 2].sort().values, order[samples // 2 :].sort().values
