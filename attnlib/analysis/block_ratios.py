"""Ratios of sums over sentences, and how far they would move with other sentences.

Sentences fall into blocks by their words. With e_k and v_k the sums of block k, the steps are those of
:meth:`~attnlib.analysis.judge.HeadSums.share`, with blocks for samples:

1. The measure is the ratio S = Σe / Σv.
2. m = (Σv)² / Σv² blocks of equal weight would vary as much. Below m = 2 there is no interval.
3. To first order block k moves the ratio by u_k = (e_k − S v_k) / Σv. The ratio without its bias,
   S + Σ u_k v_k / Σv · m / (m − 1), is the middle of the interval.
4. The moves are divided by 1 − 1/m, as with the jackknife; the variance is the sum of their squares.
5. The error of the fit multiplies the variance by 1 + n / n_f, see
   :func:`~attnlib.analysis.results.variance_factor`.
6. Half of the width is the 97.5 % quantile of Student's distribution with m − 1 degrees of freedom, times the
   square root of the variance.

Heads of one model see the same sentences, and so may two models; their errors are not independent. The
variance of a mean over heads, or of a difference, therefore needs the moves of all of them under the same
units. To keep the moves of every sample would take memory that grows with the corpus; 64 blocks take the same
memory whatever the corpus, and samples fall into the same blocks in every analysis of a text.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.judge import BLOCK_COLUMNS, REBUILT_MEASURES, SHARE_MEASURES, SPLIT_MEASURES
from attnlib.analysis.students_quantile import students_quantile
from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput

#: columns of a head's row that are ratios of the sums of blocks
MEASURES = (*SHARE_MEASURES, *SPLIT_MEASURES, *REBUILT_MEASURES)


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
        return students_quantile(self.size - 1) * variance.sqrt()


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
    widths = [len(SHARE_MEASURES), len(SPLIT_MEASURES), len(REBUILT_MEASURES), 1]
    of_parts, of_split_parts, of_rebuilt, rows = sums.split(widths, dim=1)  # (blocks, columns) each
    explained = of_parts.sum(1, keepdim=True)  # by all terms, (blocks, 1)
    denominators = [
        explained.expand_as(of_parts),
        explained.expand_as(of_split_parts),
        rows.expand_as(of_rebuilt),
    ]
    numerator = sums[:, : len(MEASURES)]  # e_k, (blocks, measures)
    denominator = torch.cat(denominators, 1)  # v_k, (blocks, measures)

    total = denominator.sum(0)  # Σv, (measures,)
    weight = denominator / total  # (blocks, measures)
    value = numerator.sum(0) / total  # S, (measures,)
    moves = numerator / total - value * weight  # u_k, (blocks, measures)
    size = 1 / weight.square().sum(0)  # m, (measures,)
    size = size.where(size >= 2, torch.nan)
    correction = (moves * weight).sum(0) * size / (size - 1)  # (measures,)
    return Ratios(value=value, middle=value + correction, moves=moves / (1 - 1 / size), size=size)
