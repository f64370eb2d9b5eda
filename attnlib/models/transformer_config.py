"""What defines a Transformer, as one frozen value."""

from dataclasses import dataclass
from typing import Literal, get_args

from attnlib.errors import BadInput, UnknownName

Positions = Literal["sinusoidal", "learned", "relative", "rotary", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """Size and kind of a :class:`~attnlib.models.transformer.Transformer`.

    Attributes:
        source_size, target_size: number of words of the two vocabularies, marks included.
        width: of embeddings and states; all heads of an attention share it equally.
        heads: of every attention.
        layers: of encoder and of decoder.
        hidden: width of the hidden layer in the feed-forward networks; None is four times ``width``, as in
            Vaswani et al. 2017, section 3.3.
        positions: what is added to the embeddings, see :mod:`attnlib.models.positions`; or, ``relative`` and
            ``rotary``, what self-attention does with distances, see :mod:`attnlib.models.self_positions`.
            With ``none`` the encoder sees its words as a set; the decoder still knows order from what each
            step may look at.
        embedding_scale: standard deviation of the embeddings at the start, learned positions included. With 1
            they weigh about as much as sinusoidal positions, whose root mean square is 0.71; this is in place
            of the factor √width (Vaswani et al. 2017, section 3.4).

    Raises:
        UnknownName: positions that do not exist. BadInput: a size below 1, or a width that the heads do not
            divide, or an odd one with sinusoidal positions.

    >>> TransformerConfig(source_size=7, target_size=9, width=32, heads=4).head_width
    8
    """

    source_size: int
    target_size: int
    width: int = 128
    heads: int = 4
    layers: int = 2
    hidden: int | None = None
    positions: Positions = "sinusoidal"
    embedding_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.positions not in get_args(Positions):
            raise UnknownName("positions", str(self.positions), get_args(Positions))
        for name in ("source_size", "target_size", "width", "heads", "layers", "hidden"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise BadInput(f"{name} is {size}; it must be at least 1")
        if self.width % self.heads:
            raise BadInput(
                f"width is {self.width}, which {self.heads} heads do not divide; "
                f"take a multiple such as {-(-self.width // self.heads) * self.heads}"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise BadInput(
                f"width is {self.width}; sinusoidal positions need an even one, half sines, half cosines"
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise BadInput(
                f"heads of width {self.head_width}; rotary positions turn pairs of coordinates, and it must "
                "be even"
            )
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")

    @property
    def head_width(self) -> int:
        """Of the queries, keys and values of one head."""
        return self.width // self.heads

    @property
    def hidden_width(self) -> int:
        """Of the hidden layer in the feed-forward networks."""
        return 4 * self.width if self.hidden is None else self.hidden
