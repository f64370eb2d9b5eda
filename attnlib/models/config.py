"""Define a network of the encoder-decoder family by one frozen value."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from attnlib.errors import BadInput, check_at_least, check_known

Architecture = Literal["VED", "AED", "AO"]
Cell = Literal["gru", "lstm", "vanilla", "ugrnn"]
Positions = Literal["sinusoidal", "learned", "shuffled", "none"]


@dataclass(frozen=True)
class ModelConfig:
    """Size and kind of an :class:`~attnlib.models.encoder_decoder.EncoderDecoder`.

    Attributes:
        architecture: ``"VED"`` (recurrent, linked by the encoder's last state alone), ``"AED"`` (the same
            with attention), ``"AO"`` (attention only: feed-forward states, which know order from positions
            alone).
        source_size: size of the source's vocabulary, marks included.
        target_size: size of the target's vocabulary, marks included.
        cell: the recurrent cell of VED and AED; ``"vanilla"`` is the tanh network, ``"ugrnn"`` the
            update-gate network. AO ignores it.
        width: of a hidden state, and of the embeddings.
        positions: AO's position code, added to the embeddings: see :mod:`attnlib.models.encoder_decoder`.
        embedding_scale: standard deviation of the embeddings at the start. With torch's default of 1 the
            first unscaled dot products are so large that AO is caught in a poor optimum for some seeds of the
            one-to-one task; the positions of AO have a root mean square of 0.7.

    Raises:
        UnknownName: an architecture, a cell or positions that do not exist.
        BadInput: a size below 1, a scale that is not positive, or an odd width with sines and cosines.

    Example:
        >>> ModelConfig("AO", source_size=9, target_size=9, width=64).positions
        'sinusoidal'
    """

    architecture: Architecture
    source_size: int
    target_size: int
    _: KW_ONLY
    cell: Cell = "gru"
    width: int = 128
    positions: Positions = "sinusoidal"
    embedding_scale: float = 0.3

    def __post_init__(self) -> None:
        for name, kind in (("architecture", Architecture), ("cell", Cell), ("positions", Positions)):
            check_known(name, str(getattr(self, name)), get_args(kind))
        check_at_least(1, self, "width", "source_size", "target_size")
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")
        if self.architecture == "AO" and self.positions in ("sinusoidal", "shuffled") and self.width % 2:
            raise BadInput(f"width {self.width} is odd; {self.positions} positions need an even width")
