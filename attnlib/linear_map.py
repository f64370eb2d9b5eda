"""The projections of the heads of an attention, and rotations by position: all that is linear in a state.

A projection is a :class:`LinearMap`, x ↦ W x + b in every head. Since it is linear, parts that sum to a state
are mapped to parts that sum to its query or its key; the bias is the same for all tokens. A :class:`Rotary`
turns queries and keys by their positions, and is applied to every part.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput

# A linear map of every position by itself, (*batch, length, width) → the same, such as :class:`Rotary`.
Rotation = Callable[[Tensor], Tensor]


def single(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least: half precision is not computed with."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap(ShowsShapes):
    """x ↦ W x + b in every head.

    Attributes:
        weight: W of every head.
        bias: b of every head; None where there is none.
        identity: whether the weight is known to change nothing, so that nothing is multiplied with it.

    Raises:
        BadInput: a weight or a bias of other axes.

    >>> both = LinearMap(torch.tensor([[[1.0, 2.0]], [[0.0, 1.0]]]), torch.tensor([[3.0], [0.0]]))
    >>> both(torch.tensor([[[10.0, 1.0]]])).flatten().tolist()
    [15.0, 1.0]
    """

    weight: Float[Tensor, "heads head_width width"]
    bias: Float[Tensor, "heads head_width"] | None = None
    identity: bool = False

    def __post_init__(self) -> None:
        weight = self.weight.shape
        bias = None if self.bias is None else self.bias.shape
        if len(weight) != 3 or bias not in (None, weight[:2]):
            raise BadInput(
                f"weight of shape {tuple(weight)}, bias of {None if bias is None else tuple(bias)}; expected "
                "(heads, head width, width) and (heads, head width)"
            )

    @classmethod
    def of(cls, projection: nn.Linear, heads: int) -> "LinearMap":
        """Return the rows of a projection, dealt out among the heads in order; float32 at least."""
        return cls.of_rows(projection.weight, projection.bias, heads)

    @classmethod
    def of_rows(
        cls, weight: Float[Tensor, "rows width"], bias: Float[Tensor, " rows"] | None, heads: int
    ) -> "LinearMap":
        """Return the rows of one projection, dealt out among the heads in order; float32 at least.

        Raises:
            BadInput: the heads do not divide the rows.
        """
        if len(weight) % heads:
            raise BadInput(f"a projection to {len(weight)} dimensions cannot be shared by {heads} heads")
        weight_by_head = single(weight.detach()).unflatten(0, (heads, -1))  # (heads, head_width, width)
        if bias is None:
            return cls(weight_by_head)
        return cls(weight_by_head, single(bias.detach()).unflatten(0, (heads, -1)))

    @classmethod
    def none(cls, states: Float[Tensor, "batch length width"]) -> "LinearMap":
        """Return the map of one head that compares states as they are.

        Raises:
            BadInput: states of other axes.
        """
        if states.dim() != 3:
            raise BadInput(f"states of shape {tuple(states.shape)}; expected (batch, length, width)")
        identity = torch.eye(states.shape[-1], dtype=states.dtype, device=states.device)
        return cls(identity[None], identity=True)

    def of_heads(self, heads: list[int]) -> "LinearMap":
        """Return the map of some heads, in this order."""
        if heads == list(range(self.heads)):
            return self
        return LinearMap(self.weight[heads], None if self.bias is None else self.bias[heads], self.identity)

    def to(self, device: torch.device | str) -> "LinearMap":
        """Return the map on another device."""
        bias = None if self.bias is None else self.bias.to(device)
        return LinearMap(self.weight.to(device), bias, self.identity)

    @property
    def heads(self) -> int:
        """How many heads it maps to."""
        return self.weight.shape[0]

    def __call__(
        self, states: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch heads length head_width"]:
        """Return W x + b in every head."""
        mapped = self.without_bias(states).transpose(0, 1)
        return mapped if self.bias is None else mapped + self.bias[:, None]

    def without_bias(
        self, states: Float[Tensor, "*batch length width"]
    ) -> Float[Tensor, "heads *batch length head_width"]:
        """Return W x in every head, the heads first."""
        if self.identity:
            return states[None]
        rows = states @ self.weight.flatten(0, 1).T  # (*batch, length, heads · head_width)
        return rows.unflatten(-1, self.weight.shape[:2]).movedim(-2, 0)


def compared_as_they_are(
    queries: Float[Tensor, "batch target width"], keys: Float[Tensor, "batch source width"]
) -> tuple[LinearMap, LinearMap]:
    """Return the maps of one head that compares both states as they are."""
    return LinearMap.none(queries), LinearMap.none(keys)


@dataclass(frozen=True, eq=False, repr=False)
class Rotary(ShowsShapes):
    """Rotation of pairs of coordinates, ``x cos + turned(x) sin`` (Su et al. 2021, equation 34).

    Tables that are narrower than the states rotate their first coordinates; the others stay as they are.

    Attributes:
        cos, sin: of the angle of every position and coordinate.
        interleaved: whether a pair is two neighbours, as in the paper, or a coordinate of the first half and
            one of the second, as in most implementations.
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
        if self.interleaved:
            turned = torch.stack([-states[..., 1::2], states[..., ::2]], dim=-1).flatten(-2)
        else:
            first, second = states.chunk(2, dim=-1)
            turned = torch.cat([-second, first], dim=-1)
        return states * self.cos + turned * self.sin
