"""Linear maps of states: the projections of the heads of an attention, and rotations by position.

A projection is a :class:`LinearMap`, x ↦ W x + b in every head. As it is linear, parts that sum to a state
are mapped to parts that sum to its query or key; the bias is the same for all tokens. A :class:`Rotary`
rotates queries and keys by their positions, and is applied to every part.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput

# A linear map that each position has for itself, (*batch, length, width) → the same, such as :class:`Rotary`.
Rotation = Callable[[Tensor], Tensor]


def single(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least, because half precision is too coarse to compute with."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap(ShowsShapes):
    """x ↦ W x + b in every head.

    Attributes:
        weight: W of every head, (heads, head_width, width).
        bias: b of every head, (heads, head_width); None if there is none.
        identity: whether the weight is known to be the identity, so that the product can be left out.

    Raises:
        BadInput: a weight or a bias of another shape.

    Example:
        >>> both = LinearMap(torch.tensor([[[1.0, 2.0]], [[0.0, 1.0]]]), torch.tensor([[3.0], [0.0]]))
        >>> both(torch.tensor([[[10.0, 1.0]]])).flatten().tolist()
        [15.0, 1.0]
    """

    weight: Float[Tensor, "heads head_width width"]
    bias: Float[Tensor, "heads head_width"] | None = None
    identity: bool = False

    def __post_init__(self) -> None:
        weight_shape = tuple(self.weight.shape)
        bias_shape = None if self.bias is None else tuple(self.bias.shape)
        if len(weight_shape) != 3 or bias_shape not in (None, weight_shape[:2]):
            raise BadInput(
                f"weight of shape {weight_shape}, bias of {bias_shape}; expected (heads, head width, width) "
                "and (heads, head width)"
            )

    @classmethod
    def of(cls, projection: nn.Linear, heads: int) -> "LinearMap":
        """Return the map whose heads share the rows of a projection in order, in float32 at least.

        Args:
            projection: whose output features belong to the heads, one head after the other.
            heads: number of heads.
        """
        return cls.of_rows(projection.weight, projection.bias, heads)

    @classmethod
    def of_rows(
        cls, weight: Float[Tensor, "rows width"], bias: Float[Tensor, " rows"] | None, heads: int
    ) -> "LinearMap":
        """Return the map whose heads share the rows of a weight in order, in float32 at least.

        Args:
            weight: of all heads, one after the other.
            bias: of all heads; None if there is none.
            heads: number of heads.

        Raises:
            BadInput: the number of rows is not a multiple of the number of heads.
        """
        if len(weight) % heads:
            raise BadInput(f"a projection to {len(weight)} dimensions cannot be shared by {heads} heads")
        weight_by_head = single(weight.detach()).unflatten(0, (heads, -1))  # (heads, head_width, width)
        if bias is None:
            return cls(weight_by_head)
        return cls(weight_by_head, single(bias.detach()).unflatten(0, (heads, -1)))

    @classmethod
    def none(cls, states: Float[Tensor, "batch length width"]) -> "LinearMap":
        """Return the identity map of a single head, for scores that compare states as they are.

        Args:
            states: whose width, dtype and device the map gets.

        Raises:
            BadInput: states that are not (batch, length, width).
        """
        if states.dim() != 3:
            raise BadInput(f"states of shape {tuple(states.shape)}; expected (batch, length, width)")
        identity = torch.eye(states.shape[-1], dtype=states.dtype, device=states.device)
        return cls(identity[None], identity=True)

    def of_heads(self, heads: list[int]) -> "LinearMap":
        """Return the map of the given heads, in their order.

        Args:
            heads: numbers of the heads, from 0.
        """
        if heads == list(range(self.heads)):
            return self
        bias = None if self.bias is None else self.bias[heads]
        return LinearMap(self.weight[heads], bias, self.identity)

    def shared_by(self, heads: int) -> "LinearMap":
        """Return the map with each head repeated for the heads that share it, as with grouped queries.

        Args:
            heads: number of heads that share those of the map, a multiple of their number.

        Returns:
            A map of that many heads; heads that share one follow each other.
        """
        if heads == self.heads:
            return self
        repeats = heads // self.heads
        weight = self.weight.repeat_interleave(repeats, dim=0)
        bias = None if self.bias is None else self.bias.repeat_interleave(repeats, dim=0)
        return LinearMap(weight, bias)

    def to(self, device: torch.device | str) -> "LinearMap":
        """Return the map on another device."""
        bias = None if self.bias is None else self.bias.to(device)
        return LinearMap(self.weight.to(device), bias, self.identity)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.weight.shape[0]

    def __call__(
        self, states: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch heads length head_width"]:
        """Return W x + b in every head."""
        mapped = self.without_bias(states).transpose(0, 1)  # (batch, heads, length, head_width)
        if self.bias is not None:
            mapped = mapped + self.bias[:, None]
        return mapped

    def without_bias(
        self, states: Float[Tensor, "*batch length width"]
    ) -> Float[Tensor, "heads *batch length head_width"]:
        """Return W x in every head, the heads first.

        Args:
            states: any number of axes may come before length and width.
        """
        if self.identity:
            return states[None]
        rows = states @ self.weight.flatten(0, 1).T  # (*batch, length, heads · head_width)
        return rows.unflatten(-1, self.weight.shape[:2]).movedim(-2, 0)


def compared_as_they_are(
    queries: Float[Tensor, "batch target width"], keys: Float[Tensor, "batch source width"]
) -> tuple[LinearMap, LinearMap]:
    """Return the maps of queries and keys for a single head that compares states as they are."""
    return LinearMap.none(queries), LinearMap.none(keys)


@dataclass(frozen=True, eq=False, repr=False)
class Rotary(ShowsShapes):
    """Rotation of pairs of coordinates, ``x cos + turned(x) sin`` (Su et al. 2021, equation 34).

    If the tables are narrower than the states, the first coordinates are rotated and the others are
    unchanged.

    Attributes:
        cos, sin: of the angle of each position and coordinate, (length, rotated).
        interleaved: whether the two coordinates of a pair are neighbours, as in the paper, or one is in the
            first half and the other in the second half, as in most implementations.

    Example:
        >>> quarter_turn = Rotary(cos=torch.zeros(1, 2), sin=torch.ones(1, 2))
        >>> quarter_turn(torch.tensor([[3.0, 4.0]])).tolist()
        [[-4.0, 3.0]]
    """

    cos: Float[Tensor, "length rotated"]
    sin: Float[Tensor, "length rotated"]
    interleaved: bool = False

    def to(self, device: torch.device | str) -> "Rotary":
        """Return the rotation on another device."""
        return Rotary(self.cos.to(device), self.sin.to(device), self.interleaved)

    def __call__(self, states: Float[Tensor, "*batch length width"]) -> Float[Tensor, "*batch length width"]:
        """Return the states, each turned by the angles of its position."""
        rotated_width = self.cos.shape[-1]
        rotated = self._rotate(states[..., :rotated_width])
        if rotated_width == states.shape[-1]:
            return rotated
        return torch.cat([rotated, states[..., rotated_width:]], dim=-1)

    def _rotate(
        self, states: Float[Tensor, "*batch length rotated"]
    ) -> Float[Tensor, "*batch length rotated"]:
        """Rotate all coordinates: (x, y) of a pair turned by a right angle is (−y, x)."""
        if self.interleaved:
            first, second = states[..., ::2], states[..., 1::2]
            turned = torch.stack([-second, first], dim=-1).flatten(-2)
        else:
            first, second = states.chunk(2, dim=-1)
            turned = torch.cat([-second, first], dim=-1)
        return states * self.cos + turned * self.sin
