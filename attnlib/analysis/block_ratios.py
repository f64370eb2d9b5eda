"""Ratios of sums over sentences, and how far they would move with other sentences.

Sentences fall into blocks by their words. With e_k and v_k the sums of block k, that block moves the ratio
S = Σe / Σv by u_k = (e_k − S v_k) / Σv to first order (Cochran, *Sampling Techniques*, 1977, section 6.4). As
blocks weigh unequally, they are as good as m = (Σv)² / Σv² equal ones. The bias of a ratio is taken off, and
the moves are divided by 1 − 1/m, as the jackknife does.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.judge import BLOCK_COLUMNS, student
from attnlib.analysis.terms import PARTS, REBUILT
from attnlib.errors import BadInput

MEASURES = BLOCK_COLUMNS[:-1]  # columns of a head's row that are ratios of the sums of blocks


@dataclass(frozen=True, eq=False)
class Ratios:
    """The measures of a head, or of several together.

    Attributes:
        value: the ratios, in the order of :data:`MEASURES`.
        middle: the same without their bias, the middle of their intervals.
        moves: by block.
        size: how many blocks of equal weight they are as good as; NaN below two.
    """

    value: Float[Tensor, " measures"]
    middle: Float[Tensor, " measures"]
    moves: Float[Tensor, "blocks measures"]
    size: Float[Tensor, " measures"]

    def half_width(self, factor: float) -> Float[Tensor, " measures"]:
        """Return half of the interval of 95 %.

        Args:
            factor: by which the variance is larger for what the fit does not know.
        """
        return student(self.size - 1) * (self.moves.square().sum(0) * factor).sqrt()


def ratios_of(sums: Float[Tensor, "blocks sums"]) -> Ratios:
    """Return the ratios of the sums of blocks.

    Args:
        sums: with the columns of :data:`~attnlib.analysis.judge.BLOCK_COLUMNS`.

    Raises:
        BadInput: other columns, as those of an analysis by an earlier version.
    """
    if sums.shape[1] != len(BLOCK_COLUMNS):
        raise BadInput(
            f"an analysis with {sums.shape[1]} sums a block; expected {len(BLOCK_COLUMNS)}: it was made "
            "before split shares were kept, so make it again"
        )
    explained = sums[:, : len(PARTS)].sum(1, keepdim=True)  # (blocks, 1)
    rows = sums[:, -1:]  # (blocks, 1)
    n_shares = len(MEASURES) - len(REBUILT)
    below = torch.cat(
        [explained.expand(-1, n_shares), rows.expand(-1, len(REBUILT))], 1
    )  # (blocks, measures)
    weight = below / below.sum(0)  # (blocks, measures)
    value = sums[:, :-1].sum(0) / below.sum(0)  # (measures,)
    moved = sums[:, :-1] / below.sum(0) - value * weight  # (blocks, measures)
    size = 1 / weight.square().sum(0)  # so many blocks of equal weight
    size = size.where(size >= 2, torch.nan)
    middle = value + (moved * weight).sum(0) * size / (size - 1)
    return Ratios(value=value, middle=middle, moves=moved / (1 - 1 / size), size=size)
