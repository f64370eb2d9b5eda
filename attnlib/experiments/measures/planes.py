"""Components of both sides in one space of principal components."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition.components import Components
from attnlib.decomposition.two_way import centred_by_piece

SIDES = ("encoder", "decoder")


@dataclass(frozen=True)
class Drawn:
    """Components of one side as they are drawn: mu around its mean over states, chi with mean zero.

    Both are weighted by occurrences. The mean state of a side is left out: seen from the attention, a
    constant added to all encoder states changes nothing, and the curves of the two sides are compared in
    shape.
    """

    mean: Float[Tensor, " width"]
    temporal: Float[Tensor, "positions width"]
    input: Float[Tensor, "tokens width"]
    position_counts: Float[Tensor, " positions"]
    token_counts: Float[Tensor, " tokens"]

    @classmethod
    def of(cls, components: Components) -> "Drawn":
        """From fitted components, whichever the method."""
        temporal, inputs = centred_by_piece(components.temporal, components.input, components.pair_counts)
        positions, tokens = components.position_counts.double(), components.token_counts.double()
        mean = positions @ temporal / positions.sum()
        return cls(mean, (temporal - mean) * (positions > 0)[:, None], inputs, positions, tokens)

    def second_moment(self, part: str) -> Float[Tensor, "width width"]:
        """The covariance matrix of a part over the fitting samples' states."""
        table = getattr(self, part)
        weights = self.position_counts if part == "temporal" else self.token_counts
        return (table * weights[:, None]).T @ table / weights.sum()


@dataclass(frozen=True)
class Space:
    """Leading principal axes of a set of parts, with the share of their variance that each axis has."""

    axes: Float[Tensor, "axes width"]
    explained: Float[Tensor, " axes"]

    def project(self, table: Float[Tensor, "rows width"]) -> Float[Tensor, "rows axes"]:
        """Coordinates along the axes."""
        return table.double() @ self.axes.T


def space_of(sides: list[Drawn], parts: tuple[str, ...], axes: int = 3) -> Space:
    """Principal axes of these parts of all sides together, every side with equal weight.

    The sign of an axis is free; here the entry largest in size is positive, so that equal components
    give equal pictures.
    """
    matrix = sum(side.second_moment(part) for side in sides for part in parts)
    values, vectors = torch.linalg.eigh(matrix)
    values, vectors = values.flip(0)[:axes].clamp(min=0), vectors.flip(1)[:, :axes].T
    largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
    total = float(matrix.trace())
    return Space(vectors * largest.sign(), values / total if total > 0 else values)
