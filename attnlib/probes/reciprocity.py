"""Does i get from j what j gets from i? The symmetry of square matrices of scores or of attention.

The rows of a matrix m are what asks, its columns what answers, both the same n things in the same order. With

    reciprocity = Σ m_ij m_ji / Σ m_ij²,  sums over i ≠ j,

a symmetric matrix has 1, one whose m_ij says nothing about m_ji has 0, and an antisymmetric one −1. The
diagonal is left out: nothing is asymmetric to itself. It is a correlation, and the share of the symmetric
half S = (m + mᵀ)/2 in the squared norm less that of the antisymmetric half K = (m − mᵀ)/2,
(‖S‖² − ‖K‖²) / (‖S‖² + ‖K‖²). Garlaschelli and Loffredo 2004 ask it of networks, Saponati et al. 2025 of the
product of query and key maps.

What is subtracted first:

=============  =========================================================================================
``attention``  the mean of the entries off the diagonal. Even attention is symmetric and says nothing; a
               matrix close to it must not pass for symmetric on its account
``scores``     the means of rows and of columns. A number added to all scores of a query leaves its
               attention as it is, so that scores are known but for one number a row
=============  =========================================================================================

Scores drawn at random have, after their means are taken off, a reciprocity of about 1/(n − 1)², not 0: take
matrices of five things and more.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput

Level = Literal["attention", "scores"]


@dataclass(frozen=True)
class Reciprocity:
    """What the sums come to; NaN where there is nothing to compare.

    Attributes:
        value: reciprocity, −1 to 1.
        ratio: ‖m − mᵀ‖ / ‖m + mᵀ‖ of the whole matrices, nothing subtracted: 0 for symmetric ones, and near 0
            for those that are nearly even or nearly diagonal.
    """

    value: float
    ratio: float


class ReciprocitySums:
    """Streaming sums over matrices; see the module."""

    def __init__(self) -> None:
        self.mutual = self.own = self.apart = self.together = 0.0

    def update(self, matrices: Float[Tensor, "batch n n"], level: Level) -> "ReciprocitySums":
        """Adds matrices of one size, without padding.

        >>> cycle = torch.tensor([[[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]])  # each asks the next
        >>> ReciprocitySums().update(cycle, "attention").result().value
        -1.0
        """
        size = matrices.shape[-1]
        if matrices.shape[-2] != size or size < 2:
            raise BadInput(f"matrices of shape {tuple(matrices.shape)}; expected square ones, at least 2 × 2")
        whole = matrices.double()
        self.apart += float((whole - whole.mT).square().sum())
        self.together += float((whole + whole.mT).square().sum())
        pairs = ~torch.eye(size, dtype=torch.bool, device=matrices.device)
        if level == "attention":
            mean = (whole * pairs).sum((-2, -1), keepdim=True) / (size * (size - 1))
            left = (whole - mean) * pairs
        else:
            left = doubly_centred(whole) * pairs
        self.mutual += float((left * left.mT).sum())
        self.own += float(left.square().sum())
        return self

    def result(self) -> Reciprocity:
        """What the sums come to."""
        value = self.mutual / self.own if self.own else math.nan
        ratio = math.sqrt(self.apart / self.together) if self.together else math.nan
        return Reciprocity(value, ratio)


def doubly_centred(matrices: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n m"]:
    """Without the means of rows and of columns."""
    rows, columns = matrices.mean(-1, keepdim=True), matrices.mean(-2, keepdim=True)
    return matrices - rows - columns + matrices.mean((-2, -1), keepdim=True)


def map_symmetry(query: Float[Tensor, "head_width width"], key: Float[Tensor, "head_width width"]) -> float:
    """The reciprocity of B = W_qᵀ W_k, diagonal included: is xᵀ B y the same as yᵀ B x for all x and y?

    Σ B_ij B_ji / Σ B_ij², as in Saponati et al. 2025. For maps drawn at random it is about 0.

    >>> map_symmetry(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 6.0]]))
    1.0
    """
    product = (query.T @ key).double()
    return float((product * product.T).sum() / product.square().sum())
