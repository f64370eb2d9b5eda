"""Ratios of sums over sentences, and how far they would move with other sentences.

Sentences fall into blocks by their words. With e_k and v_k the sums of block k, that block moves the ratio
S = Σe / Σv by u_k = (e_k − S v_k) / Σv to first order (Cochran, *Sampling Techniques*, 1977, section 6.4).
Blocks have unequal weights; m = (Σv)² / Σv² blocks of equal weight would have the same variance. The bias of
a ratio is removed, and the moves are divided by 1 − 1/m, as the jackknife does.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.judge import BLOCK_COLUMNS, student
from attnlib.analysis.terms import PARTS, REBUILT
from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput

MEASURES = BLOCK_COLUMNS[:-1]  # columns of a head's row that are ratios of the sums of blocks


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratios(ShowsShapes):
    """The measures of a head, or of several heads together.

    Attributes:
        value: the ratios, in the order of :data:`MEASURES`.
        middle: the ratios without their bias, which are the middles of their intervals.
        moves: how far each block moves the ratios.
        size: the number of blocks of equal weight that would have the same variance; NaN below two.
    """

    value: Float[Tensor, " measures"]
    middle: Float[Tensor, " measures"]
    moves: Float[Tensor, "blocks measures"]
    size: Float[Tensor, " measures"]

    def half_width(self, factor: float) -> Float[Tensor, " measures"]:
        """Return half of the width of the interval of 95 %.

        Args:
            factor: how much larger the variance is because of the error of the fit.
        """
        variance = self.moves.square().sum(0) * factor  # (measures,)
        return student(self.size - 1) * variance.sqrt()


def ratios_of(sums: Float[Tensor, "blocks sums"]) -> Ratios:
    """Return the ratios of the sums of blocks.

    A share is divided by what all terms explain, rebuilt attention by the number of rows.

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
    n_shares = len(MEASURES) - len(REBUILT)
    explained = sums[:, : len(PARTS)].sum(1, keepdim=True)  # (blocks, 1)
    rows = sums[:, -1:]  # (blocks, 1)
    denominators = [explained.expand(-1, n_shares), rows.expand(-1, len(REBUILT))]
    denominator = torch.cat(denominators, 1)  # v_k of each measure, (blocks, measures)
    numerator = sums[:, :-1]  # e_k of each measure, (blocks, measures)

    total = denominator.sum(0)  # Σv, (measures,)
    weight = denominator / total  # (blocks, measures)
    value = numerator.sum(0) / total  # S, (measures,)
    moves = numerator / total - value * weight  # u_k, (blocks, measures)
    size = 1 / weight.square().sum(0)  # m, (measures,)
    size = size.where(size >= 2, torch.nan)
    correction = (moves * weight).sum(0) * size / (size - 1)  # (measures,)
    return Ratios(value=value, middle=value + correction, moves=moves / (1 - 1 / size), size=size)
