"""One attention of anybody's model over a batch, with all that its scores are made of.

Of head h, x_s the states that queries are made of and y_t those of the keys,

    a_st = scale · R_s(W_q x_s + b_q) · R_t(W_k y_t + b_k) + b_st,

W and b the head's projections, R a rotation by position (Su et al. 2021, section 3.2) and b_st a bias by
position (Raffel et al. 2020, section 2.1), both absent in most models. All of it is linear in x and in y but
for b_st, which stands alone: so parts of the states become terms of the score. The bias of
a projection is the same for all tokens and goes with the temporal part; a rotation is applied to every part.
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.models.transformer import AttentionKind

QUERY_SIDE = {"cross": "target", "encoder_self": "source", "decoder_self": "target"}
KEY_SIDE = {"cross": "source", "encoder_self": "source", "decoder_self": "target"}
# A linear map of every position by itself, (*batch, length, width) → the same, such as :class:`Rotary`.
Rotation = Callable[[Tensor], Tensor]


def site_names(kind: AttentionKind, layer: int) -> tuple[str, str]:
    """Names of the states that queries and keys are made of; all cross-attentions read one encoder."""
    if kind == "cross":
        return f"decoder.{layer}.cross", "encoder"
    own = f"{kind.removesuffix('_self')}.{layer}.self"
    return own, own


def single(tensor: Tensor) -> Tensor:
    """In float32 at least: half precision is not computed with."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ W x + b of every head.

    >>> both = LinearMap(torch.tensor([[[1.0, 2.0]], [[0.0, 1.0]]]), torch.tensor([[3.0], [0.0]]))
    >>> both(torch.tensor([[[10.0, 1.0]]])).flatten().tolist()
    [15.0, 1.0]
    """

    weight: Float[Tensor, "heads head_width width"]
    bias: Float[Tensor, "heads head_width"] | None = None
    identity: bool = False  # the weight is known to change nothing, and is not multiplied with

    def __post_init__(self) -> None:
        weight, bias = self.weight.shape, None if self.bias is None else self.bias.shape
        if len(weight) != 3 or bias not in (None, weight[:2]):
            raise BadInput(
                f"weight of shape {tuple(weight)}, bias of {None if bias is None else tuple(bias)}; expected "
                "(heads, head width, width) and (heads, head width)"
            )

    @classmethod
    def of(cls, projection: nn.Linear, heads: int) -> "LinearMap":
        """The rows of a projection, dealt out among the heads in order; float32 at least."""
        return cls.of_rows(projection.weight, projection.bias, heads)

    @classmethod
    def of_rows(
        cls, weight: Float[Tensor, "rows width"], bias: Float[Tensor, " rows"] | None, heads: int
    ) -> "LinearMap":
        """Rows of one projection, dealt out to heads; BadInput where they cannot be."""
        if len(weight) % heads:
            raise BadInput(f"a projection to {len(weight)} dimensions cannot be shared by {heads} heads")
        rows = (None if own is None else single(own.detach()) for own in (weight, bias))
        return cls(*(own if own is None else own.unflatten(0, (heads, -1)) for own in rows))

    @classmethod
    def none(cls, states: Float[Tensor, "batch length width"]) -> "LinearMap":
        """One head that compares the states as they are; BadInput for states of other axes."""
        if states.dim() != 3:
            raise BadInput(f"states of shape {tuple(states.shape)}; expected (batch, length, width)")
        width, made = states.shape[-1], {"dtype": states.dtype, "device": states.device}
        return cls(torch.eye(width, **made)[None], identity=True)

    def of_heads(self, heads: list[int]) -> "LinearMap":
        if heads == list(range(self.heads)):
            return self
        return LinearMap(self.weight[heads], None if self.bias is None else self.bias[heads])

    @property
    def heads(self) -> int:
        return self.weight.shape[0]

    def __call__(
        self, states: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch heads length head_width"]:
        mapped = self.without_bias(states).transpose(0, 1)
        return mapped if self.bias is None else mapped + self.bias[:, None]

    def without_bias(
        self, states: Float[Tensor, "*batch length width"]
    ) -> Float[Tensor, "heads *batch length head_width"]:
        """W x of every head, the heads first."""
        if self.identity:
            return states[None]
        return (states @ self.weight.flatten(0, 1).T).unflatten(-1, self.weight.shape[:2]).movedim(-2, 0)


@dataclass(frozen=True, eq=False)
class Rotary:
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

    def __call__(self, states: Float[Tensor, "*batch length width"]) -> Float[Tensor, "*batch length width"]:
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


@dataclass(frozen=True, eq=False)
class Attended:
    """One attention of one layer over a batch, all heads.

    Attributes:
        kind: which states attend to which; layer: from 0.
        query_inputs, key_inputs: x and y, what the projections read.
        query_site, key_site: names of these states, the same where attentions read the same states.
        query_map, key_map: the projections; their widths agree.
        scale: of the product.
        position_bias: b_st of each head.
        query_rotation, key_rotation: R by position.
        attention: as the model returned it; None where it did not, and then nothing has checked the scores.
        causal: whether step s sees steps up to s alone.
        window: how many steps a causal step sees, itself included, as in Mistral; None: all up to itself.
        precision: what the model computed in, where the inputs given here are finer.

    Raises:
        BadInput: projections of different heads or widths; a scale, weight or bias that is no number.
    """

    kind: AttentionKind
    layer: int
    query_inputs: Float[Tensor, "batch target query_width"]
    key_inputs: Float[Tensor, "batch source key_width"]
    query_site: str
    key_site: str
    query_map: LinearMap
    key_map: LinearMap
    scale: float = 1.0
    position_bias: Float[Tensor, "#batch heads target source"] | None = None
    query_rotation: Rotation | None = None
    key_rotation: Rotation | None = None
    attention: Float[Tensor, "batch heads target source"] | None = None
    causal: bool = False
    window: int | None = None
    precision: torch.dtype | None = None
    #: queries and keys, where they were seen; not carried over by :func:`dataclasses.replace`
    _seen: tuple[Tensor, Tensor] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        query, key = self.query_map.weight.shape, self.key_map.weight.shape
        if query[:2] != key[:2]:
            raise BadInput(
                f"{self.name}: queries of {query[0]} heads of width {query[1]}, keys of {key[0]} of width "
                f"{key[1]}; both sides need the same heads and the same width"
            )
        if self.window is not None and not (self.causal and self.window >= 1):
            raise BadInput(
                f"{self.name}: window is {self.window}; expected at least one step, of a causal attention"
            )
        if not math.isfinite(self.scale):
            raise BadInput(f"{self.name}: scale is {self.scale}; give a finite number, such as 1/√width")
        for linear, side in ((self.query_map, "query"), (self.key_map, "key")):
            for part, own in (("weight", linear.weight), ("bias", linear.bias)):
                if own is not None and not bool(own.isfinite().all()):
                    raise BadInput(f"{self.name}: {side} {part} holds NaN or infinity: did training diverge?")

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.layer}"

    @property
    def heads(self) -> int:
        return self.query_map.heads

    @cached_property
    def queries(self) -> Float[Tensor, "batch heads target head_width"]:
        """Projected and rotated, with the factor of the score."""
        if self._seen is not None:
            return self._seen[0]
        return _rotated(self.query_map(self.query_inputs), self.query_rotation) * self.scale

    @cached_property
    def keys(self) -> Float[Tensor, "batch heads source head_width"]:
        """Projected and rotated."""
        if self._seen is not None:
            return self._seen[1]
        return _rotated(self.key_map(self.key_inputs), self.key_rotation)

    @cached_property
    def scores(self) -> Float[Tensor, "batch heads target source"]:
        """a_st of every head, before any mask."""
        scores = self.queries @ self.keys.mT
        return scores if self.position_bias is None else scores + self.position_bias

    def knowing(self, queries: Tensor, keys: Tensor) -> "Attended":
        """A copy with what its projections were seen to make, (batch, length, rows): not made again."""
        queries = queries.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        keys = keys.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        queries = _rotated(queries, self.query_rotation) * self.scale
        keys = _rotated(keys, self.key_rotation)
        copied = copy(self)
        object.__setattr__(copied, "_seen", (queries, keys))
        return copied

    def allowed(
        self, query_mask: Bool[Tensor, "batch target"], key_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, "batch target source"]:
        """What each query may see: valid keys, and where causal no later ones, nor those before its window.

        Nothing at padding.
        """
        allowed = query_mask[:, :, None] & key_mask[:, None, :]
        if not self.causal:
            return allowed
        if self.window is None:
            return allowed.tril()
        return allowed.tril().triu(1 - self.window)


def _rotated(states: Tensor, rotation: Rotation | None) -> Tensor:
    return states if rotation is None else rotation(states)
