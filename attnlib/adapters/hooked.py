"""Where an attention stands in anybody's model."""

from dataclasses import dataclass
from typing import get_args

from attnlib.errors import UnknownName
from attnlib.models.transformer import AttentionKind


@dataclass(frozen=True)
class Hooked:
    """Where one attention stands in a model; names are those of ``model.named_modules()``.

    Attributes:
        query, key: linear projections; what they read is what asks and what answers. Or both the name of one
            ``nn.MultiheadAttention``, as ``nn.Transformer`` has them: then nothing else need be named.
        heads: that share the projections' dimensions, in order.
        attention: a module that returns the attention, (batch, heads, target, source), alone or last in a
            tuple. The scores that the projections make are checked against it.
        kind, layer: how reports call it.
        scale: of the score; 1/√(width of a head) by default.

    Raises:
        UnknownName: a kind that does not exist.

    >>> Hooked("decoder.3.to_q", "decoder.3.to_k", heads=8, attention="decoder.3.softmax", layer=3).name
    'cross.3'
    """

    query: str
    key: str
    heads: int = 0
    attention: str | None = None
    kind: AttentionKind = "cross"
    layer: int = 0
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(AttentionKind):
            raise UnknownName("kind of attention", self.kind, get_args(AttentionKind))

    @property
    def name(self) -> str:
        """Kind and layer, as reports say it."""
        return f"{self.kind}.{self.layer}"
